/*
 * The machine page: what this machine is, as measured, and what the techniques gained on it, as text that fits one screen of 80
 * columns and 25 rows with the verdict below it, and so one photograph. The same as records stands before it.
 *
 * Printed at the end of a run on real hardware, or with page=on: CPUs, caches, TLBs, clocks, counters, machine checks, the
 * nodes' measured latencies and read rates, techniques and their gains, and the oddities that were warned about.
 */
#pragma once

#include "kernel/types.h"

/* The run is over, CPUs are idle, memory can be allocated. Nothing if page= says no. */
void machine_page(void);

/* A line of the page while it is printed: long texts are broken at blanks, and go on below. */
void page_line(const char *name, const char *fmt, ...) __printf(2, 3);

/*
 * What a benchmark has found out about a technique against its baseline, in this run, for the page: the latest text of each name, in
 * at most 68 characters; names of up to 8. More than a few are dropped. Boot CPU.
 */
void page_gain(const char *name, const char *fmt, ...) __printf(2, 3);

/* For page_line() and tests: how many bytes of `text` go on a row of `width`, broken at the last blank that allows it. Pure. */
size_t page_break(const char *text, size_t width);
