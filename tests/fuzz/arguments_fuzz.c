/*
 * libFuzzer harness for the words of a program and the stack made of them. It can be built alone:
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined \
 *		-I. tests/fuzz/arguments_fuzz.c -o arguments_fuzz
 *
 * The input is a text to be split, and a file with words.
 */

#include "kernel/lib/words.c"
#include "kernel/program/arguments.c"
#include "kernel/program/start_stack.c"
#include "tests/fuzz/fuzz.h"

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

static void check_stack(const struct arguments *words)
{
	const struct start_stack start = {.path = "/a.out", .args = words, .environment = words};
	const u64 size = start_stack_size(&start);
	u8 *memory = calloc(1, size); /* of the exact size */
	const u64 rsp = start_stack_build(&start, memory, size, TOP);
	u64 count;

	require(rsp % 16 == 0 && rsp >= TOP - size && rsp < TOP);
	memcpy(&count, memory + (rsp - (TOP - size)), sizeof(count));
	require(count == words->count);
	require(size < TOP - rsp + 1024);
	free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *buffer, *file = malloc(size ? size : 1);
	struct arguments words;

	memcpy(text, data, size);
	memcpy(file, data, size);
	text[size] = '\0';
	buffer = malloc(strlen(text) + 1);
	require(arguments_split(&words, text, buffer, strlen(text) + 1) != -E2BIG);
	check_words(&words);
	check_stack(&words);
	if (arguments_of(&words, file, size) < 0)
		require(words.count == 0 && words.bytes == 0);
	check_words(&words);
	check_stack(&words);
	free(text);
	free(buffer);
	free(file);
	return 0;
}
