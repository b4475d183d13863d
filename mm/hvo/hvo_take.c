/*
 * HVO: the table of modes, the choice of free blocks that a mode takes, and changes of free blocks
 * from one class to another. See hvo.h.
 */
#include "mm/hvo/hvo_take.h"

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "mm/hvo/hvo.h"
#include "mm/hvo/hvo_restore.h"
#include "mm/hvo/hvo_share.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/upward.h"
#include "mm/memmap/vmemmap.h"
#include "mm/zone/buddy.h"
#include "mm/zone/section.h"
#include "mm/zone/section_more.h"
#include "mm/zone/transit.h"

enum { HEADS_BATCH = BLOCK_FRAMES };

const struct hvo_mode hvo_modes[] = {
	{.name = "off", .mapped = true, .idle = SHOOTDOWN_ALL_CPUS},
	{.name = "unbatched",
	 .optimise = true,
	 .mapped = true,
	 .split_each = true,
	 .remap_each = true,
	 .new_head = true,
	 .idle = SHOOTDOWN_ALL_CPUS},
	{.name = "batched",
	 .optimise = true,
	 .mapped = true,
	 .new_head = true,
	 .idle = SHOOTDOWN_ALL_CPUS},
	[HVO_ON] = {.name = "on", .optimise = true, .defer = true, .idle = SHOOTDOWN_SKIP_IDLE},
	{.name = "split-only",
	 .optimise = true,
	 .mapped = true,
	 .remap_each = true,
	 .new_head = true,
	 .part = true,
	 .idle = SHOOTDOWN_ALL_CPUS},
	{.name = "remap-only",
	 .optimise = true,
	 .mapped = true,
	 .split_each = true,
	 .new_head = true,
	 .part = true,
	 .idle = SHOOTDOWN_ALL_CPUS},
	{.name = "preinit",
	 .optimise = true,
	 .mapped = true,
	 .new_head = true,
	 .part = true,
	 .born = true,
	 .idle = SHOOTDOWN_ALL_CPUS},
	{.name = "off-keep", .mapped = true, .keep = true, .idle = SHOOTDOWN_ALL_CPUS},
	{.name = NULL},
};

static unsigned hvo_selected = HVO_ON;
OPTION_ROW(hvo, hvo_selected, hvo_modes, "huge page vmemmap optimisation");

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

/*
 * Take free runs of one class, opening sections until there are enough or none is left. Blocks that
 * META opened for itself come last. One such section holds the heads of 500 others, and if META has
 * to look for room in every GiB, it looks longer with each page made.
 */
static u64 take_opening(struct zone *zone, enum free_class class, unsigned order,
			enum section_style style, u64 count, struct block_list *list)
{
	u64 taken = block_take_movable(zone, class, order, count, BLOCK_HUGE, list);

	while (taken < count && section_open_more(zone, order, style) == 0)
		taken += block_take_movable(zone, class, order, count - taken, BLOCK_HUGE, list);
	return taken + (taken < count
				? block_take(zone, class, order, count - taken, BLOCK_HUGE, list)
				: 0);
}

/*
 * The most runs that could still be taken. So callers reserve no more heads, and grow META no
 * further, than blocks can use.
 */
static u64 takeable(const struct zone *zone, enum free_class class, unsigned order)
{
	return (atomic_load_relaxed(&zone->free_class[class]) +
		atomic_load_relaxed(&zone->unopened)) /
	       order_pages(order);
}

/*
 * Take runs that will need a head frame each. The frame is reserved before the run is unlinked.
 * Heads are reserved a batch at a time, so that META never grows into the blocks that were asked
 * for.
 */
static u64 take_with_heads(struct zone *zone, enum free_class class, unsigned order,
			   enum section_style style, u64 count, struct block_list *list)
{
	struct node *node = zone_meta_node(zone);
	u64 total = 0, wanted, taken;

