/*
 * HVO: the free runs that modes take. See hvo_runs.h.
 */
#include "mm/hvo/hvo_runs.h"

#include "mm/hvo/hvo_make.h"
#include "mm/hvo/hvo_share.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/meta.h"
#include "mm/zone/buddy.h"
#include "mm/zone/section.h"
#include "mm/zone/section_more.h"
#include "mm/zone/transit.h"

enum { HEADS_BATCH = BLOCK_FRAMES };

/*
 * Take free runs of one class, opening sections until there are enough or none is left. Blocks that
 * metadata memory opened for itself come last. One such section holds the heads of 500 other
 * sections, and if metadata memory has to look for room in every GiB, it looks longer with each
 * page made.
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
 * The most runs that could still be taken. So callers reserve no more heads, and grow metadata
 * memory no further, than blocks can use.
 */
static u64 takeable(const struct zone *zone, enum free_class class, unsigned order)
{
	return (atomic_load_relaxed(&zone->free_class[class]) +
		atomic_load_relaxed(&zone->unopened)) /
	       order_pages(order);
}

/*
 * Take runs that will need a head frame each. The frame is reserved before the run is unlinked.
 * Heads are reserved a batch at a time, so that metadata memory never grows into the blocks that
 * were asked for.
 */
static u64 take_with_heads(struct zone *zone, enum free_class class, unsigned order,
			   enum section_style style, u64 count, struct block_list *list)
{
	const enum meta_kind kind = meta_kind_of_head(order);
	struct node *node = zone_meta_node(zone);
	u64 total = 0, wanted, taken;

	do {
		wanted = MIN(MIN(count - total, HEADS_BATCH), takeable(zone, class, order));
		while (wanted > 0 && meta_reserve(node, kind, wanted) < 0)
			wanted /= 2;
		taken = wanted ? take_opening(zone, class, order, style, wanted, list) : 0;
		meta_unreserve(node, kind, wanted - taken);
		total += taken;
	} while (taken > 0 && taken == wanted && total < count);
	return total;
}

/*
 * If many runs must come out of sections that are not open yet, let idle CPUs open those sections
 * first. The runs are taken afterwards, one by one.
 */
static void open_ahead(struct zone *zone, enum free_class class, unsigned order,
		       enum section_style style, u64 count)
{
	const u64 there = atomic_load_relaxed(&zone->free_class[class]) / order_pages(order);
	const unsigned threads =
		count > there ? hvo_threads_for((count - there) * order_blocks(order)) : 1;

	if (threads > 1)
		sections_open_ahead(zone, order, style, count - there, threads);
}

/* A run larger than the buddy's max_order exists only as a huge page. */
static bool may_exist(const struct zone *zone, unsigned order)
{
	return order <= zone->max_order;
}

u64 hvo_take_huge(struct zone *zone, unsigned order, u64 count, struct block_list *list)
{
	return block_take(zone, FREE_HUGE, order, count, BLOCK_HUGE, list);
}

typedef u64 take_fn(struct zone *zone, enum free_class class, unsigned order,
		    enum section_style style, u64 count, struct block_list *list);

static u64 take_or_open(struct zone *zone, enum free_class class, unsigned order, u64 count,
			struct block_list *list, take_fn *take)
{
	const enum section_style style = class == FREE_MAPPED ? SECTION_MAPPED : SECTION_ON_DEMAND;

	if (!may_exist(zone, order))
		return 0;
	open_ahead(zone, class, order, style, count);
	return take(zone, class, order, style, count, list);
}

u64 hvo_take_mapped(struct zone *zone, unsigned order, u64 count, struct block_list *list)
{
	return take_or_open(zone, FREE_MAPPED, order, count, list, take_opening);
}

u64 hvo_take_mapped_and_heads(struct zone *zone, unsigned order, u64 count, struct block_list *list)
{
	return take_or_open(zone, FREE_MAPPED, order, count, list, take_with_heads);
}

u64 hvo_take_bare(struct zone *zone, unsigned order, u64 count, struct block_list *list)
{
	return take_or_open(zone, FREE_BARE, order, count, list, take_with_heads);
}

u64 hvo_take_bare_there(struct zone *zone, unsigned order, u64 count, struct block_list *list)
{
	const u64 there = atomic_load_relaxed(&zone->free_class[FREE_BARE]) / order_pages(order);

	if (!may_exist(zone, order))
		return 0;
	return take_with_heads(zone, FREE_BARE, order, SECTION_ON_DEMAND, MIN(count, there), list);
}

/*
 * A 1 GiB page would keep a frame of its small pages' struct pages as its head, and so a block of
 * these in some other GiB. hvo_gather() makes it with a head that lies among those that last.
 */
u64 hvo_take_full(struct zone *zone, unsigned order, u64 count, struct block_list *list)
{
	u64 taken = 0;

	if (!may_exist(zone, order))
		return 0;
	if (order == BLOCK_ORDER)
		taken = block_take(zone, FREE_FULL, order, count, BLOCK_HUGE, list);
	return taken + block_take(zone, FREE_MAPPED, order, count - taken, BLOCK_HUGE, list);
}

/* ---- runs of 1 GiB that were emptied for the purpose ---- */

int hvo_join(struct zone *zone, const struct hvo_mode *mode, u32 first)
{
	if (!(block_look_at(zone->mm, first).flags & BLOCK_MAPPED))
		return mode->mapped ? -EBUSY : hvo_gather(zone->mm, first);
	return mode->new_head ? hvo_join_with_head(zone, first) : block_join(zone, first);
}
