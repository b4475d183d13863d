/*
 * HVO: see hvo.h. The passes over a batch, in the order that makes them safe:
 *
 *   1  split   PMD leaf -> table of the same 512 translations; mapped sections only, on first use
 *   2  round   every CPU, idle ones too: the size of a mapping changed; only if 1 did anything
 *   3  remap   private struct pages -> shared tail page, read-only; blocks that had private struct
 *              pages
 *   4  round   before a replaced frame is reused or the page is handed out; only if 3 did anything
 *
 * Bare blocks skip all four. Their PTEs go from not present to present, and the TLB caches no
 * translation that is not present (Intel SDM vol. 3A, 4.10.2.3; AMD APM vol. 2, 5.5.2), so there is
 * nothing to flush.
 *
 * Why 1 and 3 are not one step: while an entry changes, a CPU may use either translation. If size
 * and frame changed together, the CPU could combine them (SDM vol. 3A, 4.10.5 "optional
 * invalidation"; AMD family 10h erratum 383). Another CPU may find the leaf split already. It may
 * not go on to pass 3 before the round of the CPU that split it; mm->splits_unflushed counts such
 * rounds. A leaf that pass 1 could not split stays out of pass 3, although another CPU may have
 * split it by then.
 *
 * Why the shared page may be mapped at once: all tails of an order are the same 64 bytes. Before
 * pass 3 the head's frame holds the head and 63 tails in final form. A stale translation of the
 * other frames reads old struct pages of the same run. No other code may use those while the run is
 * in transit, and their frames are not reused before round 4.
 *
 * Why round 4 may be deferred (hvo=on, hvo_defer=on): until it is done, a CPU may read the old
 * struct pages instead of the shared tails. This is safe for three reasons:
 *
 * 1. No code relies on the struct pages of a page that is in a pool or free, because the page's
 *    record, not its struct pages, says what it is.
 * 2. The old frames are gated, so nothing new is written to them.
 * 3. A block that changes state again does so with a round of its own, whose generation is higher.
 *
 * So the round is due when the page is given to a user: the record keeps its tag, and hvo_settle()
 * waits for it. One round serves every batch before it. The frames' wait is bounded by
 * meta_settle() at the end of a batch, and by any CPU that runs short of frames.
 *
 * Why pass 3 may be divided among CPUs (hvo_share.h): a line of PTEs is one cache line and belongs
 * to the block, and the struct pages of a run belong to the run. Frames are taken and given under
 * META's lock. The round, one for all stretches, follows when every helper has finished.
 *
 * Restoring is the mirror image: frames first, filled, then mapped, then a round, because a tail
 * may only be written once no CPU still has the read-only translation.
 *
 * A caller that passes runs in transit owns their records and lines; nothing here is done under a
 * lock.
 *
 * Sources: Kravetz, "Batch hugetlb vmemmap modification operations" v3, 2023-09; Song, "hugetlb:
 * free some vmemmap pages of hugetlb page", 2021.
 */
#include "mm/hvo/hvo.h"

#include <arch/check.h>
#include <arch/cpu.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/wait.h"
#include "mm/hvo/hvo_share.h"
#include "mm/hvo/hvo_steps.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/enter.h"
#include "mm/memmap/vmemmap.h"
#include "mm/zone/transit.h"

static bool hvo_defer = true;
OPTION_BOOL(hvo_defer, hvo_defer,
	    "hvo=on: the round after a remap waits until a page is given out or frames are short");

/* ---- pass 1 and 2: split ---- */

/*
 * Split the leaf over one section, if it is under a leaf. 1 if this call split it, 0 if there was
 * nothing to do, -ENOMEM.
 */
static int split_section(struct mm *mm, struct node *node, u64 section)
{
	pfn_t table;
	int split;

	if (!vmemmap_is_leaf(mm, section))
		return 0;
	if (meta_reserve(node, META_LONG, 1) < 0)
		return -ENOMEM;
	table = meta_take(node, META_LONG);
	split = vmemmap_split(mm, section, table);
	if (split)
		mm_count(mm, COUNT_TABLES, 1);
	else
		meta_give(mm, table, 0); /* another CPU was first */
	return split;
}

