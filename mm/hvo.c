/*
 * HVO: see hvo.h. The passes over a batch, in the order that makes them safe:
 *
 *   1  split     PMD leaf -> table of the same 512 translations             mapped sections only, first use
 *   2  round     every CPU, idle ones too: the size of a mapping changed    only if 1 did anything
 *   3  remap     private struct pages -> shared tail page, read-only        blocks that had private struct pages
 *   4  round     before a replaced frame is reused or the page handed out   only if 3 did anything
 *
 * Bare blocks skip all four: their PTEs go from not present to present, and the TLB caches no translation that is not
 * present (Intel SDM vol. 3A, 4.10.2.3; AMD APM vol. 2, 5.5.2), so there is nothing to flush.
 *
 * Why 1 and 3 are not one step: a CPU may use either translation while an entry changes; if size and frame changed together
 * it could combine them (SDM vol. 3A, 4.10.5 "optional invalidation"; AMD family 10h erratum 383). Nor may another
 * CPU, which finds the leaf split already, go on to 3 before the round of the CPU that split it: mm->splits_unflushed. A leaf that pass
 * 1 could not split stays out of pass 3, although another CPU may have split it by then.
 *
 * Why the shared page may be mapped at once: all tails of an order are the same 64 bytes. Before pass 3 the head's
 * frame holds the head and 63 tails in final form, so a stale translation of the other frames reads old struct pages of the
 * same run, which nobody may use while it is in transit, and those frames are not reused before round 4.
 *
 * Why round 4 may be deferred (hvo=on, hvo_defer=on): until it is done a CPU may read the old struct pages instead of the shared
 * tails. Nobody relies on those of a page that is in a pool or free, because its record, not its struct pages, says what
 * it is; the old frames are gated, so nothing new is in them; and a block that changes state again does so with a round
 * of its own, whose generation is higher. So the round is due when the page is given to a user: the record keeps its tag, and
 * hvo_settle() waits for it. One round serves every batch before it. What bounds the wait of the frames is meta_settle()
 * at the end of a batch, and whoever runs short of frames.
 *
 * Why a batch may be divided among CPUs: a line of PTEs is one cache line and belongs to the block, struct pages of a run to
 * the run; frames come and go under META's lock. The round, one for all stretches, follows when every helper is through.
 *
 * Restoring is the mirror image: frames first, filled, then mapped, then a round, because a tail may only be written once no CPU
 * still has the read-only translation.
 *
 * Who calls with runs in transit owns their records and lines; nothing here is done under a lock.
 *
 * Sources: Kravetz, "Batch hugetlb vmemmap modification operations" v3, 2023-09; Song, "hugetlb: free some vmemmap
 * pages of hugetlb page", 2021.
 */
#include "mm/hvo.h"

#include <arch/check.h>
#include <arch/cpu.h>

#include "kernel/cmdline.h"
#include "kernel/padata.h"
#include "kernel/panic.h"
#include "kernel/percpu.h"
#include "kernel/wait.h"
#include "mm/hvo_steps.h"
#include "mm/pcp.h"
#include "mm/transit.h"
#include "mm/vmemmap.h"

enum { THREADS_AUTO = 8, THREADS_VIRTUAL = 2, PAGES_PER_THREAD = 1024, STRETCHES_PER_THREAD = 4, STRETCHES_MAX = 32 };

static bool hvo_defer = true;
OPTION_BOOL(hvo_defer, hvo_defer, "hvo=on: the round after a remap waits until a page is given out or frames are short");

static u64 hvo_threads;
OPTION_U64(hvo_threads, hvo_threads, 0, 64, "CPUs that make huge pages of one request, hvo=on; 0: as many as pay");

/* ---- pass 1 and 2: split ---- */

/* Split the leaf over one section, if it is one. 1 if split, 0 if there was nothing to do, -ENOMEM. */
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

/* Every section that a run reaches into. Returns how many were split, or -ENOMEM (then *split counts those before). */
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

/* The round that splits need, and then those of others who split what we found split. */
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
 * Split all sections of the list. Where there is no frame for a table, runs that are under the leaf go to `left_out`, and this turn does not
 * look at them again: another CPU may split the leaf any time, and the remap pass, which would find a table then, has not waited for its
 * round. Runs that are under tables by now may be others' splits too: the wait at the end is for all of those.
 */
static void split_pass(struct mm *mm, const struct hvo_mode *mode, struct block_list *list, struct block_list *left_out)
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

