/*
 * Definitions for a harness whose inputs drive the hosted machine; include it once in a program.
 * The machine boots, and then LLVMFuzzerTestOneInput() is called for each input.
 */
#pragma once

#include <stdlib.h>

#include "kernel/main.h"
#include "tests/kernel/test.h"
#include "tests/host/host.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*one_input)(const u8 *data, size_t size));

/*
 * The options of the hosted runner: faults belong to the machine, and its CPUs are threads with
 * stacks of their own.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0:handle_segv=0:handle_sigbus=0:use_sigaltstack=0:detect_stack_use_"
	       "after_return=0";
}

static struct {
	int argc;
	char **argv;
} program;

/* Takes the place of the function in tests/bench/payload.c. The machine is up. */
void payload_run(void)
{
	exit(LLVMFuzzerRunDriver(&program.argc, &program.argv, LLVMFuzzerTestOneInput));
}

/* With one CPU, an input does the same each time. */
int main(int argc, char **argv)
{
	program.argc = argc;
	program.argv = argv;
	host_config.cpus = 1;
	host_config.ram = MIB(768);
	host_machine_init();
	host_machine_run("");
}

/* For inputs that are cases: the input of the case fuzz.*. */
static const u8 *case_data;
static size_t case_size;

static inline void say_nothing(const struct test_run *run, const char *text)
{
}

/* Run the program's one case on an input, with all checks that follow a case. */
static inline int run_case(const u8 *data, size_t size)
{
	struct test_run run = {.begin = __start_test_table,
			       .end = __stop_test_table,
			       .patterns = "fuzz.*",
			       .emit = say_nothing};

	case_data = data;
	case_size = size;
	test_run_table(&run);
	if (run.fail > 0 || run.pass != 1)
		abort();
	return 0;
}