/*
 * Split every section that a run reaches into, and add the number of splits to *split. 0, or
 * -ENOMEM; *split then counts the splits made before the failure.
 */
static int split_run(struct mm *mm, u32 index, u32 *split)
{
	const u32 end = index + order_blocks(block_look_at(mm, index).order);

	for (u64 section = index / SECTION_BLOCKS; section * SECTION_BLOCKS < end; section++) {
		const int one = split_section(mm, block_meta_node(mm, index), section);

		if (one < 0)
			return one;
		*split += (u32)one;
	}
	return 0;
}

/*
 * Complete the round that `split` splits need, then wait for the rounds of other CPUs that split a
 * leaf which this CPU found split.
 */
static void split_round(struct mm *mm, u32 split)
{
	struct wait wait = wait_begin(WAIT_TRANSIT, "another CPU's round after a PMD split");

	wait.soft = true; /* the round has deadlines of its own */
	if (split > 0) {
		shootdown_full(SHOOTDOWN_ALL_CPUS);
		atomic_fetch_sub(&mm->splits_unflushed, split);
	}
	while (atomic_load_acquire(&mm->splits_unflushed) != 0)
		wait_spin(&wait, CPU_NONE);
}

static bool run_has_leaf(const struct mm *mm, u32 index)
{
	const u32 blocks = order_blocks(block_look_at(mm, index).order);

	for (u32 i = 0; i < blocks; i += SECTION_BLOCKS)
		if (!vmemmap_line(mm, index + i))
			return true;
	return false;
}

/*
 * Split all sections of the list. If there is no frame for a table, the runs that are under the
 * leaf go to `left_out`, and this turn does not look at them again. Another CPU may split the leaf
 * at any time, and the remap pass would then find a table without having waited for its round. Runs
 * that are under tables already may owe that to another CPU's split: the wait at the end covers
 * those as well.
 */
static void split_pass(struct mm *mm, const struct hvo_mode *mode, struct block_list *list,
		       struct block_list *left_out)
{
	u64 starved = ~0ULL;
	u32 split = 0;

	for (u32 index = list->head, next; index != BLOCK_NONE; index = next) {
		const u64 section = index / SECTION_BLOCKS;

		next = block_at(mm, index)->next;
		if (section != starved && split_run(mm, index, &split) < 0)
			starved = section;
		if (section == starved && run_has_leaf(mm, index)) {
			block_list_remove(mm, list, index);
			block_list_push(mm, left_out, index);
		}
		if (split > 0 && mode->split_each) {
			split_round(mm, split);
			split = 0;
		}
	}
	split_round(mm, split);
}

/* ---- pass 3 and 4: remap ---- */

/*
 * Take a reserved frame for the head of block `index`. If the stash is empty, fill it with frames
 * for this block and for the blocks after it in its list, as long as they are in the same state and
 * use the same META.
 */
static pfn_t stash_take(struct mm *mm, struct head_stash *stash, u32 index)
{
	const enum block_state state = block_look_at(mm, index).state;
	struct node *node = block_meta_node(mm, index);

	if (stash->at == stash->count) {
		stash->at = stash->count = 0;
		for (u32 i = index; i != BLOCK_NONE && stash->count < HEADS_AT_ONCE;
		     i = block_at(mm, i)->next) {
			if (block_look_at(mm, i).state != state || block_meta_node(mm, i) != node)
				break;
			stash->count++;
		}
		meta_take_many(node, META_LONG, stash->frame, stash->count);
	}
	return stash->frame[stash->at++];
}

/* Optimise a bare run: one head frame, lines of shared tails, no flush. */
static void huge_from_bare(struct mm *mm, struct head_stash *stash, u32 index)
{
	const unsigned order = block_look_at(mm, index).order;
	const pfn_t tail = vmemmap_shared_tail(mm, block_zone(mm, index), order);

	for (u32 i = 1; i < order_blocks(order); i++) {
		vmemmap_set_nohead(mm, index + i, tail);
		block_set_state(mm, index + i, BLOCK_NOHEAD);
	}
	vmemmap_set_huge(mm, index, form_head_frame(mm, index, order, stash_take(mm, stash, index)),
			 tail);
	block_set_state(mm, index, BLOCK_HUGE);
}

