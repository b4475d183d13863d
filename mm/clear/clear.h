/*
 * Clearing huge pages: large extents, in the order that leaves in the cache what is used next.
 *
 *   multi   [=========== left ===========][-2 -1 fault +1 +2][============ right ============]
 *                    first                      last                     second
 *
 *   page    the farthest page from the fault first, both sides in turn, each page by itself: as
 *           Linux does it
 *
 * A 1 GiB page has no neighbourhood worth keeping in the cache. It is cleared in extents of
 * clear.extent=, which idle CPUs share in slices of one extent, and of 32 MiB at least. With
 * `whole` it is cleared by one instruction of one CPU.
 *
 * An extent can be interrupted. A rep instruction is interrupted between two of its stores, with
 * the rest of the count in RCX (SDM vol. 2B, REP), and a loop between two instructions. With
 * interrupts on, the length of an extent therefore delays no other CPU. With interrupts off, CPUs
 * that wait for this one are answered between extents: after 32 MiB, 1 to 3 ms at 10 to 30 GB/s, or
 * with `whole` after 1 GiB, 30 to 100 ms.
 *
 * Source: Arora, "mm/clear_huge_page: use multi-page clearing", 2023-04; Ying Huang's converging
 * order before it, 2017-08.
 */
#pragma once

#include <arch/clear.h>

#include "kernel/lib/types.h"

/*
 * The most that one instruction is given unless clear.extent= says otherwise: about 3 ms at 10
 * GB/s, and long enough for a CPU to recognise a large clear. Also the least that is worth a
 * helper.
 */
#define CLEAR_EXTENT MIB(32)

/* One instruction clears the whole page. */
#define CLEAR_WHOLE (~0ULL)

/* No address in the page will be used sooner than the others. */
#define CLEAR_NO_HINT (~0ULL)

struct clear_how;

/* Rows of clear=: the baseline and our mode. */
struct clear_mode {
	const char *name;
	/* clears a page of up to 32 MiB */
	void (*huge)(const struct clear_how *how, char *page, u64 bytes, u64 hint);
	bool by_page;  /* 4 KiB at a time, whatever clear.extent= says */
	bool parallel; /* larger pages are shared among idle CPUs */
};
extern const struct clear_mode clear_modes[]; /* page, multi; ends with a NULL name */

/* One complete way of clearing, which benchmarks and tests vary. */
struct clear_how {
	const struct clear_mode *mode;
	const struct clear_insn *insn[CLEAR_CLASSES];
	/*
	 * Mode multi: the most for one instruction, 4 KiB to 1 GiB in powers of two, CLEAR_WHOLE,
	 * or 0 for CLEAR_EXTENT.
	 */
	u64 extent;
	unsigned threads; /* CPUs for a page beyond 32 MiB, the caller included */
};

/*
 * The way that the command line and the CPU select. A benchmark may override the choice; passing
 * NULL restores it.
 */
struct clear_how clear_how_selected(void);
void clear_how_force(const struct clear_how *how);

/*
 * Clear a huge page at `addr` (direct map, aligned to its size; 64 KiB or more). `hint` is the
 * offset of the byte that is used first, or CLEAR_NO_HINT. Helpers come from `node`, where the
 * memory is. No lock held; interrupts on or off. With interrupts off, the mailbox is served between
 * extents. Never fails.
 */
void clear_huge(const struct clear_how *how, void *addr, u64 bytes, u64 hint, node_t node);
void clear_huge_as_selected(void *addr, u64 bytes, u64 hint, node_t node);
