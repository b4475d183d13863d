/*
 * The machine page says what machine this is, as measured. The page and the verdict below it fit
 * one screen of 80 columns and 25 rows, so one photograph shows both.
 *
 * The page is printed at the end of a run on real hardware, or with console.page=on. It shows CPUs,
 * the clock, machine checks, and the oddities that were warned about.
 */
#pragma once

#include "kernel/lib/types.h"

/* The kernel is ready: the warnings so far are the machine's oddities. Boot CPU, once. */
void machine_page_ready(void);

/*
 * Print the page, unless console.page= says no. The run is over, CPUs are idle, and memory can be
 * allocated.
 */
void machine_page(void);

/* Print a line of the page. Long texts are broken at blanks and continue on the next rows. */
void sheet_line(const char *name, const char *fmt, ...) __printf(2, 3);

/*
 * For sheet_line() and tests: the number of bytes of `text` that go on a row of `width`, broken at
 * the last blank that fits. Pure.
 */
size_t sheet_break(const char *text, size_t width);
