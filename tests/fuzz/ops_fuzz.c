/*
 * libFuzzer harness for sequences of operations. The hosted machine boots once, and each input is a
 * case of its own, with all checks that follow a case: every frame has one owner, by counters and
 * by walking; no page is kept; the pools are as at boot.
 *
 *	input   byte 0: how much of the rest, in 256ths, chooses operations on pages, pools,
 *	        sections and ranges of an arena against a reference allocator; the others choose
 *	        operations on huge mappings of the machine (tests/kernel/random.h)
 *
 * In addition to the operations of the random cases, it uses every search of contig= (by the
 * arena's first byte), every mode of hvo= (in arenas that may have mapped sections), a pool of 1
 * GiB pages and its demotion, CMA and bad frames. Mappings are populated, grown, protected and
 * promised. For some operations one pass of one site fails.
 *
 * The machine goes on from input to input. It keeps little (page tables of mappings), but an error
 * of one input may show in a later one. If a crash does not show alone, replay it together with the
 * inputs before it.
 *
 * The harness is linked with the hosted machine's objects and libFuzzer, or with replay.c in its
 * place: tests/host/host.mk.
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

/* Takes the place of the function in tests/bench/payload.c. The machine is up. */
void payload_run(void)
{
	exit(LLVMFuzzerRunDriver(&input.argc, &input.argv, LLVMFuzzerTestOneInput));
}

int main(int argc, char **argv)
{
	input.argc = argc;
	input.argv = argv;
	/*
	 * With one CPU, an input does the same each time, and no time is lost to the scheduling of
	 * threads.
	 */
	host_config.cpus = 1;
	host_config.ram = MIB(768);
	host_machine_init();
	host_machine_run("");
}