/*
 * Give back the frames that a line no longer maps; they wait for the next round. Returns the
 * generation of that round.
 */
static u64 gate_frames(struct mm *mm, const pfn_t frames[MEMMAP_FRAMES_PER_BLOCK])
{
	const u64 tag = shootdown_tag();

	meta_give_many(mm, frames, MEMMAP_FRAMES_PER_BLOCK, tag);
	return tag;
}

/*
 * Free the frames of the tails after a round for this page alone. No round is due for the page any
 * more.
 */
static void give_after_own_round(struct mm *mm, const struct hvo_mode *mode, u32 index,
				 const pfn_t frames[MEMMAP_FRAMES_PER_BLOCK])
{
	hvo_round_of_page(mode, mm, index, BLOCK_ORDER);
	meta_give_many(mm, frames, MEMMAP_FRAMES_PER_BLOCK, 0);
	block_at(mm, index)->tag = 0;
}

/*
 * Optimise a run with private struct pages: share the tails and gate their frames. The record keeps
 * the tag of the round that is due. Returns true if a round is due. A 1 GiB page has too many
 * entries for a round of its own.
 */
static bool huge_from_full(struct mm *mm, const struct hvo_mode *mode, struct head_stash *stash,
			   u32 index)
{
	struct zone *zone = block_zone(mm, index);
	const unsigned order = block_look_at(mm, index).order;
	const pfn_t tail = vmemmap_shared_tail(mm, zone, order);
	pfn_t head = PFN_NONE, frames[MEMMAP_FRAMES_PER_BLOCK];

	if (mode->new_head)
		head = form_head_frame(mm, index, order, stash_take(mm, stash, index));
	else
		memmap_init_head_frame(block_page(mm, index), order, zone->index);
	vmemmap_share_tails(mm, index, head, tail, frames);
	if (mode->remap_each && order == BLOCK_ORDER) {
		give_after_own_round(mm, mode, index, frames);
		block_set_state(mm, index, BLOCK_HUGE);
		return false;
	}
	block_at(mm, index)->tag = gate_frames(mm, frames);
	block_set_state(mm, index, BLOCK_HUGE);
	for (u32 i = 1; i < order_blocks(order); i++) {
		vmemmap_share_all(mm, index + i, tail, frames);
		block_at(mm, index)->tag = gate_frames(mm, frames);
		block_set_state(mm, index + i, BLOCK_NOHEAD);
	}
	return true;
}

/* True if translations changed and a round is due. */
static bool optimise_one(struct mm *mm, const struct hvo_mode *mode, struct head_stash *stash,
			 u32 index)
{
	const struct block_word word = block_look_at(mm, index);

	switch (word.state) {
	case BLOCK_HUGE:
		/*
		 * unchanged since it was last huge: head formed and frozen, tails shared; not even
		 * touched
		 */
		return false;
	case BLOCK_BARE:
		huge_from_bare(mm, stash, index);
		return false;
	case BLOCK_FULL:
		return huge_from_full(mm, mode, stash, index);
	default:
		panic("block %u is %s, not one that can become huge", index,
		      block_state_name(word.state));
	}
}

/*
 * Is the page still formed as an earlier page of the same kind left it (see struct hvo_mode, keep)?
 * Blocks of a 1 GiB page may have been used otherwise in between. Any user of a block writes all
 * its struct pages, so checking the first one of each block is enough.
 */
static bool is_formed(const struct page *head, unsigned order)
{
	const struct page_kind kind = page_kind(head);

	if (kind.flags != (PAGE_COMPOUND | PAGE_HUGETLB) || kind.order != order)
		return false;
	for (u64 i = BLOCK_FRAMES; i < order_pages(order); i += BLOCK_FRAMES)
		if (!(page_kind(&head[i]).flags & PAGE_TAIL) ||
		    head[i].head_mask != head_mask_of(order))
			return false;
	return true;
}

