/*
 * HVO: the table of modes, which free blocks a mode takes, and free blocks that change class. See hvo.h.
 */
#include "kernel/cmdline.h"
#include "kernel/printk.h"
#include "kernel/string.h"
#include "mm/buddy.h"
#include "mm/contig.h"
#include "mm/hvo.h"
#include "mm/memmap.h"
#include "mm/meta.h"
#include "mm/section.h"
#include "mm/transit.h"
#include "mm/vmemmap.h"

enum { HVO_ON = 3, HEADS_BATCH = BLOCK_FRAMES };

const struct hvo_mode hvo_modes[] = {
	{.name = "off", .mapped = true, .idle = SHOOTDOWN_ALL_CPUS},
	{.name = "unbatched", .optimise = true, .mapped = true, .split_each = true, .remap_each = true, .new_head = true,
	 .idle = SHOOTDOWN_ALL_CPUS},
	{.name = "batched", .optimise = true, .mapped = true, .new_head = true, .idle = SHOOTDOWN_ALL_CPUS},
	[HVO_ON] = {.name = "on", .optimise = true, .defer = true, .parallel = true, .idle = SHOOTDOWN_SKIP_IDLE},
	{.name = "split-only", .optimise = true, .mapped = true, .remap_each = true, .new_head = true, .part = true,
	 .idle = SHOOTDOWN_ALL_CPUS},
	{.name = "remap-only", .optimise = true, .mapped = true, .split_each = true, .new_head = true, .part = true,
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

/* All eight sections of an unused GiB, or none: only contig=index would find one that is open in part, and open the rest. */
static bool open_gib(struct mm *mm, u64 first, enum section_style style)
{
	unsigned opened = 0;

	while (opened < GIB_SECTIONS && section_open(mm, first + opened, style) == 0)
		opened++;
	if (opened == GIB_SECTIONS)
		return true;
	while (opened-- > 0)
		section_close(mm, first + opened);
	return false;
}

/* Open a GiB none of whose memory was used: its blocks merge into one run. */
static bool open_unused_gib(struct zone *zone, enum section_style style)
{
	const u64 first = DIV_ROUND_UP(zone->start_pfn, order_pages(GIGA_ORDER));
	const u64 end = zone->end_pfn / order_pages(GIGA_ORDER);

	for (u64 gib = first; gib < end; gib++) {
		unsigned unopened = 0;

		while (unopened < GIB_SECTIONS &&
		       section_state(zone->mm, gib * GIB_SECTIONS + unopened) == SECTION_UNOPENED)
			unopened++;
		if (unopened == GIB_SECTIONS && open_gib(zone->mm, gib * GIB_SECTIONS, style))
			return true;
	}
	return false;
}

static bool open_more(struct zone *zone, unsigned order, enum section_style style)
{
	return order == GIGA_ORDER ? open_unused_gib(zone, style) : section_open_next(zone, style) == 0;
}

/* Take free runs of one class, opening sections until there are enough or none is left. */
static u64 take_opening(struct zone *zone, enum free_class class, unsigned order, enum section_style style, u64 count,
			struct block_list *list)
{
	u64 taken = block_take(zone, class, order, count, BLOCK_HUGE, list);

	while (taken < count && open_more(zone, order, style))
		taken += block_take(zone, class, order, count - taken, BLOCK_HUGE, list);
	return taken;
}

/* Runs that could still be taken, at most: so that no more heads are reserved, and META grown, than blocks can use. */
static u64 takeable(const struct zone *zone, enum free_class class, unsigned order)
{
	return (atomic_load_relaxed(&zone->free_class[class]) + atomic_load_relaxed(&zone->unopened)) /
	       order_pages(order);
}

/*
 * Take runs that will need a head frame each, reserved before they are unlinked; a batch of heads at a time, so that
 * META never grows into the blocks that were asked for.
 */
static u64 take_with_heads(struct zone *zone, enum free_class class, unsigned order, enum section_style style, u64 count,
			   struct block_list *list)
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

/* What is there in one piece. A run larger than the buddy keeps is only there as a huge page. */
static u64 take_whole(struct zone *zone, const struct hvo_mode *mode, unsigned order, u64 count, struct block_list *list)
{
	u64 taken = 0;

	if (order > zone->max_order)
		return mode->mapped ? 0 : block_take(zone, FREE_HUGE, order, count, BLOCK_HUGE, list);
	if (mode->new_head)
		return take_with_heads(zone, FREE_MAPPED, order, SECTION_MAPPED, count, list);
	if (mode->mapped)
		return take_opening(zone, FREE_MAPPED, order, SECTION_MAPPED, count, list);
	taken += block_take(zone, FREE_HUGE, order, count, BLOCK_HUGE, list);
	taken += take_with_heads(zone, FREE_BARE, order, SECTION_ON_DEMAND, count - taken, list);
	taken += block_take(zone, FREE_FULL, order, count - taken, BLOCK_HUGE, list);
	taken += block_take(zone, FREE_MAPPED, order, count - taken, BLOCK_HUGE, list);
	return taken;
}

u64 hvo_take_blocks(struct zone *zone, const struct hvo_mode *mode, unsigned order, u64 count, struct block_list *list)
{
	u64 taken = take_whole(zone, mode, order, count, list), gained = 1;

	/* All 2 MiB ones are taken: what is huge and free are 1 GiB ones, and become bare blocks. */
	while (taken < count && gained && order == BLOCK_ORDER && !mode->mapped && hvo_bare_free_huge(zone, 1) > 0) {
		gained = take_whole(zone, mode, order, count - taken, list);
		taken += gained;
	}
	if (taken < count && order == GIGA_ORDER) /* room is made for the rest, if it can be */
		taken += contig_take_giga(zone, mode, count - taken, list);
	return taken;
}

/* ---- free blocks between classes ---- */

/* Clear every line of a huge run; its head frame is remembered in the record until the tag is known. */
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

/* A bare block is usable at once, its lines too: hence the wait. */
void hvo_make_bare(struct mm *mm, struct block_list *list)
{
	u64 tag;

	if (list->count == 0)
		return;
	for (u32 index = list->head; index != BLOCK_NONE; index = block_at(mm, index)->next)
		clear_run(mm, index);
	tag = shootdown_tag();
	for (u32 index = list->head; index != BLOCK_NONE; index = block_at(mm, index)->next)
		bare_run(mm, index, tag);
	shootdown_wait(tag);
}

/* On-demand ones lose their struct pages. */
static u64 bare_list(struct mm *mm, struct block_list *list)
{
	const u64 count = list->count;

	hvo_make_bare(mm, list);
	block_list_publish_free(mm, list);
	return count;
}

/* Those of mapped sections get theirs back: bare never occurs there. What cannot be restored stays huge. */
static u64 restore_list(struct mm *mm, struct block_list *list)
{
	struct block_list done = BLOCK_LIST_INIT;
	u64 restored;

	if (list->count == 0)
		return 0;
	hvo_restore(mm, &hvo_modes[HVO_ON], list, &done, &restored);
	for (u32 index = done.head; index != BLOCK_NONE; index = block_at(mm, index)->next)
		page_set_kind(pfn_page(mm, block_pfn(index)), 0, 0);
	block_list_publish_free(mm, &done);
	block_list_publish_free(mm, list);
	return restored;
}

u64 hvo_bare_free_huge(struct zone *zone, u64 count)
{
	struct mm *mm = zone->mm;
	struct block_list huge = BLOCK_LIST_INIT, bare = BLOCK_LIST_INIT, restore = BLOCK_LIST_INIT;
	const u64 rest = count - block_take(zone, FREE_HUGE, BLOCK_ORDER, count, BLOCK_BARE, &huge);
	u32 index;

	block_take(zone, FREE_HUGE, GIGA_ORDER, rest / GIB_BLOCKS + (rest % GIB_BLOCKS > 0), BLOCK_BARE, &huge);
	while ((index = block_list_pop(mm, &huge)) != BLOCK_NONE)
		block_list_push(mm, block_look_at(mm, index).flags & BLOCK_MAPPED ? &restore : &bare, index);
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
