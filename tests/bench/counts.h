/*
 * The operations whose instructions, misses, rounds and messages are counted; see counts_bench.c.
 */
#pragma once

#include "kernel/lib/types.h"

enum { COUNTS_STEPS = 2, COUNTS_HELD = 2048 };

struct page;

/*
 * One row: up to two steps that undo each other, such as alloc and free. A step is counted from its
 * call to its return. It returns how many operations it did, and 0 if it could not do all of them.
 */
struct counts_op {
	const char *name;
	const char *step[COUNTS_STEPS]; /* NULL: the row has one step */
	u64 (*run[COUNTS_STEPS])(const struct counts_op *op);
	/* Before and after the steps, not counted; NULL: nothing. begin() is false on failure. */
	bool (*begin)(const struct counts_op *op);
	void (*end)(const struct counts_op *op);
	u64 times;     /* operations of a step */
	u64 stores;    /* stores of rep stosq in an operation of the first step; not counted */
	unsigned cpus; /* the row needs so many CPUs; 0: one */
	bool alike;    /* the first turn is like the others and is counted, too */

	/* ---- what the row varies; each function says which of them it uses ---- */
	unsigned order, request;
	u64 bytes;
	const char *mode; /* a mode of hvo=, or a search of contig= */
};

/* Tables of rows; the last row of each has no name. */
extern const struct counts_op counts_pages[], counts_blocks[], counts_maps[], counts_calls[];

/* A step sent so many messages that belong neither to a round nor to a drain. */
void counts_add_ipis(u64 ipis);

/* Pages that a row holds between its steps. Only one row runs at a time. */
extern struct page *counts_held[COUNTS_HELD];

/* begin() and end() of rows that hold one page of op->order, counts_held[0]. */
bool counts_hold(const struct counts_op *op);
void counts_free(const struct counts_op *op);
