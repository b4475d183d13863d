/*
 * HVO: see hvo.h. The passes over a batch, in the order that makes them safe:
 *
 *   1  split     PMD leaf -> table of the same 512 translations             mapped sections only, first use
 *   2  round     every CPU, idle ones too: the size of a mapping changed    only if 1 did anything
 *   3  remap     PTEs 1..7 -> shared tail page, read-only                   blocks that had private struct pages
 *   4  round     before a replaced frame is reused or the page handed out   only if 3 did anything
 *
 * Bare blocks skip all four: their PTEs go from not present to present, and the TLB caches no translation that is not
 * present (Intel SDM vol. 3A, 4.10.2.3; AMD APM vol. 2, 5.5.2), so there is nothing to flush.
 *
 * Why 1 and 3 are not one step: a CPU may use either translation while an entry changes; if size and frame changed together
 * it could combine them (SDM vol. 3A, 4.10.5.3 "optional invalidation"; AMD family 10h erratum 383).
 *
 * Why the shared page may be mapped at once: all tails of an order are the same 64 bytes. Before pass 3 the head's
 * frame holds the head and 63 tails in final form, so a stale translation of frames 1..7 reads old struct pages of the same
 * block, which nobody may use while the block is in transit, and the frames are not reused before round 4.
 *
 * Who calls with blocks in transit owns their records and lines; nothing here is done under a lock.
 *
 * Sources: Kravetz, "Batch hugetlb vmemmap modification operations" v3, 2023-09; Song, "hugetlb: free some vmemmap
 * pages of hugetlb page", 2021.
 */
#include "mm/hvo.h"

#include "kernel/cmdline.h"
#include "kernel/panic.h"
#include "kernel/string.h"
#include "mm/buddy.h"
#include "mm/memmap.h"
#include "mm/meta.h"
#include "mm/section.h"
#include "mm/transit.h"
#include "mm/vmemmap.h"

enum { HVO_ON = 3 };

const struct hvo_mode hvo_modes[] = {
	{.name = "off", .mapped = true, .idle = SHOOTDOWN_ALL_CPUS},
	{.name = "unbatched", .optimise = true, .mapped = true, .flush_each = true, .new_head = true,
	 .idle = SHOOTDOWN_ALL_CPUS},
	{.name = "batched", .optimise = true, .mapped = true, .new_head = true, .idle = SHOOTDOWN_ALL_CPUS},
	[HVO_ON] = {.name = "on", .optimise = true, .idle = SHOOTDOWN_SKIP_IDLE},
	{.name = NULL},
};

static unsigned hvo_selected = HVO_ON;
OPTION_CHOICE(hvo, hvo_selected, "off|unbatched|batched|on", "huge page vmemmap optimisation");

const struct hvo_mode *hvo_mode_selected(void)
{
	return &hvo_modes[hvo_selected];
}

const struct hvo_mode *hvo_mode_find(const char *name)
{
	for (const struct hvo_mode *mode = hvo_modes; mode->name; mode++)
		if (strcmp(mode->name, name) == 0)
			return mode;
	return NULL;
}

/* ---- taking blocks ---- */

/* Take free blocks of one class, opening sections until there are enough or none is left. */
static u64 take_opening(struct zone *zone, enum free_class class, enum section_style style, u64 count,
			struct block_list *list)
{
	u64 taken = block_take(zone, class, count, BLOCK_HUGE, list);

	while (taken < count && section_open_next(zone, style) == 0)
		taken += block_take(zone, class, count - taken, BLOCK_HUGE, list);
	return taken;
}

/*
 * Take blocks that will need a head frame each, reserved before they are unlinked. With less memory than asked for, fewer: an
 * incremental batch, and the caller comes again.
 */
static u64 take_with_heads(struct zone *zone, enum free_class class, enum section_style style, u64 count,
			   struct block_list *list)
{
	struct node *node = &zone->mm->node[zone_node(zone)->meta_node];
	u64 taken;

	while (count > 0 && meta_reserve(node, META_LONG, count) < 0)
		count /= 2;
	if (count == 0)
		return 0;
	taken = take_opening(zone, class, style, count, list);
	meta_unreserve(node, META_LONG, count - taken);
	return taken;
}