static void form_stretch(struct stretch *s)
{
	block_list_foreach(s->mm, index, &s->list) {
		struct page *head = block_page(s->mm, index);
		const unsigned order = block_look_at(s->mm, index).order;

		if (s->mode->keep && is_formed(head, order))
			continue;
		memmap_form_compound(head, order);
		page_set_kind(head, head->flags | PAGE_HUGETLB, order);
		atomic_store_release(&head->refcount, 0);
	}
}

void hvo_form(struct mm *mm, const struct hvo_mode *mode, struct block_list *list)
{
	struct stretch whole = {.mm = mm, .mode = mode, .list = *list};

	hvo_share(&whole, list->count, form_stretch);
	*list = whole.list;
}

/*
 * What a batch needs: the number of runs that are not huge yet, and whether leaves may have to be
 * split.
 */
struct survey {
	u64 to_do;
	bool mapped;
};

static struct survey survey_list(const struct mm *mm, const struct block_list *list)
{
	struct survey survey = {0};

	block_list_foreach(mm, index, list) {
		const struct block_word word = block_look_at(mm, index);

		survey.to_do += word.state != BLOCK_HUGE;
		survey.mapped |= (word.flags & BLOCK_MAPPED) && word.state == BLOCK_FULL;
	}
	return survey;
}

static void optimise_stretch(struct stretch *s)
{
	struct head_stash stash = {.count = 0};

	block_list_foreach(s->mm, index, &s->list) {
		const bool changed = optimise_one(s->mm, s->mode, &stash, index);

		if (changed && s->mode->remap_each)
			hvo_round(s->mode);
		s->remapped |= changed;
	}
}

/*
 * Run all passes once. Runs that could not be split go to `left_out`; a head frame reserved for
 * such a run stays reserved.
 */
static void optimise_once(struct mm *mm, const struct hvo_mode *mode, struct block_list *list,
			  struct block_list *left_out)
{
	struct stretch whole = {.mm = mm, .mode = mode};
	const struct survey survey = survey_list(mm, list);

	if (survey.to_do == 0)
		return; /* all are huge already */
	if (survey.mapped)
		split_pass(mm, mode, list, left_out);
	whole.list = *list;
	hvo_share(&whole, MIN(survey.to_do, list->count), optimise_stretch);
	*list = whole.list;
	if (whole.remapped && !mode->remap_each && !(mode->defer && hvo_defer))
		hvo_round(mode);
}

/* Free the frames that pass 3 gave up, with a round, before pass 1 is tried again. */
static void free_gathered(struct mm *mm)
{
	for (node_t n = 0; n < mm->nodes; n++)
		meta_flush_gated(&mm->node[n]);
}

u64 hvo_optimise(struct mm *mm, const struct hvo_mode *mode, struct block_list *list,
		 struct block_list *left)
{
	struct block_list todo = *list;
	u64 before;

	*left = BLOCK_LIST_INIT;
	if (!mode->optimise) {
		hvo_form(mm, mode, list);
		return 0;
	}
	*list = BLOCK_LIST_INIT;
	do {
		struct block_list left_out = BLOCK_LIST_INIT;

		before = todo.count;
		optimise_once(mm, mode, &todo, &left_out);
		block_list_splice(mm, list, &todo);
		todo = left_out;
		if (todo.count > 0 && todo.count < before)
			free_gathered(mm);
	} while (todo.count > 0 && todo.count < before);
	for (u32 index = todo.head; index != BLOCK_NONE && mode->new_head;
	     index = block_at(mm, index)->next)
		meta_unreserve(block_meta_node(mm, index), META_LONG, 1);
	*left = todo;
	return todo.count;
}

void hvo_settle(struct mm *mm, u32 index)
{
	const struct block *head = block_at(mm, index);
	const struct block_word word = block_look(head);

	if (word.state == BLOCK_HUGE)
		shootdown_wait(head->tag);
	check_event(CHECK_SETTLED, vmemmap_of_block(mm, index),
		    order_pages(word.order - BLOCK_ORDER));
}
