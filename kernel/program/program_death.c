/* The end of a program by a signal, in words: see program_death.h. */
#include "kernel/program/program_death.h"

#include "kernel/core/printk.h"
#include "kernel/lib/format.h"
#include "kernel/lib/string.h"
#include "kernel/program/contents.h"
#include "kernel/program/file.h"
#include "kernel/program/layout.h"
#include "kernel/program/open_file.h"
#include "kernel/program/program.h"
#include "kernel/program/signal.h"
#include "kernel/program/program_space.h"
#include "kernel/program/user_copy.h"
#include "mm/mm.h"
#include "mm/vm/entry.h"
#include "mm/vm/pages.h"

enum { SIGNAL_STATUS = 128 }; /* what shells add to the number of the signal */

static u64 mib(u64 frames)
{
	return frames / (MIB(1) / PAGE_SIZE);
}

/* Say how the memory is used in which a touch found no page. */
static void say_memory(u64 addr, const struct area *area)
{
	struct mm_usage usage;

	mm_usage(&usage);
	print("  there was no %s for the touch of %llx\n",
	      area->flags & AREA_POOL ? "page in the pool" : "memory", addr);
	print("  of %llu MiB RAM %llu are free; the program has mapped %llu, its files have %llu, "
	      "pools keep %llu, the kernel has %llu\n",
	      mib(usage.ram), mib(usage.free + usage.unopened + usage.per_cpu),
	      mib(pages_resident(&program_space) / PAGE_SIZE), mib(contents_pages()),
	      mib(usage.pool_free), mib(usage.meta + usage.gated + usage.reserved));
}

/* Is the page of an address wholly behind the end of its area's file? The area is pinned. */
static bool is_beyond(u64 addr, const struct area *area)
{
	return area->object &&
	       area->offset + (addr - area->start) >=
		       ALIGN_UP(inode_size(file_of_object(area->object)->inode), PAGE_SIZE);
}

/* Place of a fault: the area there, or the nearest below. */
static void say_area(int signal, u64 addr)
{
	char name[64] = "anonymous memory";
	struct area area = {.end = 0}, next = {.start = 0};
	enum pt_level level;
	bool no_memory;
	pte_t pte;

	if (addr < PAGE_SIZE) {
		print("  %llx is a NULL pointer and an offset\n", addr);
		return;
	}
	if (addr >= USER_END) {
		print("  %llx is an address of the kernel\n", addr);
		return;
	}
	while (area_tree_from(&program_space.tree, next.end, &next) && next.start <= addr)
		area = next;
	if (area.end == 0) {
		print("  nothing is mapped at %llx or below\n", addr);
		return;
	}
	if (addr >= STACK_TOP - STACK_BYTES - STACK_GAP && addr < STACK_TOP - STACK_BYTES)
		print("  %llx is in the gap below the first thread's stack: stack overflow\n",
		      addr);
	/* a report waits for no call; the pin keeps the file */
	if (!space_try_pin(&program_space, MIN(addr, area.end - 1), &area)) {
		print("  another thread is changing the memory at %llx\n", addr);
		return;
	}
	if (area.object)
		file_name(file_of_object(area.object), name, sizeof(name));
	if (!pages_find(&program_space, MIN(addr, area.end - 1), &pte, &level) &&
	    pte == ENTRY_GUARD)
		format(name, sizeof(name), "a guard of madvise()");
	no_memory = signal == SIGBUS && !is_beyond(addr, &area);
	space_unpin(&program_space);
	print("  %llx is %s [%llx, %llx) %c%c%c, %s\n", addr,
	      addr < area.end ? "in" : "behind the end of", area.start, area.end,
	      area.rights & USER_RIGHT_READ ? 'r' : '-', area.rights & USER_RIGHT_WRITE ? 'w' : '-',
	      area.rights & USER_RIGHT_EXEC ? 'x' : '-', name);
	if (no_memory)
		say_memory(addr, &area);
	else if (signal == SIGBUS)
		print("  the file ends before it\n");
}

/* Two words of the stack, if they are there. A report brings no page. */
static bool peek(u64 at, u64 word[2])
{
	u32 half[4];

	for (unsigned i = 0; i < ARRAY_LEN(half); i++)
		if (!user_peek_u32(at + i * sizeof(u32), &half[i]))
			return false;
	memcpy(word, half, sizeof(half));
	return true;
}

/* A place by its symbol, or by its offset in a mapped file such as a library; else "". */
static void name_place(u64 addr, char *buf, size_t size)
{
	struct area area;
	char file[64];

	program_symbol(addr, buf, size);
	if (buf[0] || !space_try_pin(&program_space, addr, &area))
		return;
	if (area.object) {
		file_name(file_of_object(area.object), file, sizeof(file));
		format(buf, size, "%s+0x%llx", file, addr - area.start + area.offset);
	}
	space_unpin(&program_space);
}

/* Callers, by the chain of frame pointers, as far as it makes sense. */
static void say_callers(const struct trap_frame *regs)
{
	enum { CALLERS_MAX = 16 };
	u64 frame[2] = {regs->rbp, regs->rip}, at;
	char name[96];

	for (unsigned i = 0; i < CALLERS_MAX; i++) {
		name_place(frame[1], name, sizeof(name));
		print("  %s %llx %s\n", i == 0 ? "at" : "by", frame[1], name);
		at = frame[0];
		if (at < regs->rsp || !IS_ALIGNED(at, sizeof(u64)) || !peek(at, frame) ||
		    frame[0] <= at)
			break;
	}
}

void program_die(int signal, const struct signal_info *info, struct trap_frame *regs)
{
	const bool fault = signal == SIGSEGV || signal == SIGBUS;

	/* several threads may fault at once: the first is reported */
	if (!program_end(SIGNAL_STATUS + signal))
		return;
	pr_err("program: signal %d ends it, thread %u, rip %llx", signal, thread_current()->id,
	       regs->rip);
	if (fault && info->code > 0 && info->code != SI_KERNEL)
		say_area(signal, info->addr);
	else if (fault && info->code == SI_KERNEL && regs->vector == VECTOR_PROTECTION)
		print("  a general protection fault: an address that no memory can have, or a "
		      "privileged instruction\n");
	user_regs_print(regs);
	say_callers(regs);
}
