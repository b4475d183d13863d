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
 * CPU, which finds the leaf split already, go on to 3 before the round of the one who split it: mm->splits_unflushed.
 *
 * Why the shared page may be mapped at once: all tails of an order are the same 64 bytes. Before pass 3 the head's
 * frame holds the head and 63 tails in final form, so a stale translation of the other frames reads old struct pages of the
 * same run, which nobody may use while it is in transit, and those frames are not reused before round 4.
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

#include "kernel/panic.h"
#include "kernel/percpu.h"
#include "kernel/wait.h"
#include "mm/memmap.h"
#include "mm/meta.h"
#include "mm/section.h"
#include "mm/transit.h"
#include "mm/vmemmap.h"

static struct node *meta_node_of(struct mm *mm, u32 index)
{
	return &mm->node[zone_node(block_zone(mm, index))->meta_node];
}

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
		atomic_add_relaxed(&mm->tables, 1);
	else
		meta_give(mm, table, 0); /* another CPU was first */
	return split;
}

/* Every section that a run reaches into. Returns how many were split, or -ENOMEM (then *split counts those before). */
static int split_run(struct mm *mm, u32 index, u32 *split)
{
	const u32 end = index + order_blocks(block_at(mm, index)->order);

	for (u64 section = index / SECTION_BLOCKS; section * SECTION_BLOCKS < end; section++) {
		const int one = split_section(mm, meta_node_of(mm, index), section);

		if (one < 0)
			return one;
		*split += (u32)one;
	}
	return 0;
}

/* The round that splits need, and then those of others who split what we found split. */
static void split_round(struct mm *mm, u32 split)
{
	struct wait wait = wait_begin(wait_deadline_cpus(), "another CPU's round after a PMD split");

	if (split > 0) {
		shootdown_full(SHOOTDOWN_ALL_CPUS);
		atomic_fetch_sub(&mm->splits_unflushed, split);
	}
	while (atomic_load_acquire(&mm->splits_unflushed) != 0)
		wait_spin(&wait, CPU_NONE);
}

/* Split all sections of the list; what cannot be split stays a leaf and is left out by the remap pass. */
static void split_pass(struct mm *mm, const struct hvo_mode *mode, const struct block_list *list)
{
	u32 split = 0;

	for (u32 index = list->head; index != BLOCK_NONE; index = block_at(mm, index)->next) {
		if (split_run(mm, index, &split) < 0)
			break;
		if (split > 0 && mode->flush_each) {
			split_round(mm, split);
			split = 0;
		}
	}
	split_round(mm, split);
}

/* ---- pass 3 and 4: remap ---- */

/* Frames that a line no longer maps wait for the next round. */
static void gate_frames(struct mm *mm, const pfn_t frames[MEMMAP_FRAMES_PER_BLOCK])
{
	const u64 tag = shootdown_tag();

	for (unsigned i = 0; i < MEMMAP_FRAMES_PER_BLOCK; i++)
		if (frames[i] != PFN_NONE)
			meta_give(mm, frames[i], tag);
}

/* A frame with the head of `order` and 63 tails. It is reserved. */
static pfn_t new_head_frame(struct mm *mm, u32 index, unsigned order)
{
	const pfn_t head = meta_take(meta_node_of(mm, index), META_LONG);

	memmap_init_head_frame(phys_to_virt(head << PAGE_SHIFT), order, block_at(mm, index)->zone);
	return head;
}

/* Bare: one head frame, lines of shared tails, no flush. */
static void huge_from_bare(struct mm *mm, u32 index)
{
	const unsigned order = block_at(mm, index)->order;
	const pfn_t tail = vmemmap_shared_tail(mm, block_zone(mm, index), order);

	for (u32 i = 1; i < order_blocks(order); i++) {
		vmemmap_set_nohead(mm, index + i, tail);
		block_set_state(mm, index + i, BLOCK_NOHEAD);
	}
	vmemmap_set_huge(mm, index, new_head_frame(mm, index, order), tail);
	block_set_state(mm, index, BLOCK_HUGE);
}

static bool run_has_leaf(const struct mm *mm, u32 index)
{
	for (u32 i = 0; i < order_blocks(block_at(mm, index)->order); i += SECTION_BLOCKS)
		if (!vmemmap_line(mm, index + i))
			return true;
	return false;
}

