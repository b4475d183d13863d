/*
 * Clearing huge pages: large extents, in the order that leaves what is used next in the cache.
 *
 *   multi   [=========== left ===========][-2 -1 fault +1 +2][============ right ============]
 *                    first                      last                     second
 *
 *   page    the farthest page from the fault first, both sides in turn, each page by itself: as Linux does it
 *
 * A 1 GiB page has no neighbourhood worth keeping: it is cleared in whole extents, which idle CPUs share in slices of
 * at least 32 MiB.
 *
 * Source: Arora, "mm/clear_huge_page: use multi-page clearing", 2023-04; Ying Huang's converging order before it,
 * 2017-08.
 */
#pragma once

#include <arch/clear.h>

#include "kernel/types.h"

/* Longest extent given to one instruction: about 3 ms at 10 GB/s, and enough for a CPU to see how large it is. */
#define CLEAR_EXTENT_MAX MIB(32)

/* No address in the page is wanted more than others. */
#define CLEAR_NO_HINT (~0ULL)

struct clear_how;

/* Baselines and ours: clear=. */
struct clear_mode {
	const char *name;
	void (*huge)(const struct clear_how *how, char *page, u64 bytes, u64 hint); /* up to 32 MiB */
	u64 extent; /* how much of a larger page is cleared at a time */
	bool parallel;
};
extern const struct clear_mode clear_modes[]; /* page, multi; ends with a NULL name */

/* One way of clearing, whole: what benchmarks and tests vary. */
struct clear_how {
	const struct clear_mode *mode;
	const struct clear_insn *insn[CLEAR_CLASSES];
	unsigned threads; /* for pages beyond 32 MiB, the caller included */
};

/* As the command line and the CPU say; or, until it is told NULL, as a benchmark does. */
struct clear_how clear_how_selected(void);
void clear_how_force(const struct clear_how *how);

/*
 * Clear a huge page at `addr` (direct map, aligned to its size; 64 KiB or more). `hint`: offset of the byte that is
 * wanted first, or CLEAR_NO_HINT. Helpers come from `node`, where the memory is. No lock held; interrupts on or off:
 * with them off the mailbox is served between extents. Never fails.
 */
void clear_huge(const struct clear_how *how, void *addr, u64 bytes, u64 hint, node_t node);

/*
 * Measure every variant for each class on memory of this machine and use the fastest (clear_calibrate=on); a class
 * that there is no memory for keeps CPUID's. Prints what it chose. Boot CPU, once, pages can be allocated.
 */
void clear_calibrate(void);
