/*
 * Clearing huge pages: large extents, in the order that leaves what is used next in the cache.
 *
 *   multi   [=========== left ===========][-2 -1 fault +1 +2][============ right ============]
 *                    first                      last                     second
 *
 *   page    the farthest page from the fault first, both sides in turn, each page by itself: as Linux does it
 *
 * A 1 GiB page has no neighbourhood worth keeping: it is cleared in extents of clear_extent=, which idle CPUs share in
 * slices of one extent, and of 32 MiB at least. With `whole` it is one instruction of one CPU.
 *
 * How an extent is interrupted: a rep instruction between two of its stores, with the rest of the count in RCX (SDM vol. 2B, REP), a
 * loop between two instructions. So with interrupts on its length delays nobody. With interrupts off, CPUs that wait for this one
 * are answered between extents: after 32 MiB, 1 to 3 ms at 10 to 30 GB/s, or with `whole` after 1 GiB, 30 to 100 ms.
 *
 * Source: Arora, "mm/clear_huge_page: use multi-page clearing", 2023-04; Ying Huang's converging order before it,
 * 2017-08.
 */
#pragma once

#include <arch/clear.h>

#include "kernel/types.h"

/*
 * What one instruction is given at most unless clear_extent= says otherwise: about 3 ms at 10 GB/s, and enough for a CPU to see how
 * large it is. Also the least that is worth a helper.
 */
#define CLEAR_EXTENT MIB(32)

/* One instruction for all of a page. */
#define CLEAR_WHOLE (~0ULL)

/* No address in the page is wanted more than others. */
#define CLEAR_NO_HINT (~0ULL)

struct clear_how;

/* Baselines and ours: clear=. */
struct clear_mode {
	const char *name;
	void (*huge)(const struct clear_how *how, char *page, u64 bytes, u64 hint); /* up to 32 MiB */
	bool by_page;  /* 4 KiB at a time, whatever clear_extent= says */
	bool parallel; /* larger pages are shared among idle CPUs */
};
extern const struct clear_mode clear_modes[]; /* page, multi; ends with a NULL name */

/* One way of clearing, whole: what benchmarks and tests vary. */
struct clear_how {
	const struct clear_mode *mode;
	const struct clear_insn *insn[CLEAR_CLASSES];
	u64 extent; /* of mode multi, most for one instruction: 4 KiB to 1 GiB in powers of two, CLEAR_WHOLE, or 0 for CLEAR_EXTENT */
	unsigned threads; /* for pages beyond 32 MiB, the caller included */
};

/* An extent as clear_extent= has it: "64K", "32M", "1G", "whole". */
void clear_extent_name(u64 extent, char *buf, size_t size);

/* As the command line and the CPU say. A benchmark may override the choice; passing NULL restores it. */
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
