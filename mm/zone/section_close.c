/*
 * Closing a section: it becomes as if it had never been opened, so that a benchmark's leg starts
 * from a known state and memory can change its style. See section.h.
 *
 *   before                free huge blocks become BARE (one round for all), per-CPU lists are
 *                         drained; sections_close_all() does both
 *   under the zone lock   is every block free? split runs that reach beyond, unlink all 64, mark
 *                         them in transit
 *   no lock               clear the PMD; one full round of all CPUs for up to 32 sections, idle
 *                         CPUs included, because page-table pages are freed
 *   then                  frames, table and struct pages back to metadata memory; blocks and
 *                         section UNOPENED
 */
#include "mm/zone/section_close.h"

#include "kernel/core/shootdown.h"
#include "kernel/core/wait.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/enter.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/vmemmap.h"
#include "mm/zone/buddy.h"
#include "mm/zone/buddy_small.h"
#include "mm/zone/isolate.h"
#include "mm/zone/meta_grow.h"

struct closing {
	struct mm *mm;
	struct zone *zone;
	u32 first, memmap;
	u8 *slot, was; /* the section's state byte, and its value before CLOSING */
	pte_t pmd;     /* the entry that section_leave() cleared */
};

enum { CLOSE_AT_ONCE = 32 };

/*
 * True if every block is free in this zone, or absent, or holds the section's own struct pages, and
 * no isolation covers any of them. Zone lock held.
 */
static bool section_is_free(const struct closing *c)
{
	if (isolate_covers(c->zone, c->first, SECTION_BLOCKS))
		return false;
	for (u32 i = c->first; i < c->first + SECTION_BLOCKS; i++) {
		const struct block_word word = block_look_at(c->mm, i);

		if (word.state == BLOCK_HUGE || word.state == BLOCK_NOHEAD)
			return false;
		if (block_word_type(word) == MIGRATE_CMA)
			return false; /* opening the section again would lose its type */
		if (word.state != BLOCK_ABSENT && i != c->memmap &&
		    (word.zone != c->zone->index || buddy_find_run(c->mm, i) == BLOCK_NONE))
			return false;
	}
	return true;
}

static void unlink_all(struct closing *c)
{
	for (u32 i = c->first; i < c->first + SECTION_BLOCKS; i++) {
		const u32 head = buddy_find_run(c->mm, i);

		if (head != BLOCK_NONE)
			i = buddy_unlink_within(c->zone, head, c->first,
						c->first + SECTION_BLOCKS) -
			    1;
	}
	for (u32 i = c->first; i < c->first + SECTION_BLOCKS; i++) {
		struct block *block = block_at(c->mm, i);
		struct block_word word = block_look(block);

		if (word.state == BLOCK_ABSENT)
			continue;
		word.flags |= BLOCK_TRANSIT;
		word.target = BLOCK_UNOPENED;
		block_put(block, word);
		counter_add(&c->zone->transit, BLOCK_FRAMES);
	}
}

/*
 * Number of frames of the section's own memmap block that its lines still use: all 512 under a
 * leaf.
 */
static unsigned own_memmap_frames(const struct closing *c)
{
	const pte_t *line = vmemmap_line(c->mm, c->first);
	unsigned own = 0;

	if (!line)
		return BLOCK_FRAMES;
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		const pte_t pte = pte_load(&line[i]);

		if (pte_writable(pte) && pte_pfn(pte) >> BLOCK_ORDER == c->memmap)
			own++;
	}
	return own;
}

/* Under the zone lock: take all blocks, or change nothing. */
static int take_section(struct closing *c)
{
	int err = -EBUSY;

	zone_lock(c->zone);
	if (section_is_free(c))
		err = c->memmap == BLOCK_NONE
			      ? 0
			      : meta_remove_block(block_at(c->mm, c->memmap)->meta->node, c->memmap,
						  own_memmap_frames(c));
	if (!err)
		unlink_all(c);
	zone_unlock(c->zone);
	return err;
}

/*
 * Free the frames that the lines of a dismantled table mapped, and the table itself. The round is
 * complete, so no frame is gated.
 */
