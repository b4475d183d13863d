/*
 * libFuzzer harness for the words of a program and the stack made of them. It can be built alone:
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined \
 *		-I. tests/fuzz/arguments_fuzz.c -o arguments_fuzz
 *
 * The first byte of the input says how large the stack may be; the rest is a text to be split, and
 * a file with words.
 */

#include "kernel/lib/words.c"
#include "kernel/program/arguments.c"
#include "kernel/program/start_stack.c"
#include "tests/fuzz/fuzz.h"

enum { STEP = 128 };

#define TOP 0x7fffffffe000ULL

static void check_words(const struct arguments *words)
{
	u64 end = 0, count = 0;

	for (const char *word = arguments_next(words, NULL); word;
	     count++, word = arguments_next(words, word)) {
		require(word == words->text + end);
		end += strlen(word) + 1;
	}
	require(end == words->bytes && count == words->count);
}

static void check_stack(const struct arguments *words, u64 size)
{
	const struct start_stack start = {.path = "/a.out", .args = words, .environment = words};
	u8 *memory = malloc(size ? size : 1); /* of the exact size */
	const u64 rsp = start_stack_build(&start, memory, size, TOP);
	u64 count;

	if (rsp) {
		require(rsp % 16 == 0 && rsp >= TOP - size && rsp < TOP);
		memcpy(&count, memory + (rsp - (TOP - size)), sizeof(count));
		require(count == words->count);
		require(TOP - rsp <= start_stack_size(&start));
		require(start_stack_size(&start) < TOP - rsp + 1024);
	} else {
		require(size < start_stack_size(&start));
	}
	free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const u64 room = size ? (u64)data[0] * STEP : 0;
	char *text = malloc(size + 1), *buffer, *file = malloc(size ? size : 1);
	struct arguments words;

	memcpy(text, data, size);
	memcpy(file, data, size);
	text[size] = '\0';
	buffer = malloc(strlen(text) + 1);
	require(arguments_split(&words, text, buffer, strlen(text) + 1) != -E2BIG);
	check_words(&words);
	check_stack(&words, room);
	if (arguments_of(&words, file, size) < 0)
		require(words.count == 0 && words.bytes == 0);
	check_words(&words);
	check_stack(&words, room);
	free(text);
	free(buffer);
	free(file);
	return 0;
}