u64 hvo_take_blocks(struct zone *zone, const struct hvo_mode *mode, u64 count, struct block_list *list)
{
	u64 taken = 0;

	if (mode->new_head)
		return take_with_heads(zone, FREE_MAPPED, SECTION_MAPPED, count, list);
	if (mode->mapped)
		return take_opening(zone, FREE_MAPPED, SECTION_MAPPED, count, list);
	taken += block_take(zone, FREE_HUGE, count, BLOCK_HUGE, list);
	taken += take_with_heads(zone, FREE_BARE, SECTION_ON_DEMAND, count - taken, list);
	taken += block_take(zone, FREE_FULL, count - taken, BLOCK_HUGE, list);
	taken += block_take(zone, FREE_MAPPED, count - taken, BLOCK_HUGE, list);
	return taken;
}

/* ---- pass 1 and 2: split ---- */

/* Split the leaf over one block, if it is one. 1 if split, 0 if there was nothing to do, -ENOMEM. */
static int split_one(struct mm *mm, u32 index)
{
	const u64 section = index / SECTION_BLOCKS;
	struct node *node = &mm->node[zone_node(block_zone(mm, index))->meta_node];
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

/* Split all sections of the list; what cannot be split stays a leaf and is left out by the remap pass. */
static void split_pass(struct mm *mm, const struct hvo_mode *mode, const struct block_list *list)
{
	bool any = false;

	for (u32 index = list->head; index != BLOCK_NONE; index = block_at(mm, index)->next) {
		const int split = split_one(mm, index);

		if (split < 0)
			break;
		any |= split > 0;
		if (split > 0 && mode->flush_each)
			shootdown_full(SHOOTDOWN_ALL_CPUS);
	}
	if (any && !mode->flush_each)
		shootdown_full(SHOOTDOWN_ALL_CPUS);
}

/* ---- pass 3 and 4: remap ---- */

/* Frames that a line no longer maps wait for the next round. */
static void gate_frames(struct mm *mm, const pfn_t frames[MEMMAP_FRAMES_PER_BLOCK], u64 tag)
{
	for (unsigned i = 0; i < MEMMAP_FRAMES_PER_BLOCK; i++)
		if (frames[i] != PFN_NONE)
			meta_give(mm, frames[i], tag);
}

static pfn_t new_head_frame(struct mm *mm, u32 index)
{
	struct node *node = &mm->node[zone_node(block_zone(mm, index))->meta_node];
	const pfn_t head = meta_take(node, META_LONG);

	memmap_init_head_frame(phys_to_virt(head << PAGE_SHIFT), BLOCK_ORDER, block_at(mm, index)->zone);
	return head;
}

/* Bare: one head frame, one line, no flush. Its head was reserved when it was taken. */
static void huge_from_bare(struct mm *mm, u32 index)
{
	const pfn_t tail = vmemmap_shared_tail(mm, block_zone(mm, index), BLOCK_ORDER);

	vmemmap_set_huge(mm, index, new_head_frame(mm, index), tail);
	block_set_state(mm, index, BLOCK_HUGE);
}

/* Private struct pages: share the tails, gate what they were in. -ENOMEM if the leaf over them could not be split. */
static int huge_from_full(struct mm *mm, const struct hvo_mode *mode, u32 index)
{
	struct zone *zone = block_zone(mm, index);
	pfn_t head = PFN_NONE, frames[MEMMAP_FRAMES_PER_BLOCK];

	if (!vmemmap_line(mm, index)) { /* could not be split */
		if (mode->new_head)
			meta_unreserve(&mm->node[zone_node(zone)->meta_node], META_LONG, 1);
		return -ENOMEM;
	}
	if (mode->new_head)
		head = new_head_frame(mm, index);
	else
		memmap_init_head_frame(pfn_page(mm, block_pfn(index)), BLOCK_ORDER, zone->index);
	vmemmap_share_tails(mm, index, head, vmemmap_shared_tail(mm, zone, BLOCK_ORDER), frames);
	gate_frames(mm, frames, shootdown_tag());
	block_set_state(mm, index, BLOCK_HUGE);
	return 0;
}

/* A freed huge block still has its head and tails; the head is formed anew. */
static void huge_again(struct mm *mm, u32 index)
{
	struct page *head = pfn_page(mm, block_pfn(index));

	head->flags = PAGE_COMPOUND | PAGE_OPTIMISED;
	head->order = BLOCK_ORDER;
	atomic_store_release(&head->refcount, 1);
}

/* 1 if the block's translations changed and a round is due, 0 if not, -ENOMEM. */
static int optimise_one(struct mm *mm, const struct hvo_mode *mode, u32 index)
{
	switch (block_at(mm, index)->state) {
	case BLOCK_HUGE:
		huge_again(mm, index);
		return 0;
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
	for (u32 index = list->head; index != BLOCK_NONE; index = block_at(mm, index)->next)
		memmap_form_compound(pfn_page(mm, block_pfn(index)), BLOCK_ORDER);
}

static bool list_has_leaf(const struct mm *mm, const struct block_list *list)
{
	for (u32 index = list->head; index != BLOCK_NONE; index = block_at(mm, index)->next)
		if ((block_at(mm, index)->flags & BLOCK_MAPPED) && block_at(mm, index)->state == BLOCK_FULL)
			return true;
	return false;
}

u64 hvo_optimise(struct mm *mm, const struct hvo_mode *mode, struct block_list *list)
{
	struct block_list good = BLOCK_LIST_INIT, bad = BLOCK_LIST_INIT;
	u64 failed;
	bool round_due = false;
	u32 index;

	if (!mode->optimise) {
		form_all(mm, list);
		return 0;
	}
	if (list_has_leaf(mm, list))
		split_pass(mm, mode, list);
	while ((index = block_list_pop(mm, list)) != BLOCK_NONE) {
		const int changed = optimise_one(mm, mode, index);

		block_list_push(mm, changed < 0 ? &bad : &good, index);
		if (changed > 0 && mode->flush_each)
			shootdown_full(mode->idle);
		round_due |= changed > 0;
	}
	if (round_due && !mode->flush_each)
		shootdown_full(mode->idle);
	failed = bad.count;
	block_list_publish_free(mm, &bad);
	*list = good;
	return failed;
}

/* ---- restore ---- */

/* Seven frames of free struct pages behind the head, whose own frame is dissolved in place. */
static int restore_one(struct mm *mm, u32 index)
{
	struct zone *zone = block_zone(mm, index);
	struct node *node = &mm->node[zone_node(zone)->meta_node];
	u32 from = BLOCK_NONE;
	enum meta_kind kind = META_MEMMAP;
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK];

	if (meta_reserve_now(node, kind, MEMMAP_FRAMES_PER_BLOCK - 1) == 0)
		from = section_memmap(mm, index / SECTION_BLOCKS); /* where they came from */
	else if (meta_reserve_tails(node, MEMMAP_FRAMES_PER_BLOCK - 1, &kind) < 0)
		return -ENOMEM;
	for (unsigned i = 1; i < MEMMAP_FRAMES_PER_BLOCK; i++) {
		frames[i] = meta_take_from(node, kind, from);
		memmap_init_pages(phys_to_virt(frames[i] << PAGE_SHIFT), STRUCTS_PER_FRAME, zone->index);
	}
	vmemmap_unshare_tails(mm, index, frames);
	memmap_init_pages(pfn_page(mm, block_pfn(index)), STRUCTS_PER_FRAME, zone->index);
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
		const bool huge = block_at(mm, index)->state == BLOCK_HUGE;

		if (huge && (err = restore_one(mm, index)) < 0)
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

/* ---- free blocks between classes ---- */

u64 hvo_bare_free_huge(struct zone *zone)
{
	struct mm *mm = zone->mm;
	struct block_list list = BLOCK_LIST_INIT;
	const u64 taken = block_take(zone, FREE_HUGE, ~0ULL, BLOCK_BARE, &list);
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK];
	u64 tag;

	if (taken == 0)
		return 0;
	for (u32 index = list.head; index != BLOCK_NONE; index = block_at(mm, index)->next) {
		vmemmap_clear(mm, index, frames);
		block_at(mm, index)->owner = frames[0];
	}
	tag = shootdown_tag();
	for (u32 index = list.head; index != BLOCK_NONE; index = block_at(mm, index)->next) {
		struct block *block = block_at(mm, index);

		meta_give(mm, block->owner, tag);
		block->owner = 0;
		block->tag = tag;
		block_set_state(mm, index, BLOCK_BARE);
	}
	shootdown_wait(tag); /* a bare block is usable at once: its line may be written again */
	block_list_publish_free(mm, &list);
	return taken;
}

u64 hvo_huge_free_full(struct zone *zone, u64 count)
{
	const struct hvo_mode *mode = &hvo_modes[HVO_ON];
	struct mm *mm = zone->mm;
	struct block_list list = BLOCK_LIST_INIT;
	u64 changed;

	if (block_take(zone, FREE_FULL, count, BLOCK_HUGE, &list) == 0)
		return 0;
	hvo_optimise(mm, mode, &list);
	changed = list.count;
	for (u32 index = list.head; index != BLOCK_NONE; index = block_at(mm, index)->next)
		pfn_page(mm, block_pfn(index))->refcount = 0;
	block_list_publish_free(mm, &list);
	return changed;
}