static void free_table(struct closing *c, pte_t pmd)
{
	const pte_t *ptes = pte_table(pmd);

	if (pte_is_leaf(pmd, PT_PMD))
		return; /* the frames are those of the memmap block, which goes with the section */
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		const pte_t pte = pte_load(&ptes[i]);

		if (pte_writable(pte) && pte_pfn(pte) >> BLOCK_ORDER != c->memmap)
			meta_give(c->mm, pte_pfn(pte), 0);
	}
	meta_give(c->mm, pte_pfn(pmd), 0);
	mm_count(c->mm, COUNT_TABLES, (u64)-1);
}

static void forget_blocks(struct closing *c)
{
	u64 frames = 0;

	zone_lock(c->zone);
	for (u32 i = c->first; i < c->first + SECTION_BLOCKS; i++) {
		const struct block_word word = block_look_at(c->mm, i);

		if (word.state == BLOCK_ABSENT)
			continue;
		block_put_states(
			c->mm, i, 1,
			BLOCK_WORD(.state = BLOCK_UNOPENED, .type = word.type, .zone = word.zone),
			NULL);
		frames += BLOCK_FRAMES;
	}
	counter_sub(&c->zone->transit, frames);
	counter_add(&c->zone->unopened, frames);
	zone_unlock(c->zone);
}

/*
 * The next sections to be opened are the lowest, so that memory that was in use returns before
 * memory that was never touched. The cursor is a hint, so races cost little.
 */
static void lower_open_cursor(struct zone *zone, u64 section)
{
	if (section < atomic_load_relaxed(&zone->open_cursor))
		atomic_store_relaxed(&zone->open_cursor, section);
}

/* The caller holds the state CLOSING. */
static int leave_claimed(struct closing *c)
{
	const u64 section = c->first / SECTION_BLOCKS;
	int err;

	c->memmap = c->was & SECTION_MAPPED ? section_memmap(c->mm, section) : BLOCK_NONE;
	for (u32 i = c->first; i < c->first + SECTION_BLOCKS && !c->zone; i++)
		if (block_look_at(c->mm, i).state != BLOCK_ABSENT)
			c->zone = block_zone(c->mm, i);
	if (!c->zone)
		return -EBUSY; /* no block of it was ever free */
	err = take_section(c);
	if (!err)
		c->pmd = vmemmap_clear_section(c->mm, section);
	return err;
}

/* The first half of closing, before the round that the caller makes. As section_close() returns. */
static int section_leave(struct mm *mm, u64 section, struct closing *c)
{
	u8 *slot = section_slot(mm, section);
	const u8 was = slot ? atomic_load_acquire(slot) : SECTION_ABSENT;
	int err;

	if ((was & SECTION_STATE_MASK) == SECTION_ABSENT ||
	    (was & SECTION_STATE_MASK) == SECTION_UNOPENED)
		return -ENODEV;
	if ((was & SECTION_STATE_MASK) != SECTION_OPEN ||
	    !atomic_cas(slot, was, (u8)SECTION_CLOSING))
		return -EAGAIN;
	*c = (struct closing){
		.mm = mm, .first = (u32)(section * SECTION_BLOCKS), .slot = slot, .was = was};
	err = leave_claimed(c);
	if (err)
		atomic_store_release(slot, was);
	return err;
}

/* One round for `count` sections, and the second half of closing each. */
static void finish_closing(struct closing *closing, unsigned count)
{
	if (count > 0)
		shootdown_full(SHOOTDOWN_ALL_CPUS);
	for (struct closing *c = closing; c < closing + count; c++) {
		free_table(c, c->pmd);
		forget_blocks(c);
		if (c->memmap != BLOCK_NONE &&
		    c->memmap / SECTION_BLOCKS != c->first / SECTION_BLOCKS)
			meta_leave_block(block_zone(c->mm, c->memmap), c->memmap); /* free there */
		lower_open_cursor(c->zone, c->first / SECTION_BLOCKS);
		mm_count(c->mm, COUNT_SECTIONS_CLOSED, 1);
		atomic_store_release(c->slot, (u8)SECTION_UNOPENED);
	}
}

