/*
 * padata: one job over a range, cut into chunks that CPUs take until none is left.
 *
 *   nworks = min(size / max(min_chunk, align), max_threads), at least 1
 *   chunk  = roundup(max(size / (4 * nworks), min_chunk, 1), align)
 *
 * A job may ask for smaller chunks, because the last participant is alone for up to one chunk.
 * Helpers end on chunk borders. The caller works too, so a job makes progress without any helper.
 * One job covers the whole range, and chunks share nothing (Duyck's review of the memmap
 * series (Jordan 2020), 2020-05, asks for both):
 *
 *   chunks   0 1 2 3 | 4 5 6 7 | 8 9 10 11    one share, with its own cursor, for each participant
 *                                             (at most 16 shares)
 *   taken    caller    helper    helper       first the own share, then the rest of the next ones
 *
 * Two participants therefore write to one cache line only if one has finished its share and takes
 * over another's, or if there are more than 16. A function that counts keeps its count by chunk or
 * by CPU, and the caller adds the counts up.
 *
 * Source: Jordan, "padata: add basic support for multithreaded jobs", 2020-06 (there one cursor
 * under one lock), and the review of its v2.
 */
#pragma once

#include "kernel/lib/types.h"

struct padata_mt_job {
	void (*thread_fn)(u64 start, u64 end, void *arg); /* [start, end) */
	void *arg;
	u64 start, size;
	u64 align;            /* chunk borders are multiples of this; 0 means 1 */
	u64 min_chunk;        /* smallest amount worth giving to a helper */
	u64 chunk;            /* size of a chunk, before it is rounded up; 0: by the rule above */
	unsigned max_threads; /* caller included; 0 or 1: the caller alone */
	node_t node;          /* helpers come from this node's CPUs; NODE_NONE: from any */

	/* Filled in by padata_run(). */
	unsigned threads;           /* that took part, caller included */
	u64 chunks_min, chunks_max; /* fewest and most chunks done by one participant */
};

/* Do the whole job and return when every chunk is done. The caller holds no lock. Never fails. */
void padata_run(struct padata_mt_job *job);

/* The chunk size by the rule above. Pure, for tests. */
u64 padata_chunk_size(u64 size, u64 align, u64 min_chunk, unsigned max_threads);
