/*
 * libFuzzer harness for what a virtio balloon can do to its driver. The hosted machine boots once,
 * and each input is a case of its own: a device in software answers with these bytes, writes them
 * anywhere into the queues, and asks for any amount of memory. Between rounds a pool grows and
 * shrinks. All checks that follow a case are made: every frame has one owner.
 *
 * The harness is linked as ops_fuzz.c is: tests/host/host.mk.
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

TEST(fuzz, balloon)
{
	random_balloon(input.data, input.size);
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
	host_config.cpus = 1; /* an input does the same each time */
	host_config.ram = MIB(768);
	host_machine_init();
	host_machine_run("");
}
