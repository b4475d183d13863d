/*
 * A model of the areas of a program: a worker's window, page by page, with rights, source and
 * contents. Only its worker changes the window, so each answer of the kernel is known in advance.
 * The model is compared with the tree of areas, the page tables, and the contents.
 */
#pragma once

#include "tests/host/fuzz_calls.h"

/* Before the worker's first step: nothing is mapped, and its file has its contents. */
bool fuzz_model_begin(struct fuzz_worker *w);

/* Change the window, or look at some of it. */
void fuzz_model_step(struct fuzz_worker *w);

/* Compare all of the window. */
void fuzz_model_look_at_all(struct fuzz_worker *w);

/*
 * The program's page tables and areas agree, when no thread is left: each leaf lies in an area with
 * its rights, no area is busy, and the counts are what is there. Returns what is wrong, or NULL.
 */
const char *fuzz_tables_wrong(u64 *where);