/* Private struct pages: share the tails, gate what they were in. -ENOMEM if a leaf over them could not be split. */
static int huge_from_full(struct mm *mm, const struct hvo_mode *mode, u32 index)
{
	struct zone *zone = block_zone(mm, index);
	const unsigned order = block_at(mm, index)->order;
	const pfn_t tail = vmemmap_shared_tail(mm, zone, order);
	pfn_t head = PFN_NONE, frames[MEMMAP_FRAMES_PER_BLOCK];

	if (run_has_leaf(mm, index)) {
		if (mode->new_head)
			meta_unreserve(meta_node_of(mm, index), META_LONG, 1);
		return -ENOMEM;
	}
	if (mode->new_head)
		head = new_head_frame(mm, index, order);
	else
		memmap_init_head_frame(pfn_page(mm, block_pfn(index)), order, zone->index);
	vmemmap_share_tails(mm, index, head, tail, frames);
	gate_frames(mm, frames);
	block_set_state(mm, index, BLOCK_HUGE);
	for (u32 i = 1; i < order_blocks(order); i++) {
		vmemmap_share_all(mm, index + i, tail, frames);
		gate_frames(mm, frames);
		block_set_state(mm, index + i, BLOCK_NOHEAD);
	}
	return 0;
}

/* 1 if translations changed and a round is due, 0 if not, -ENOMEM. */
static int optimise_one(struct mm *mm, const struct hvo_mode *mode, u32 index)
{
	switch (block_at(mm, index)->state) {
	case BLOCK_HUGE:
		return 0; /* as it was left: head formed and frozen, tails shared; not even touched */
	case BLOCK_BARE:
		huge_from_bare(mm, index);
		return 0;
	case BLOCK_FULL:
		return huge_from_full(mm, mode, index) < 0 ? -ENOMEM : 1;
	default:
		panic("block %u is %s, not one that can become huge", index,
		      block_state_name(block_at(mm, index)->state));
	}
}

static void form_all(struct mm *mm, const struct block_list *list)
{
	for (u32 index = list->head; index != BLOCK_NONE; index = block_at(mm, index)->next) {
		struct page *head = pfn_page(mm, block_pfn(index));

		memmap_form_compound(head, block_at(mm, index)->order);
		page_set_kind(head, head->flags | PAGE_HUGETLB, block_at(mm, index)->order);
		atomic_store_release(&head->refcount, 0);
	}
}

static bool list_has_mapped_full(const struct mm *mm, const struct block_list *list)
{
	for (u32 index = list->head; index != BLOCK_NONE; index = block_at(mm, index)->next)
		if ((block_at(mm, index)->flags & BLOCK_MAPPED) && block_at(mm, index)->state == BLOCK_FULL)
			return true;
	return false;
}

u64 hvo_optimise(struct mm *mm, const struct hvo_mode *mode, struct block_list *list)
{
	struct block_list bad = BLOCK_LIST_INIT;
	bool round_due = false;
	u64 failed;

	if (!mode->optimise) {
		form_all(mm, list);
		return 0;
	}
	if (list_has_mapped_full(mm, list))
		split_pass(mm, mode, list);
	for (u32 index = list->head, next; index != BLOCK_NONE; index = next) {
		const int changed = optimise_one(mm, mode, index);

		next = block_at(mm, index)->next;
		if (changed < 0) {
			block_list_remove(mm, list, index);
			block_list_push(mm, &bad, index);
		}
		if (changed > 0 && mode->flush_each)
			shootdown_full(mode->idle);
		round_due |= changed > 0;
	}
	if (round_due && !mode->flush_each)
		shootdown_full(mode->idle);
	failed = bad.count;
	block_list_publish_free(mm, &bad);
	return failed;
}

/* ---- restore ---- */

/* Where the struct pages of a block came from: its section's memmap, counted by that block's node. */
struct tails_source {
	struct node *node;
	enum meta_kind kind;
};

/* Reserve `count` frames where the memmap of the section is, or else of any tails. */
static int reserve_tails(struct mm *mm, u32 index, u64 count, struct tails_source *source)
{
	struct node *home = block_at(mm, section_memmap(mm, index / SECTION_BLOCKS))->meta->node;

	*source = (struct tails_source){.node = home, .kind = META_MEMMAP};
	if (meta_reserve_now(home, META_MEMMAP, count) == 0)
		return 0;
	source->node = meta_node_of(mm, index);
	return meta_reserve_tails(source->node, count, &source->kind);
}

