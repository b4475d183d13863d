/* What a harness has whose inputs drive the hosted machine; once in a program. */
#pragma once

#include "kernel/lib/types.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*one_input)(const u8 *data, size_t size));

/* As the runner's: faults belong to the machine; its CPUs are threads with stacks of their own. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0:handle_segv=0:handle_sigbus=0:use_sigaltstack=0:detect_stack_use_"
	       "after_return=0";
}
