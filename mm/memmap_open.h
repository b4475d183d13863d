/*
 * When struct pages are made: memmap=serial, parallel or lazy.
 *
 *   serial     before S1: one CPU of each node opens its sections mapped
 *   parallel   S1: helpers join, by default all CPUs of the node
 *   lazy       ours: nothing at boot; the allocator opens sections on demand
 *
 * Source: Jordan, "mm: parallelize deferred_init_memmap()" v2, 2020-05, with Duyck's review: one job per range, no shared
 * page counter.
 */
#pragma once

#include "mm/section.h"

/* Style of newly opened sections: on demand unless memmap=serial or parallel. */
enum section_style memmap_style(void);

/* memmap_threads=: a number of threads per node, or a share of the node's CPUs. */
struct memmap_threads {
	unsigned value;
	bool percent;
};

/* What opening one node took. */
struct memmap_opened {
	node_t node;
	u64 sections, ns;
	unsigned threads;
	u64 chunks_min, chunks_max;
};

/*
 * Open every unopened section in one style, all nodes at once, each by one of its CPUs and helpers up to `threads` (0: none).
 * `opened` has room for mm->nodes. No lock held.
 */
void memmap_open_all(struct mm *mm, enum section_style style, struct memmap_threads threads, struct memmap_opened *opened);

/* What memmap= asks for at boot. */
void memmap_open_at_boot(struct mm *mm);

/* Threads that a share or count means on this node. */
unsigned memmap_threads_on(node_t node, struct memmap_threads threads);
