/*
 * padata: one job over a range, cut into chunks that CPUs take until none is left.
 *
 *   nworks = min(size / max(min_chunk, align), max_threads), at least 1
 *   chunk  = roundup(max(size / (4 * nworks), min_chunk, 1), align)
 *
 * Helpers end on chunk borders; the caller works too, so a job makes progress with no helper at all. One job covers
 * the whole range, and chunks share nothing (Duyck's review of Jordan's series, 2020-05, asks for both):
 *
 *   chunks   0 1 2 3 | 4 5 6 7 | 8 9 10 11      one share for each participant, up to 16, each with a cursor of its own
 *   taken    caller    helper    helper         first the own share, then what is left of the next ones
 *
 * So two participants write to one cache line only when one has finished its share and takes over another's, or when they are
 * more than 16. A function that counts keeps its count by chunk or by CPU, and the caller adds them up.
 *
 * Source: Jordan, "padata: add basic support for multithreaded jobs", 2020-06 (there one cursor under one lock), and the review
 * of its v2.
 */
#pragma once

#include "kernel/types.h"

struct padata_mt_job {
	void (*thread_fn)(u64 start, u64 end, void *arg); /* [start, end) */
	void *arg;
	u64 start, size;
	u64 align;         /* chunk borders are multiples of this; 0 means 1 */
	u64 min_chunk;     /* smallest amount worth handing out */
	unsigned max_threads; /* caller included; 0 or 1: the caller alone */
	node_t node;       /* helpers come from this node's CPUs, or from all with NODE_NONE */

	/* Filled in by padata_run(). */
	unsigned threads;        /* that took part, caller included */
	u64 chunks_min, chunks_max; /* by one participant, among those asked */
};

/* Do the whole job and return when every chunk is done. Caller holds no lock. Never fails. */
void padata_run(struct padata_mt_job *job);

/* The chunk rule, pure, for tests. */
u64 padata_chunk_size(u64 size, u64 align, u64 min_chunk, unsigned max_threads);