	do {
		wanted = MIN(MIN(count - total, HEADS_BATCH), takeable(zone, class, order));
		while (wanted > 0 && meta_reserve(node, META_LONG, wanted) < 0)
			wanted /= 2;
		taken = wanted ? take_opening(zone, class, order, style, wanted, list) : 0;
		meta_unreserve(node, META_LONG, wanted - taken);
		total += taken;
	} while (taken > 0 && taken == wanted && total < count);
	return total;
}

/*
 * If many runs must come out of sections that are not open yet, let idle CPUs open those sections
 * first. The runs are taken afterwards, one by one.
 */
static void open_ahead(struct zone *zone, const struct hvo_mode *mode, enum free_class class,
		       unsigned order, u64 count)
{
	const u64 there = atomic_load_relaxed(&zone->free_class[class]) / order_pages(order);
	const unsigned threads =
		count > there ? hvo_threads_for((count - there) * order_blocks(order)) : 1;

	if (threads > 1)
		sections_open_ahead(zone, order, mode->mapped ? SECTION_MAPPED : SECTION_ON_DEMAND,
				    count - there, threads);
}

/* Take runs of mapped sections, which the baselines work on. */
static u64 take_mapped(struct zone *zone, const struct hvo_mode *mode, unsigned order, u64 count,
		       struct block_list *list)
{
	open_ahead(zone, mode, FREE_MAPPED, order, count);
	if (mode->new_head)
		return take_with_heads(zone, FREE_MAPPED, order, SECTION_MAPPED, count, list);
	return take_opening(zone, FREE_MAPPED, order, SECTION_MAPPED, count, list);
}

/* Take bare runs. A baseline opens no section for them: it takes those that exist. */
static u64 take_bare(struct zone *zone, const struct hvo_mode *mode, unsigned order, u64 count,
		     struct block_list *list)
{
	if (mode->mapped)
		count = MIN(count,
			    atomic_load_relaxed(&zone->free_class[FREE_BARE]) / order_pages(order));
	open_ahead(zone, mode, FREE_BARE, order, count);
	return take_with_heads(zone, FREE_BARE, order, SECTION_ON_DEMAND, count, list);
}

/*
 * Does the mode use memory that has no struct pages? preinit uses the pages that it made at boot,
 * when they have been given back.
 */
static bool knows_bare(const struct hvo_mode *mode)
{
	return !mode->mapped || mode->born;
}

/*
 * Take runs that exist as a whole. A run larger than the buddy's max_order exists only as a huge
 * page.
 */
static u64 take_whole(struct zone *zone, const struct hvo_mode *mode, unsigned order, u64 count,
		      struct block_list *list)
{
	u64 taken = 0;

	if (knows_bare(mode))
		taken = block_take(zone, FREE_HUGE, order, count, BLOCK_HUGE, list);
	if (order > zone->max_order)
		return taken;
	if (mode->mapped)
		taken += take_mapped(zone, mode, order, count - taken, list);
	if (knows_bare(mode))
		taken += take_bare(zone, mode, order, count - taken, list);
	if (mode->mapped)
		/*
		 * a baseline may need a reserved head for every run; the runs below would have none
		 */
		return taken;
	taken += block_take(zone, FREE_FULL, order, count - taken, BLOCK_HUGE, list);
	taken += block_take(zone, FREE_MAPPED, order, count - taken, BLOCK_HUGE, list);
	return taken;
}

u64 hvo_take_blocks(struct zone *zone, const struct hvo_mode *mode, unsigned order, u64 count,
		    struct block_list *list)
{
	u64 taken = take_whole(zone, mode, order, count, list), gained = 1;

	/*
	 * No free 2 MiB page is left, so every free huge page is a 1 GiB one. Turn such pages into
	 * bare blocks.
	 */
	while (taken < count && gained && order == BLOCK_ORDER && knows_bare(mode) &&
	       hvo_bare_free_huge(zone, 1) > 0) {
		gained = take_whole(zone, mode, order, count - taken, list);
		taken += gained;
	}
	if (taken < count && order == GIGA_ORDER) /* make room for the rest, if possible */
		taken += mm_upward.take_giga(zone, mode, count - taken, list);
	return taken;
}

