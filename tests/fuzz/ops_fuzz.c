/*
 * libFuzzer harness for sequences of operations: the hosted machine boots once, and each input is a
 * case of its own, with everything that is checked after a case (every frame has one owner, by
 * counters and by walking; nothing is kept; pools as at boot).
 *
 *	input   byte 0: how much of the rest, in 256ths, chooses operations on pages, pools,
 *	        sections and ranges of an arena against a reference allocator; the others choose
 *	        operations on huge mappings of the machine (tests/kernel/random.h)
 *
 * Beside what the random cases do: every search of contig= (the arena's first byte), every mode of
 * hvo= (in arenas that may have sections mapped), a pool of 1 GiB pages and its demotion, CMA, bad
 * frames, mappings that are populated, grown, protected, promised, and for some operations one pass
 * of one site that fails.
 *
 * The machine goes on from input to input. What it keeps is little (page tables of mappings), but
 * what one input breaks another may show: replay a crash with the inputs before it if it does not
 * show alone.
 *
 * Linked with the hosted machine's objects and libFuzzer, or with replay.c in its place:
 * tests/host/host.mk.
 */
#include <stdlib.h>

#include "kernel/core/verdict.h"
#include "kernel/main.h"
#include "kernel/run/test.h"
#include "tests/fuzz/hosted.h"
#include "tests/host/host.h"
#include "tests/kernel/random.h"

static struct {
	int argc;
	char **argv;
	const u8 *data;
	size_t size;
} input;

TEST(fuzz, operations)
{
	const size_t rest = input.size > 0 ? input.size - 1 : 0,
		     pages = rest * (input.size > 0 ? input.data[0] : 0) / 256;

	if (pages > 0)
		random_allocations(input.data + 1, pages);
	if (rest > pages)
		random_mappings(input.data + 1 + pages, rest - pages);
}

static void say_nothing(const struct test_run *run, const char *text)
{
	(void)run;
	(void)text;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct test_run run = {.begin = __start_test_table,
			       .end = __stop_test_table,
			       .patterns = "fuzz.*",
			       .emit = say_nothing};

	input.data = data;
	input.size = size;
	test_run_table(&run);
	if (run.fail > 0 || run.pass != 1)
		abort();
	return 0;
}

/* In place of tests/bench/payload.c: the machine is up. */
void payload_run(void)
{
	exit(LLVMFuzzerRunDriver(&input.argc, &input.argv, LLVMFuzzerTestOneInput));
}

int main(int argc, char **argv)
{
	input.argc = argc;
	input.argv = argv;
	/* an input does the same each time, and nobody waits for a thread to be scheduled */
	host_config.cpus = 1;
	host_config.ram = MIB(768);
	host_machine_init();
	host_machine_run("");
}
