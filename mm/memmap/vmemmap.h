/*
 * vmemmap: the page tables behind struct page, and the few ways they change.
 *
 *   section (128 MiB) = one PMD entry = 2 MiB of struct pages
 *
 *     on demand   PMD -> table of 512 PTEs = 64 lines of 8
 *                 line n belongs to block n of the section
 *     mapped      PMD leaf -> one 2 MiB block of struct pages
 *                 split into a table when a huge page is optimised
 *
 *   block        its line of 8 PTEs
 *     BARE         [ -  -  -  -  -  -  -  - ]
 *     HUGE         [ H  t  t  t  t  t  t  t ]     H: head frame, RW
 *     NOHEAD       [ t  t  t  t  t  t  t  t ]     t: the shared tail page of (zone, order), RO
 *     FULL         [ p0 p1 p2 p3 p4 p5 p6 p7 ]    private, RW
 *
 * A line is one cache line and belongs to the owner of the block, so two CPUs never write the same
 * line of a table at once. The PMD entry changes under the section's table lock.
 *
 * These functions never flush. Each comment states which translations its caller must flush. Where
 * it asks for a round or says "Gate them", stale translations may exist, so frames that were mapped
 * may only be reused after a round.
 */
#pragma once

#include <arch/pgtable.h>

#include "mm/memmap/zone.h"

/* Address of the struct pages of block `index`. */
static inline virt_t vmemmap_of_block(const struct mm *mm, u32 index)
{
	return mm->vmemmap + ((virt_t)block_pfn(index) << PAGE_STRUCT_SHIFT);
}

/*
 * The block's line of 8 PTEs, or NULL if its section has no table (unopened, or one 2 MiB leaf). No
 * lock is needed while the section is open.
 */
pte_t *vmemmap_line(const struct mm *mm, u32 index);

/* The shared tail page of a zone for order 9 or 18. */
static inline pfn_t vmemmap_shared_tail(const struct mm *mm, const struct zone *zone,
					unsigned order)
{
	return mm->shared_tail[zone->index * TAIL_ORDERS + (order == GIGA_ORDER)];
}

/*
 * Install the PMD entry of a section that has none: a zeroed table of PTEs, or a leaf over 512
 * frames whose struct pages are all initialised. Missing tables of higher levels come from metadata
 * memory. Returns 0, or -ENOMEM with nothing changed for the section.
 */
int vmemmap_install(struct mm *mm, struct node *node, u64 section, pte_t value);

/*
 * Replace a section's leaf by a table with the same 512 translations. Returns 1 if this call split
 * it. Returns 0 if it was split already; `table` then still belongs to the caller, and its contents
 * are undefined.
 *
 * After 1 the caller completes a full round of all CPUs and then lowers mm->splits_unflushed by
 * one. While that counter is not 0, no CPU may change an entry of a table (SDM vol. 3A, 4.10.5: not
 * size and frame in one step; AMD family 10h erratum 383).
 */
int vmemmap_split(struct mm *mm, u64 section, pfn_t table);

/* True if the section is mapped by one leaf. */
bool vmemmap_is_leaf(const struct mm *mm, u64 section);

/*
 * Clear a section's PMD entry and return the entry that was there. The caller completes a full
 * round of all CPUs before it frees the frames.
 */
pte_t vmemmap_clear_section(struct mm *mm, u64 section);

/* vmemmap_line() of a block of an open section that is under a table. */
pte_t *vmemmap_line_open(const struct mm *mm, u32 index);

/*
 * The line that a walk over many blocks found last; {0} at first. Those of the same section lie
 * beside it. The section must stay open from one block to the next.
 */
struct vmemmap_near {
	u32 index;
	pte_t *line;
};

static inline pte_t *vmemmap_line_near(const struct mm *mm, struct vmemmap_near *near, u32 index)
{
	if (near->line && near->index / SECTION_BLOCKS == index / SECTION_BLOCKS)
		near->line += ((s64)index - near->index) * MEMMAP_FRAMES_PER_BLOCK;
	else
		near->line = vmemmap_line_open(mm, index);
	near->index = index;
	return near->line;
}

/* Fill the line of a bare block. Not present -> present: no flush. */
void vmemmap_set_huge(const struct mm *mm, pte_t *line, u32 index, pfn_t head, pfn_t tail);
void vmemmap_set_nohead(const struct mm *mm, pte_t *line, u32 index, pfn_t tail);

/*
 * Point entries [from, 8) of a line to private frames, whose contents are ready. Where they replace
 * shared tails, the caller completes a round before any CPU writes a tail; with `from` 1 the head
 * stays, and frames[0] is ignored.
 */
void vmemmap_set_private(struct mm *mm, u32 index, unsigned from,
			 const pfn_t frames[MEMMAP_FRAMES_PER_BLOCK]);

/* Clear the line of a huge page's block. Returns the frame that was its first: gate a head's. */
pfn_t vmemmap_clear(struct mm *mm, u32 index);

/*
 * Private to shared: the tails of the line now read the shared page. `head` replaces frame 0,
 * unless it is PFN_NONE; then the head stays in place and there is never a second copy of it.
 * `frames` receives the replaced frames; returns how many there are. Gate them.
 */
unsigned vmemmap_share_tails(const struct mm *mm, pte_t *line, u32 index, pfn_t head, pfn_t tail,
			     pfn_t frames[MEMMAP_FRAMES_PER_BLOCK]);

/* Private to shared for blocks 1..511 of a 1 GiB page, which hold no head. Gate the frames. */
unsigned vmemmap_share_all(const struct mm *mm, pte_t *line, u32 index, pfn_t tail,
			   pfn_t frames[MEMMAP_FRAMES_PER_BLOCK]);