int section_close(struct mm *mm, u64 section)
{
	struct closing c;
	const int err = section_leave(mm, section, &c);

	if (!err)
		finish_closing(&c, 1);
	return err;
}

/*
 * A block that was split ahead of its use (page_split.h) is in pieces although all of it is free.
 * When a piece is taken and given back, all become one again.
 */
static void merge_pieces(struct zone *zone, u32 index)
{
	zone_lock(zone);
	if (block_look_at(zone->mm, index).free_pages == BLOCK_FRAMES &&
	    buddy_take_frame(zone, block_page(zone->mm, index)))
		buddy_free_pages(zone, block_page(zone->mm, index), 0);
	zone_unlock(zone);
}

/* One load of a word says both if there is something to do and in which zone. */
static void merge_all_pieces(struct mm *mm)
{
	for (u64 section = section_first(mm); section < section_end(mm); section++) {
		const u32 first = (u32)(section * SECTION_BLOCKS);

		for (u32 index = first;
		     section_state(mm, section) == SECTION_OPEN && index < first + SECTION_BLOCKS;
		     index++) {
			const struct block_word word = block_look_at(mm, index);

			if (word.free_pages == BLOCK_FRAMES)
				merge_pieces(&mm->zone[word.zone], index);
		}
	}
}

static void flush_all(struct mm *mm)
{
	for (node_t n = 0; n < mm->nodes; n++)
		meta_flush_gated(&mm->node[n]);
}

/*
 * Make free blocks give up their struct pages, so that metadata memory shrinks to the frames in use
 * and keeps as few sections open as possible.
 */
static void bare_all_free(struct mm *mm)
{
	u64 moved = 0;

	for (unsigned z = 0; z < mm->zones; z++) {
		mm_upward.huge_free_full(&mm->zone[z], ~0ULL);
		mm_upward.bare_free_huge(&mm->zone[z], ~0ULL);
	}
	flush_all(mm);
	for (unsigned z = 0; z < mm->zones; z++)
		moved += mm_upward.bring_home(&mm->zone[z]);
	if (moved > 0)
		flush_all(mm);
	for (node_t n = 0; n < mm->nodes; n++)
		meta_trim_all(&mm->node[n]);
}

enum { KEEP_NONE = -1 };

/*
 * Close the free sections but those of style `keep`. A section that holds the struct pages of other
 * sections can close only after them.
 */
static u64 close_all(struct mm *mm, int keep)
{
	struct closing closing[CLOSE_AT_ONCE];
	u64 closed = 0, before;

	do {
		unsigned count = 0;

		before = closed;
		for (u64 section = section_first(mm); section < section_end(mm); section++) {
			if ((int)section_style(mm, section) != keep)
				count += section_leave(mm, section, &closing[count]) == 0;
			if (count == CLOSE_AT_ONCE || section + 1 == section_end(mm)) {
				finish_closing(closing, count);
				closed += count;
				count = 0;
			}
		}
	} while (closed > before);
	return closed;
}

u64 sections_close_all(struct mm *mm)
{
	mm_upward.drain_all(mm);
	bare_all_free(mm);
	return close_all(mm, KEEP_NONE);
}

/*
 * Sections that other CPUs are closing may hold all free memory. Each such CPU waits for one round
 * at most.
 */
static void await_closing(const struct mm *mm)
{
	struct wait wait = wait_begin(WAIT_OPENING, "sections that other CPUs close");

	for (u64 section = section_first(mm); section < section_end(mm); section++)
		while (section_state(mm, section) == SECTION_CLOSING && wait.late == 0)
			wait_spin(&wait, CPU_NONE);
}

void sections_give_back(struct mm *mm, enum section_style wanted)
{
	mm_upward.drain_all(mm);
	merge_all_pieces(mm);
	bare_all_free(mm);
	if (close_all(mm, (int)wanted) > 0)
		bare_all_free(mm);
	await_closing(mm);
}