/* Frames [from, 8) of a block, filled with free struct pages: from its own section's memmap if that is the kind. Reserved. */
static void fill_tails(struct mm *mm, const struct tails_source *source, u32 index, unsigned from,
		       pfn_t frames[MEMMAP_FRAMES_PER_BLOCK])
{
	const u32 memmap = source->kind == META_MEMMAP ? section_memmap(mm, index / SECTION_BLOCKS) : BLOCK_NONE;

	for (unsigned i = from; i < MEMMAP_FRAMES_PER_BLOCK; i++) {
		frames[i] = meta_take_from(source->node, source->kind, memmap);
		memmap_init_pages(phys_to_virt(frames[i] << PAGE_SHIFT), STRUCTS_PER_FRAME, block_at(mm, index)->zone);
	}
}

/* All frames of a run are reserved before its first line changes, so it is restored whole or not at all. */
static int restore_run(struct mm *mm, u32 index)
{
	const u32 blocks = order_blocks(block_at(mm, index)->order);
	struct tails_source source;
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK];

	if (reserve_tails(mm, index, (u64)blocks * MEMMAP_FRAMES_PER_BLOCK - 1, &source) < 0)
		return -ENOMEM;
	for (u32 i = blocks; i-- > 1;) {
		fill_tails(mm, &source, index + i, 0, frames);
		vmemmap_set_full(mm, index + i, frames);
		block_set_state(mm, index + i, BLOCK_FULL);
	}
	fill_tails(mm, &source, index, 1, frames);
	vmemmap_unshare_tails(mm, index, frames);
	/* The head's frame, in place. */
	memmap_init_pages(pfn_page(mm, block_pfn(index)), STRUCTS_PER_FRAME, block_at(mm, index)->zone);
	block_set_state(mm, index, BLOCK_FULL);
	return 0;
}

int hvo_restore(struct mm *mm, const struct hvo_mode *mode, struct block_list *list, struct block_list *done,
		u64 *restored)
{
	int err = 0;

	*restored = 0;
	while (list->head != BLOCK_NONE) {
		const u32 index = list->head;
		const bool huge = block_at(mm, index)->state == BLOCK_HUGE && (block_at(mm, index)->flags & BLOCK_MAPPED);

		if (huge && (err = restore_run(mm, index)) < 0)
			break;
		block_list_pop(mm, list);
		block_list_push(mm, done, index);
		*restored += huge;
		if (huge && mode->flush_each)
			shootdown_full(mode->idle);
	}
	if (*restored > 0 && !mode->flush_each)
		shootdown_full(mode->idle);
	return err;
}

/* ---- demotion ---- */

/* Phase 1: not present. The head's frame is kept for the first of the new pages. */
static pfn_t demote_clear(struct mm *mm, u32 index)
{
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK], head;

	vmemmap_clear(mm, index, frames);
	head = frames[0];
	for (u32 i = 1; i < GIB_BLOCKS; i++)
		vmemmap_clear(mm, index + i, frames);
	return head;
}

/* Phase 2, after the round: 512 heads with tails of order 9. */
static void demote_map(struct mm *mm, u32 index, struct block_list *done)
{
	struct zone *zone = block_zone(mm, index);
	const pfn_t tail = vmemmap_shared_tail(mm, zone, BLOCK_ORDER), first = block_at(mm, index)->owner;

	block_at(mm, index)->owner = 0;
	for (u32 i = 0; i < GIB_BLOCKS; i++) {
		struct block *block = block_at(mm, index + i);

		block->order = BLOCK_ORDER;
		if (i == 0) {
			memmap_init_head_frame(phys_to_virt(first << PAGE_SHIFT), BLOCK_ORDER, zone->index);
			vmemmap_set_huge(mm, index, first, tail);
		} else {
			vmemmap_set_huge(mm, index + i, new_head_frame(mm, index, BLOCK_ORDER), tail);
			block_set_state(mm, index + i, BLOCK_HUGE);
			block_set_flags(block, BLOCK_TRANSIT); /* was covered by the head's mark */
		}
		block_list_push(mm, done, index + i);
	}
}

u64 hvo_demote(struct mm *mm, struct block_list *list, struct block_list *done)
{
	struct block_list cleared = BLOCK_LIST_INIT, kept = BLOCK_LIST_INIT;
	u64 demoted;
	u32 index;

	while ((index = block_list_pop(mm, list)) != BLOCK_NONE) {
		if (meta_reserve(meta_node_of(mm, index), META_LONG, GIB_BLOCKS - 1) < 0) {
			block_list_push(mm, &kept, index);
			continue;
		}
		block_at(mm, index)->owner = demote_clear(mm, index);
		block_list_push(mm, &cleared, index);
	}
	*list = kept;
	demoted = cleared.count;
	if (demoted > 0)
		shootdown_wait(shootdown_tag());
	while ((index = block_list_pop(mm, &cleared)) != BLOCK_NONE)
		demote_map(mm, index, done);
	return demoted;
}
