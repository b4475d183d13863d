/*
 * Definitions for a harness whose inputs drive the hosted machine; include it once in a program.
 */
#pragma once

#include "kernel/lib/types.h"

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
