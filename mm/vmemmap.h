/*
 * vmemmap: the page tables behind struct page, and the few ways they change.
 *
 *   section (128 MiB) = one PMD entry = 2 MiB of struct pages
 *
 *     on demand   PMD -> table of 512 PTEs = 64 lines of 8      line n belongs to block n of the section
 *     mapped      PMD leaf -> one 2 MiB block of struct pages   split into a table when a huge page is optimised
 *
 *   block        its line of 8 PTEs
 *     BARE         [ -  -  -  -  -  -  -  - ]
 *     HUGE         [ H  t  t  t  t  t  t  t ]     H: head frame, RW; t: the shared tail page of (zone, order), RO
 *     NOHEAD       [ t  t  t  t  t  t  t  t ]
 *     FULL         [ p0 p1 p2 p3 p4 p5 p6 p7 ]    private, RW
 *
 * A line is one cache line and belongs to whoever owns the block, so two CPUs never write one table line at once. The
 * PMD entry changes under the section's table lock.
 *
 * None of these functions flushes: they return what has to be flushed by being documented. "Present" below means that
 * stale translations may exist, so frames that were mapped may only be reused after a round.
 */
#pragma once

#include <arch/pgtable.h>

#include "mm/zone.h"

/* Address of the struct pages of block `index`. */
static inline virt_t vmemmap_of_block(const struct mm *mm, u32 index)
{
	return mm->vmemmap + ((virt_t)block_pfn(index) << PAGE_STRUCT_SHIFT);
}

/* The block's line of 8 PTEs, or NULL if its section has no table (unopened, or one 2 MiB leaf). No lock needed while the section is open. */
pte_t *vmemmap_line(const struct mm *mm, u32 index);

/* Shared tail page of a zone for order 9 or 18. */
pfn_t vmemmap_shared_tail(const struct mm *mm, const struct zone *zone, unsigned order);

/* Install an empty PTE table for a section that has none. `table` is a zeroed frame. Tables above come from META. */
int vmemmap_install_table(struct mm *mm, struct node *node, u64 section, pfn_t table);

/* Install a 2 MiB leaf for a mapped section: `frame` is the first of 512, all struct pages initialised. */
int vmemmap_install_leaf(struct mm *mm, struct node *node, u64 section, pfn_t frame);

/*
 * Replace a section's leaf by a table with the same 512 translations. 1 if this call split it, 0 if it was split
 * already (then `table` is untouched and still the caller's). After 1: a full round of all CPUs, then
 * mm->splits_unflushed is lowered by one. While it is not 0 nobody changes an entry of a table (SDM vol. 3A, 4.10.5: not size
 * and frame in one step; AMD family 10h erratum 383).
 */
int vmemmap_split(struct mm *mm, u64 section, pfn_t table);

/* True if the section is under one leaf. */
bool vmemmap_is_leaf(const struct mm *mm, u64 section);

/* Clear a section's PMD entry; returns the entry that was there. After it: a full round of all CPUs, then the frames are free. */
pte_t vmemmap_clear_section(struct mm *mm, u64 section);

/* Lines. Set: not present -> present, no flush. */
void vmemmap_set_huge(struct mm *mm, u32 index, pfn_t head, pfn_t tail);
void vmemmap_set_nohead(struct mm *mm, u32 index, pfn_t tail);
void vmemmap_set_full(struct mm *mm, u32 index, const pfn_t frames[MEMMAP_FRAMES_PER_BLOCK]);

/* Clear a line; `frames` receives what was mapped (PFN_NONE for shared or absent). Gate them. */
void vmemmap_clear(struct mm *mm, u32 index, pfn_t frames[MEMMAP_FRAMES_PER_BLOCK]);

/*
 * Private to shared: tails now read the shared page; `head` replaces frame 0 unless it is PFN_NONE (then the head stays
 * in place and there is never a second copy of it). `frames` receives the replaced ones. Gate them.
 */
void vmemmap_share_tails(struct mm *mm, u32 index, pfn_t head, pfn_t tail, pfn_t frames[MEMMAP_FRAMES_PER_BLOCK]);

/* The same for blocks 1..511 of a 1 GiB page: no head among them. */
void vmemmap_share_all(struct mm *mm, u32 index, pfn_t tail, pfn_t frames[MEMMAP_FRAMES_PER_BLOCK]);

/* Shared to private: frames[0] is ignored, the head stays. Contents are ready before. A round before any tail is written. */
void vmemmap_unshare_tails(struct mm *mm, u32 index, const pfn_t frames[MEMMAP_FRAMES_PER_BLOCK]);
