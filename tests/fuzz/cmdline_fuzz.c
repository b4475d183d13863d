/*
 * libFuzzer harness for the command line. It can be built alone:
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined \
 *		-I. -Iarch/x86_64/include tests/fuzz/cmdline_fuzz.c -o cmdline_fuzz
 *
 * or, to replay inputs without libFuzzer, with tests/fuzz/replay.c and any compiler. The input lies
 * in a block of its exact size, so that a read of one byte too many is detected.
 */

#include "kernel/core/cmdline.c"
#include "kernel/lib/words.c"
#include "tests/fuzz/fuzz.h"

enum { CHOICES = 3, LOW = 5 };

static u64 number = LOW;
static unsigned choice;
static bool flag;
static const char *text = "";

OPTION_U64(num, number, LOW, MIB(1), "a number");
OPTION_CHOICE(pick_one, choice, "a|bb|abc", "a choice");
OPTION_BOOL(flag, flag, "a flag");
OPTION_TEXT(text, text, "some text");

void panic(const char *fmt, ...)
{
	abort();
}

/* Every message must be terminated text without control bytes. */
void printk(enum log_level level, const char *fmt, ...)
{
	char line[2 * CMDLINE_MAX];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	require(n > 0 && n < (int)sizeof(line));
	for (int i = 0; i < n; i++)
		require(line[i] >= ' ' && line[i] < 0x7f);
}

void print(const char *fmt, ...)
{
}

int format(char *buf, size_t size, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(buf, size, fmt, args);
	va_end(args);
	return n;
}

/*
 * Whatever the input, every value must be one that its option allows, and text must lie in the
 * kernel's own copy.
 */
static void check(void)
{
	require(number >= LOW && number <= MIB(1));
	require(choice < CHOICES);
	require(!*text ||
		(text >= cmdline_machine.words && text < cmdline_machine.words + CMDLINE_MAX));
	require(!*text || memchr(text, '\0', (size_t)(cmdline_machine.words + CMDLINE_MAX - text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = exact_copy(data, size);

	text = "";
	require(cmdline_apply(&cmdline_machine, exact, size) <= size);
	check();
	free(exact);
	return 0;
}
