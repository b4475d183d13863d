/*
 * The stack with which a program starts: see start_stack.h.
 *
 * Texts are put first, from the top down. The number of words below them is known then, so rsp is
 * computed and the words are put from rsp up.
 */
#include "kernel/program/start_stack.h"

#include "kernel/lib/string.h"

/* Keys of the pairs, by their numbers in Linux. */
enum {
	AT_NULL = 0,
	AT_PHDR = 3,
	AT_PHENT = 4,
	AT_PHNUM = 5,
	AT_PAGESZ = 6,
	AT_BASE = 7,
	AT_FLAGS = 8,
	AT_ENTRY = 9,
	AT_UID = 11,
	AT_EUID = 12,
	AT_GID = 13,
	AT_EGID = 14,
	AT_PLATFORM = 15,
	AT_HWCAP = 16,
	AT_CLKTCK = 17,
	AT_SECURE = 23,
	AT_RANDOM = 25,
	AT_HWCAP2 = 26,
	AT_EXECFN = 31,
	AT_SYSINFO_EHDR = 33,
	AT_MINSIGSTKSZ = 51,
};

enum { CLOCK_TICKS = 100, STACK_ALIGNMENT = 16, FIXED_BYTES = 512 };

struct pair {
	u64 key, value;
};

struct stack {
	u8 *buffer;
	u64 bottom; /* the address of the buffer's first byte */
	u64 at;     /* the lowest byte in use */
};

/* Take `bytes` below what is in use, and copy. Returns the address. */
static u64 push(struct stack *stack, const void *from, u64 bytes)
{
	stack->at -= bytes;
	if (bytes > 0)
		memcpy(stack->buffer + (stack->at - stack->bottom), from, bytes);
	return stack->at;
}

static void put_word(struct stack *stack, u64 *addr, u64 value)
{
	memcpy(stack->buffer + (*addr - stack->bottom), &value, sizeof(value));
	*addr += sizeof(value);
}

/* The addresses of the words of a list whose texts were pushed to `texts`, then the final 0. */
static void put_list(struct stack *stack, u64 *addr, const struct arguments *list, u64 texts)
{
	for (const char *word = arguments_next(list, NULL); word; word = arguments_next(list, word))
		put_word(stack, addr, texts + (u64)(word - list->text));
	put_word(stack, addr, 0);
}

u64 start_stack_size(const struct start_stack *start)
{
	return strlen(start->path) + start->args->bytes + start->environment->bytes +
	       (start->args->count + start->environment->count) * sizeof(u64) + FIXED_BYTES;
}

u64 start_stack_build(const struct start_stack *start, void *buffer, u64 size, u64 top)
{
	static const char platform[] = "x86_64";
	const struct arguments *args = start->args, *environment = start->environment;
	struct stack stack = {buffer, top - size, top - sizeof(u64)};
	const u64 path_at = push(&stack, start->path, strlen(start->path) + 1);
	const u64 environment_at = push(&stack, environment->text, environment->bytes);
	const u64 args_at = push(&stack, args->text, args->bytes);
	const u64 platform_at = push(&stack, platform, sizeof(platform));
	const u64 random_at = push(&stack, start->random, START_RANDOM_BYTES);
	/* bit 1 of AT_HWCAP2 would offer WRFSBASE, which is off */
	const struct pair pairs[] = {
		{AT_SYSINFO_EHDR, start->vdso},
		{AT_MINSIGSTKSZ, start->signal_stack_min},
		{AT_HWCAP, start->hwcap},
		{AT_PAGESZ, PAGE_SIZE},
		{AT_CLKTCK, CLOCK_TICKS},
		{AT_PHDR, start->phdr},
		{AT_PHENT, start->phdr_size},
		{AT_PHNUM, start->phdr_count},
		{AT_BASE, start->base},
		{AT_FLAGS, 0},
		{AT_ENTRY, start->entry},
		{AT_UID, 0},
		{AT_EUID, 0},
		{AT_GID, 0},
		{AT_EGID, 0},
		{AT_SECURE, 0},
		{AT_HWCAP2, 0},
		{AT_RANDOM, random_at},
		{AT_EXECFN, path_at},
		{AT_PLATFORM, platform_at},
		{AT_NULL, 0},
	};
	const u64 bytes =
		sizeof(pairs) + (1 + args->count + 1 + environment->count + 1) * sizeof(u64);
	u64 rsp, at;

	_Static_assert(sizeof(platform) + START_RANDOM_BYTES + STACK_ALIGNMENT + sizeof(pairs) +
				       5 * sizeof(u64) <
			       FIXED_BYTES,
		       "start_stack_size() counts what every stack has");
	rsp = at = ALIGN_DOWN(stack.at - bytes, STACK_ALIGNMENT);
	put_word(&stack, &at, args->count);
	put_list(&stack, &at, args, args_at);
	put_list(&stack, &at, environment, environment_at);
	memcpy(stack.buffer + (at - stack.bottom), pairs, sizeof(pairs));
	return rsp;
}
