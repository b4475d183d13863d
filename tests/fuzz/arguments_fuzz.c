/*
 * libFuzzer harness for the words of program.args= and the stack made of them. It can be built
 * alone:
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined \
 *		-I. tests/fuzz/arguments_fuzz.c -o arguments_fuzz
 *
 * The first byte of the input says how large the stack may be; the rest is the text.
 */

#include "kernel/lib/words.c"
#include "kernel/program/arguments.c"
#include "kernel/program/start_stack.c"
#include "tests/fuzz/fuzz.h"

enum { STEP = 128 };

#define TOP 0x7fffffffe000ULL

static void check_words(const struct arguments *words)
{
	u32 end = 0;

	require(words->count <= ARGUMENTS_MAX && words->used <= ARGUMENTS_TEXT);
	for (unsigned i = 0; i < words->count; i++) {
		require(words->at[i] == end);
		end += (u32)strlen(arguments_word(words, i)) + 1;
	}
	require(end == words->used);
}

static void check_stack(const struct arguments *words, u64 size)
{
	const struct start_stack start = {.args = words, .environment = words};
	u8 *memory = malloc(size ? size : 1); /* of the exact size */
	const u64 rsp = start_stack_build(&start, memory, size, TOP);
	u64 count;

	if (rsp) {
		require(rsp % 16 == 0 && rsp >= TOP - size && rsp < TOP);
		memcpy(&count, memory + (rsp - (TOP - size)), sizeof(count));
		require(count == words->count);
	} else {
		require(size < (u64)words->used * 3 + (u64)words->count * 16 + 1024);
	}
	free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arguments words;
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	arguments_clear(&words);
	if (size && arguments_split(&words, text + 1) < 0)
		require(words.count == 0 && words.used == 0);
	check_words(&words);
	check_stack(&words, size ? (u64)data[0] * STEP : 0);
	free(text);
	return 0;
}
