/* What the program defines, not the kernel. */
#pragma once

/*
 * Run tests, benchmarks or the user's program, as the command line asks. Called once, on the boot
 * CPU, in the ordinary context (mm/mm.h). Ends the run or returns.
 */
void payload_run(void);