/* A frame for the head of the bare block `index`; when there is none left, for those that follow it in its list too. */
static pfn_t stash_take(struct mm *mm, struct head_stash *stash, u32 index)
{
	struct node *node = block_meta_node(mm, index);

	if (stash->at == stash->count) {
		stash->at = stash->count = 0;
		for (u32 i = index; i != BLOCK_NONE && stash->count < HEADS_AT_ONCE; i = block_at(mm, i)->next) {
			if (block_look_at(mm, i).state != BLOCK_BARE || block_meta_node(mm, i) != node)
				break;
			stash->count++;
		}
		meta_take_many(node, META_LONG, stash->frame, stash->count);
	}
	return stash->frame[stash->at++];
}

/* Bare: one head frame, lines of shared tails, no flush. */
static void huge_from_bare(struct mm *mm, struct head_stash *stash, u32 index)
{
	const unsigned order = block_look_at(mm, index).order;
	const pfn_t tail = vmemmap_shared_tail(mm, block_zone(mm, index), order);

	for (u32 i = 1; i < order_blocks(order); i++) {
		vmemmap_set_nohead(mm, index + i, tail);
		block_set_state(mm, index + i, BLOCK_NOHEAD);
	}
	vmemmap_set_huge(mm, index, form_head_frame(mm, index, order, stash_take(mm, stash, index)), tail);
	block_set_state(mm, index, BLOCK_HUGE);
}

/* Frames that a line no longer maps wait for the next round. Returns which. */
static u64 gate_frames(struct mm *mm, const pfn_t frames[MEMMAP_FRAMES_PER_BLOCK])
{
	const u64 tag = shootdown_tag();

	meta_give_many(mm, frames, MEMMAP_FRAMES_PER_BLOCK, tag);
	return tag;
}

/* What the tails were in, after a round for this page alone: nothing is due any more. */
static void give_after_own_round(struct mm *mm, const struct hvo_mode *mode, u32 index, const pfn_t frames[MEMMAP_FRAMES_PER_BLOCK])
{
	hvo_round_of_page(mode, mm, index, BLOCK_ORDER);
	meta_give_many(mm, frames, MEMMAP_FRAMES_PER_BLOCK, 0);
	block_at(mm, index)->tag = 0;
}

/*
 * Private struct pages: share the tails, gate what they were in; the record remembers which round is due. True if one is. Entries of a 1 GiB
 * page are too many for a round of their own.
 */
