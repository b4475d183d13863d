/* The entry of the program, which defines it. */
#pragma once

/*
 * Run tests, benchmarks or the user's program, as the command line asks. Called on the boot CPU, in
 * the ordinary context (mm/mm.h): once at the end of start-up, or by each `start` in the monitor.
 * Ends the run or returns.
 */
void payload_run(void);