/* ---- free blocks between classes ---- */

/* Clear every line of a huge run. The record remembers its head frame until the tag is known. */
static void clear_run(struct mm *mm, u32 index)
{
	const u32 blocks = order_blocks(block_look_at(mm, index).order);
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK], head;

	vmemmap_clear(mm, index, frames);
	head = frames[0];
	for (u32 i = 1; i < blocks; i++)
		vmemmap_clear(mm, index + i, frames);
	block_at(mm, index)->owner = head;
}

static void bare_run(struct mm *mm, u32 index, u64 tag)
{
	struct block *block = block_at(mm, index);
	const u32 blocks = order_blocks(block_look(block).order);

	meta_give(mm, block->owner, tag);
	block->owner = 0;
	for (u32 i = 0; i < blocks; i++) {
		block_at(mm, index + i)->tag = tag;
		block_set_state(mm, index + i, BLOCK_BARE);
	}
}

/* The wait is needed because a bare block, and its lines, may be used at once. */
void hvo_make_bare(struct mm *mm, struct block_list *list)
{
	u64 tag;

	if (list->count == 0)
		return;
	block_list_foreach(mm, index, list)
		clear_run(mm, index);
	tag = shootdown_tag();
	block_list_foreach(mm, index, list)
		bare_run(mm, index, tag);
	shootdown_wait(tag);
}

/* Runs of on-demand sections lose their struct pages. */
static u64 bare_list(struct mm *mm, struct block_list *list)
{
	const u64 count = list->count;

	hvo_make_bare(mm, list);
	block_list_publish_free(mm, list);
	return count;
}

/*
 * Runs of mapped sections get their struct pages back, because bare never occurs there. Runs that
 * cannot be restored stay huge.
 */
static u64 restore_list(struct mm *mm, struct block_list *list)
{
	struct block_list done = BLOCK_LIST_INIT;
	u64 restored;

	if (list->count == 0)
		return 0;
	hvo_restore(mm, &hvo_modes[HVO_ON], list, &done, &restored);
	block_list_foreach(mm, index, &done)
		page_set_kind(block_page(mm, index), 0, 0);
	block_list_publish_free(mm, &done);
	block_list_publish_free(mm, list);
	return restored;
}

u64 hvo_bare_free_huge(struct zone *zone, u64 count)
{
	struct mm *mm = zone->mm;
	struct block_list huge = BLOCK_LIST_INIT, bare = BLOCK_LIST_INIT, restore = BLOCK_LIST_INIT;
	const u64 rest = count - block_take(zone, FREE_HUGE, BLOCK_ORDER, count, BLOCK_BARE, &huge);

	block_take(zone, FREE_HUGE, GIGA_ORDER, rest / GIB_BLOCKS + (rest % GIB_BLOCKS > 0),
		   BLOCK_BARE, &huge);
	block_list_drain(mm, index, &huge)
		block_list_push(mm,
				block_look_at(mm, index).flags & BLOCK_MAPPED ? &restore : &bare,
				index);
	return bare_list(mm, &bare) + restore_list(mm, &restore);
}

void hvo_bare_run(struct zone *zone, u32 index)
{
	struct block_list list = BLOCK_LIST_INIT;

	block_list_push(zone->mm, &list, index);
	if (block_look_at(zone->mm, index).flags & BLOCK_MAPPED)
		restore_list(zone->mm, &list);
	else
		bare_list(zone->mm, &list);
}

u64 hvo_huge_free_full(struct zone *zone, u64 count)
{
	struct mm *mm = zone->mm;
	struct block_list list = BLOCK_LIST_INIT, left = BLOCK_LIST_INIT;
	u64 changed;

	if (block_take(zone, FREE_FULL, BLOCK_ORDER, count, BLOCK_HUGE, &list) == 0)
		return 0;
	hvo_optimise(mm, &hvo_modes[HVO_ON], &list, &left);
	changed = list.count;
	block_list_publish_free(mm, &list);
	block_list_publish_free(mm, &left);
	return changed;
}