static bool huge_from_full(struct mm *mm, const struct hvo_mode *mode, u32 index)
{
	struct zone *zone = block_zone(mm, index);
	const unsigned order = block_look_at(mm, index).order;
	const pfn_t tail = vmemmap_shared_tail(mm, zone, order);
	pfn_t head = PFN_NONE, frames[MEMMAP_FRAMES_PER_BLOCK];

	if (mode->new_head)
		head = form_head_frame(mm, index, order, meta_take(block_meta_node(mm, index), META_LONG));
	else
		memmap_init_head_frame(pfn_page(mm, block_pfn(index)), order, zone->index);
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
static bool optimise_one(struct mm *mm, const struct hvo_mode *mode, struct head_stash *stash, u32 index)
{
	const struct block_word word = block_look_at(mm, index);

	switch (word.state) {
	case BLOCK_HUGE:
		return false; /* as it was left: head formed and frozen, tails shared; not even touched */
	case BLOCK_BARE:
		huge_from_bare(mm, stash, index);
		return false;
	case BLOCK_FULL:
		return huge_from_full(mm, mode, index);
	default:
		panic("block %u is %s, not one that can become huge", index, block_state_name(word.state));
	}
}

/*
 * As an earlier page of the same kind left it: see struct hvo_mode, keep. Blocks of a 1 GiB page may have been something else in between;
 * whoever uses one writes all its struct pages, so the first of each says it.
 */
static bool is_formed(const struct page *head, unsigned order)
{
	const struct page_kind kind = page_kind(head);

	if (kind.flags != (PAGE_COMPOUND | PAGE_HUGETLB) || kind.order != order)
		return false;
	for (u64 i = BLOCK_FRAMES; i < order_pages(order); i += BLOCK_FRAMES)
		if (!(page_kind(&head[i]).flags & PAGE_TAIL) || head[i].head_mask != head_mask_of(order))
			return false;
	return true;
}

void hvo_form(struct mm *mm, const struct hvo_mode *mode, const struct block_list *list)
{
	for (u32 index = list->head; index != BLOCK_NONE; index = block_at(mm, index)->next) {
		struct page *head = pfn_page(mm, block_pfn(index));
		const unsigned order = block_look_at(mm, index).order;

		if (mode->keep && is_formed(head, order))
			continue;
		memmap_form_compound(head, order);
		page_set_kind(head, head->flags | PAGE_HUGETLB, order);
		atomic_store_release(&head->refcount, 0);
	}
}

/* What a batch asks for: runs that are not huge yet, and whether leaves may have to be split. */
struct survey {
	u64 to_do;
	bool mapped;
};

static struct survey survey_list(const struct mm *mm, const struct block_list *list)
{
	struct survey survey = {0};

	for (u32 index = list->head; index != BLOCK_NONE; index = block_at(mm, index)->next) {
		const struct block_word word = block_look_at(mm, index);

		survey.to_do += word.state != BLOCK_HUGE;
		survey.mapped |= (word.flags & BLOCK_MAPPED) && word.state == BLOCK_FULL;
	}
	return survey;
}

/* A stretch of a list, and what came of it. Threads share nothing but the locks of META. */
struct stretch {
	struct mm *mm;
	const struct hvo_mode *mode;
	struct block_list list;
	cpu_t asker;
	bool remapped; /* a round is due */
};

static void optimise_stretch(struct stretch *s)
{
	struct head_stash stash = {.count = 0};

	for (u32 index = s->list.head; index != BLOCK_NONE; index = block_at(s->mm, index)->next) {
		const bool changed = optimise_one(s->mm, s->mode, &stash, index);

		if (changed && s->mode->remap_each)
			hvo_round(s->mode);
		s->remapped |= changed;
	}
}

/* ---- many CPUs ---- */

static void optimise_stretches(u64 start, u64 end, void *arg)
{
	struct stretch *stretches = arg;

	for (u64 i = start; i < end; i++) {
		optimise_stretch(&stretches[i]);
		if (cpu_id() != stretches[i].asker)
			mm_count(stretches[i].mm, COUNT_STRETCHES_HELPED, 1);
	}
}

unsigned hvo_threads_for(const struct hvo_mode *mode, u64 pages)
{
	const u64 auto_most = cpu_deadline_scale() > 1 ? THREADS_VIRTUAL : THREADS_AUTO;
	const u64 most = hvo_threads ? hvo_threads : auto_most;

	if (!mode->parallel || pages < 2 * PAGES_PER_THREAD)
		return 1;
	return (unsigned)MIN(MIN(most, pages / PAGES_PER_THREAD), cpumask_weight(&cpus_online));
}

/* Cut the list into stretches, let the CPUs take them one by one, and put it together again in its order. */
static void optimise_parallel(struct stretch *whole, unsigned threads)
{
	struct padata_mt_job job = {.thread_fn = optimise_stretches, .max_threads = threads, .node = NODE_NONE};
	struct stretch stretches[STRETCHES_MAX];
	const u64 count = MIN(threads * STRETCHES_PER_THREAD, STRETCHES_MAX);

	for (u64 i = 0; i < count; i++) {
		stretches[i] = (struct stretch){.mm = whole->mm, .mode = whole->mode, .asker = cpu_id()};
		block_list_cut(whole->mm, &whole->list, whole->list.count / (count - i), &stretches[i].list);
	}
	job.arg = stretches;
	job.size = count;
	padata_run(&job);
	for (u64 i = 0; i < count; i++) {
		block_list_splice(whole->mm, &whole->list, &stretches[i].list);
		whole->remapped |= stretches[i].remapped;
	}
}

/* All passes once. What could not be split goes to `left_out`; a head frame reserved for it still is. */
static void optimise_once(struct mm *mm, const struct hvo_mode *mode, struct block_list *list, struct block_list *left_out)
{
	struct stretch whole = {.mm = mm, .mode = mode};
	const struct survey survey = survey_list(mm, list);
	unsigned threads;

	if (survey.to_do == 0)
		return; /* all as it was left */
	if (survey.mapped)
		split_pass(mm, mode, list, left_out);
	whole.list = *list;
	threads = hvo_threads_for(mode, MIN(survey.to_do, list->count));
	if (threads > 1)
		optimise_parallel(&whole, threads);
	else
		optimise_stretch(&whole);
	*list = whole.list;
	if (whole.remapped && !mode->remap_each && !(mode->defer && hvo_defer))
		hvo_round(mode);
}

/* What pass 3 gave up is flushed before pass 1 is tried again. */
static void free_gathered(struct mm *mm)
{
	for (node_t n = 0; n < mm->nodes; n++)
		meta_flush_gated(&mm->node[n]);
}

u64 hvo_optimise(struct mm *mm, const struct hvo_mode *mode, struct block_list *list, struct block_list *left)
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
	for (u32 index = todo.head; index != BLOCK_NONE && mode->new_head; index = block_at(mm, index)->next)
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
	check_event(CHECK_SETTLED, vmemmap_of_block(mm, index), order_pages(word.order - BLOCK_ORDER));
}
