/*
 * When and how struct pages are made: memmap=
 *
 *   serial     before the memmap series (Jordan 2020): one CPU of each node goes through
 *              its sections; no job, no chunks
 *   parallel   that series: a job per node whose chunks all CPUs of the node take, by default;
 *              struct pages made as before
 *   eager      ours, at boot: the job of the memmap series, struct pages streamed past
 *              the caches, memory freed a section at a time
 *   lazy       ours: nothing at boot; the allocator opens sections on demand
 *
 * One difference from Linux: there the vmemmap is mapped long before, and pieces of 4 MiB are made
 * and freed one by one. Here all struct pages of a section are made first, then one mapping shows
 * all of them, then the section's memory is freed (in serial and parallel in pieces of 4 MiB, as
 * there).
 *
 * Source: Jordan, "mm: parallelize deferred_init_memmap()" v2, 2020-05, with Duyck's review: one
 * job per range, no shared page counter.
 */
#pragma once

#include "mm/memmap/memmap.h"
#include "mm/zone/section.h"

struct memmap_way {
	const char *name;
	enum section_style style;
	const struct memmap_make *make;
	bool job;  /* CPUs of the node take chunks of one job; else one of them does everything */
	u64 chunk; /* sections of a chunk; 0: as in the memmap series, four chunks a thread */
};

enum { WAY_SERIAL, WAY_PARALLEL, WAY_EAGER, WAY_LAZY };
extern const struct memmap_way memmap_ways[]; /* ends with a name of NULL */

/* Style of newly opened sections: on demand with memmap=lazy, else mapped. */
enum section_style memmap_style(void);

/* memmap.threads=: a number of threads per node, or a share of the node's CPUs. */
struct memmap_threads {
	unsigned value;
	bool percent;
};

/* Cost of opening one node's sections. */
struct memmap_opened {
	node_t node;
	u64 sections, ns;
	unsigned threads;
	u64 chunks_min, chunks_max; /* opened by one thread; 0 where no chunks were made */
};

/*
 * Open every unopened section in one way, on all nodes at once. Each node is done by one of its
 * CPUs and, if the way makes a job of it, by helpers up to `threads`. `opened` has room for
 * mm->nodes. No lock held.
 */
void memmap_open_all(struct mm *mm, const struct memmap_way *way, struct memmap_threads threads,
		     struct memmap_opened *opened);

/*
 * Open at boot as memmap= asks; afterwards memmap_boot says what was asked for and what the
 * slowest node took.
 */
void memmap_open_at_boot(struct mm *mm);

extern struct memmap_boot {
	const struct memmap_way *way;
	struct memmap_threads asked;
	const struct memmap_opened *opened; /* by node; all 0 with memmap=lazy */
} memmap_boot;

/* The number of threads that a share or count means on this node. */
unsigned memmap_threads_on(node_t node, struct memmap_threads threads);
