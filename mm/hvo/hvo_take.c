/*
 * HVO: the free runs that a mode takes, by class.
 *
 *   huge     shared tails, as an earlier page left them
 *   bare     no struct pages; a head frame is reserved for each run
 *   full     all struct pages, in on-demand sections: only hvo=on takes these
 *   mapped   all struct pages, in mapped sections: the baselines work on these
 *
 * Sections are opened for the class that suits the mode: mapped for the baselines, else bare. A
 * head frame is reserved before its run is unlinked.
 */
#include "mm/hvo/hvo_take.h"

#include "mm/hvo/hvo_make.h"
#include "mm/hvo/hvo_share.h"
#include "mm/hvo/hvo_unshare.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/upward.h"
#include "mm/zone/section.h"
#include "mm/zone/section_more.h"
#include "mm/zone/transit.h"

enum { HEADS_BATCH = BLOCK_FRAMES };

struct runs {
	struct zone *zone;
	enum free_class class;
	unsigned order;
	bool opens; /* sections are opened if too few are free */
};

static enum section_style style_of(const struct runs *runs)
{
	return runs->class == FREE_MAPPED ? SECTION_MAPPED : SECTION_ON_DEMAND;
}

/*
 * Take free runs, opening sections until there are enough or none is left. Blocks that metadata
 * memory opened for itself come last. One such section holds the heads of 500 other sections, and
 * if metadata memory has to look for room in every GiB, it looks longer with each page made.
 */
static u64 take_opening(const struct runs *runs, u64 count, struct block_list *list)
{
	u64 taken = 0;

	if (runs->opens)
		do
			taken += block_take_movable(runs->zone, runs->class, runs->order,
						    count - taken, BLOCK_HUGE, list);
		while (taken < count &&
		       section_open_more(runs->zone, runs->order, style_of(runs)) == 0);
	return taken +
	       block_take(runs->zone, runs->class, runs->order, count - taken, BLOCK_HUGE, list);
}

/*
 * The most runs that could still be taken. So callers reserve no more heads, and grow metadata
 * memory no further, than blocks can use.
 */
static u64 takeable(const struct runs *runs)
{
	const u64 unopened = runs->opens ? atomic_load_relaxed(&runs->zone->unopened) : 0;

	return (atomic_load_relaxed(&runs->zone->free_class[runs->class]) + unopened) /
	       order_pages(runs->order);
}

/*
 * Take runs that will need a head frame each. The frame is reserved before the run is unlinked.
 * Heads are reserved a batch at a time, so that metadata memory never grows into the blocks that
 * were asked for.
 */
static u64 take_with_heads(const struct runs *runs, u64 count, struct block_list *list)
{
	const enum meta_kind kind = meta_kind_of_head(runs->order);
	struct node *node = zone_meta_node(runs->zone);
	u64 total = 0, wanted, taken;

	do {
		wanted = MIN(MIN(count - total, HEADS_BATCH), takeable(runs));
		while (wanted > 0 && meta_reserve(node, kind, wanted) < 0)
			wanted /= 2;
		taken = take_opening(runs, wanted, list);
		meta_unreserve(node, kind, wanted - taken);
		total += taken;
	} while (taken > 0 && taken == wanted && total < count);
	return total;
}

/*
 * If many runs must come out of sections that are not open yet, let idle CPUs open those sections
 * first. The runs are taken afterwards, one by one.
 */
static void open_ahead(const struct runs *runs, u64 count)
{
	const u64 there = atomic_load_relaxed(&runs->zone->free_class[runs->class]) /
			  order_pages(runs->order);
	const unsigned threads =
		count > there ? hvo_threads_for((count - there) * order_blocks(runs->order)) : 1;

	if (threads > 1)
		sections_open_ahead(runs->zone, runs->order, style_of(runs), count - there,
				    threads);
}

static u64 take_class(struct zone *zone, const struct hvo_mode *mode, enum free_class class,
		      unsigned order, u64 count, struct block_list *list)
{
	const struct runs runs = {.zone = zone,
				  .class = class,
				  .order = order,
				  .opens = class == (mode->mapped ? FREE_MAPPED : FREE_BARE)};
	const bool heads = class == FREE_BARE || (class == FREE_MAPPED && mode->new_head);

	/* a run larger than the buddy's max_order exists only as a huge page */
	if (class != FREE_HUGE && order > zone->max_order)
		return 0;
	/*
	 * Not as a 1 GiB page. Its head would stay in a frame of its small pages' struct pages, and
	 * keep that block of metadata memory, in some other GiB, from going back. hvo_gather()
	 * gives it a head among the frames that live for ever.
	 */
	if (class == FREE_FULL && order > BLOCK_ORDER)
		return 0;
	if (runs.opens)
		open_ahead(&runs, count);
	return heads ? take_with_heads(&runs, count, list) : take_opening(&runs, count, list);
}

static u64 take_classes(struct zone *zone, const struct hvo_mode *mode, unsigned order, u64 count,
			struct block_list *list)
{
	u64 taken = 0;

	for (unsigned i = 0; i < mode->classes && taken < count; i++)
		taken += take_class(zone, mode, mode->class[i], order, count - taken, list);
	return taken;
}

u64 hvo_take_blocks(struct zone *zone, const struct hvo_mode *mode, unsigned order, u64 count,
		    struct block_list *list)
{
	/* preinit uses the pages that it made at boot, when they have been given back */
	const bool takes_bare = !mode->mapped || mode->born;
	u64 taken = take_classes(zone, mode, order, count, list), gained = 1;

	/*
	 * No free 2 MiB page is left, so every free huge page is a 1 GiB one. Turn such pages into
	 * bare blocks. Blocks that were small pages become huge ones first, where the mode itself
	 * takes none.
	 */
	while (taken < count && gained && order == BLOCK_ORDER && takes_bare &&
	       (hvo_bare_free_huge(zone, 1) > 0 || hvo_huge_free_full(zone, count - taken) > 0)) {
		gained = take_classes(zone, mode, order, count - taken, list);
		taken += gained;
	}
	if (taken < count && order == GIGA_ORDER) /* make room for the rest, if possible */
		taken += mm_upward.take_giga(zone, mode, count - taken, list);
	return taken;
}

/* ---- runs of 1 GiB that were emptied for the purpose ---- */

int hvo_join(struct zone *zone, const struct hvo_mode *mode, u32 first)
{
	if (!(block_look_at(zone->mm, first).flags & BLOCK_MAPPED))
		return mode->mapped ? -EBUSY : hvo_gather(zone->mm, first);
	return mode->new_head ? hvo_join_with_head(zone, first) : block_join(zone, first);
}
