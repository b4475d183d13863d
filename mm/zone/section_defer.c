/* Deferred GiB of RAM: see section_defer.h. */
#include "mm/zone/section_defer.h"

#include "kernel/core/printk.h"
#include "kernel/core/wait.h"
#include "mm/memmap/enter.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/meta.h"
#include "mm/zone/meta_grow.h"
#include "mm/zone/section_memmap.h"
#include "mm/zone/transit.h"

/*
 * Frames that opening a GiB may take beside the page tables of its sections: two upper tables and
 * two frames of descriptors, each of which is needed for some GiB only.
 */
enum { OTHERS = 4, RECORDS_AT_ONCE = 64 };

#define NO_GIB (~0ULL)

static struct gib *gib_at(const struct zone *zone, u64 gib)
{
	return &zone->mm->gib[gib - zone->mm->first_gib];
}

/* Is the GiB RAM of this zone? Blocks of other nodes may lie inside a zone's span. */
static bool owns(const struct zone *zone, u64 gib)
{
	u8 owner;

	return gib_at(zone, gib)->whole &&
	       memmap_block_plan(zone->mm, (u32)(gib * GIB_BLOCKS), &owner) != PLAN_ABSENT &&
	       owner == zone->index;
}

static void set_state(const struct mm *mm, u64 section, enum section_state state)
{
	atomic_store_release(section_slot(mm, section), (u8)state);
}

/* Move frames between two counters of a zone. */
static void move_frames(struct zone *zone, u64 *from, u64 *to, u64 frames)
{
	zone_lock(zone);
	counter_sub(from, frames);
	counter_add(to, frames);
	zone_unlock(zone);
}

/* ---- frames that are kept ---- */

/*
 * Frames reserved as long as a GiB is deferred. If blocks of it become metadata memory, the heads
 * come from there.
 */
static u64 reserved_for(const struct gib_use *use)
{
	return OTHERS + GIB_SECTIONS + (use->meta ? 0 : use->heads);
}

/* Count frames as kept, or no longer if `gibs` is negative. */
static void count_kept(struct zone *zone, const struct gib_use *use, s64 gibs)
{
	zone_lock(zone);
	counter_add(&zone->kept_to_open, (u64)gibs * reserved_for(use));
	zone_unlock(zone);
}

/* Reserve frames for `gibs` GiB, or for as many as metadata memory has frames for. */
static u64 reserve_frames(struct zone *zone, const struct gib_use *use, u64 gibs)
{
	while (gibs > 0 &&
	       meta_reserve(zone_meta_node(zone), META_LASTING, gibs * reserved_for(use)) < 0)
		gibs /= 2;
	return gibs;
}

/* A run of frames taken for the block records of several GiB. */
struct run {
	pfn_t next;
	u64 left;
};

static pfn_t take_run(struct node *node, u64 frames)
{
	/* metadata memory needs its emergency frames to grow */
	if (!meta_has(node, META_LASTING, frames) && meta_grow(node, META_LASTING, frames) < 0)
		return PFN_NONE;
	return meta_has(node, META_LASTING, frames) ? meta_take_run(node, (unsigned)frames)
						    : PFN_NONE;
}

/* Take frames for up to `gibs` GiB. Returns false if there are not even those for one in a row. */
static bool take_records(struct zone *zone, u64 gibs, struct run *run)
{
	struct node *node = zone_meta_node(zone);
	const u64 *free = &node->meta.free[META_LASTING];

	run->next = PFN_NONE;
	/* a quarter, rounded so that one GiB is tried last */
	for (u64 some = MIN(gibs, RECORDS_AT_ONCE); some > 0 && run->next == PFN_NONE;
	     some = (some + 2) / 4) {
		run->left = some * SECTION_RECORD_FRAMES;
		run->next = take_run(node, run->left);
	}
	/* there may be enough, but scattered */
	if (run->next == PFN_NONE &&
	    meta_grow(node, META_LASTING, atomic_load_relaxed(free) + 1) == 0) {
		run->left = SECTION_RECORD_FRAMES;
		run->next = take_run(node, run->left);
	}
	if (run->next == PFN_NONE)
		run->left = 0;
	return run->left > 0;
}

static void give_records(struct zone *zone, pfn_t first, u64 frames)
{
	for (u64 i = 0; i < frames; i++)
		meta_give(zone->mm, first + i, 0);
}

/* The frames kept for the GiB's block records, which are the caller's from now on; or 0. */
static pfn_t kept_records(const struct zone *zone, u64 gib)
{
	const pfn_t pfn = gib_at(zone, gib)->kept;

	gib_at(zone, gib)->kept = 0;
	return pfn;
}

/* ---- deferring ---- */

/*
 * Claim all sections of a GiB that is unopened, or none. The first one comes last, as in the other
 * direction it comes first.
 */
static bool claim_unopened(const struct mm *mm, u64 gib)
{
	const u64 first = gib * GIB_SECTIONS;
	unsigned left = GIB_SECTIONS;

	while (left > 0 && atomic_cas(section_slot(mm, first + left - 1), (u8)SECTION_UNOPENED,
				      (u8)SECTION_OPENING))
		left--;
	if (left == 0)
		return true;
	for (; left < GIB_SECTIONS; left++)
		set_state(mm, first + left, SECTION_UNOPENED);
	return false;
}

static void end_claim(const struct mm *mm, u64 gib, enum section_state state)
{
	for (unsigned left = GIB_SECTIONS; left-- > 0;)
		set_state(mm, gib * GIB_SECTIONS + left, state);
}

static bool defer_gib(struct zone *zone, u64 gib, struct run *run)
{
	struct mm *mm = zone->mm;

	if (section_state(mm, gib * GIB_SECTIONS) != SECTION_UNOPENED || !owns(zone, gib) ||
	    !memmap_was_free(mm, gib * GIB(1), (gib + 1) * GIB(1)) || !claim_unopened(mm, gib))
		return false;
	if (!atomic_load_acquire(&gib_at(zone, gib)->blocks)) {
		gib_at(zone, gib)->kept = run->next;
		run->next += SECTION_RECORD_FRAMES;
		run->left -= SECTION_RECORD_FRAMES;
	}
	/* each GiB by itself: its frames are in the counter as long as its sections are OPENING */
	move_frames(zone, &zone->unopened, &zone->deferred, order_pages(GIGA_ORDER));
	end_claim(mm, gib, SECTION_DEFERRED);
	return true;
}

u64 section_defer_gibs(struct zone *zone, u64 count, const struct gib_use *use)
{
	const u64 unopened = atomic_load_relaxed(&zone->unopened) / order_pages(GIGA_ORDER);
	const u64 wanted = reserve_frames(zone, use, MIN(count, unopened));
	struct run run = {.left = 0};
	u64 deferred = 0;

	for (u64 gib = zone_first_gib(zone); gib < zone_end_gib(zone) && deferred < wanted; gib++) {
		if (run.left == 0 && !take_records(zone, wanted - deferred, &run))
			break;
		deferred += defer_gib(zone, gib, &run);
	}
	give_records(zone, run.next, run.left);
	count_kept(zone, use, (s64)deferred);
	meta_unreserve(zone_meta_node(zone), META_LASTING, (wanted - deferred) * reserved_for(use));
	return deferred;
}

/* ---- and the way back ---- */

/* Claim a GiB if it is deferred: its sections are OPENING then. */
static bool claim_deferred(const struct zone *zone, u64 gib)
{
	const u64 first = gib * GIB_SECTIONS;

	if (section_state(zone->mm, first) != SECTION_DEFERRED || !owns(zone, gib) ||
	    !atomic_cas(section_slot(zone->mm, first), (u8)SECTION_DEFERRED, (u8)SECTION_OPENING))
		return false;
	for (u64 section = first + 1; section < first + GIB_SECTIONS; section++)
		set_state(zone->mm, section, SECTION_OPENING);
	return true;
}

/* Claim that GiB, or the first one that is deferred. Returns its number, or NO_GIB. */
static u64 claim_wanted(const struct zone *zone, u64 wanted)
{
	for (u64 gib = zone_first_gib(zone); gib < zone_end_gib(zone); gib++)
		if ((wanted == GIB_ANY || wanted == gib) && claim_deferred(zone, gib))
			return gib;
	return NO_GIB;
}

u64 section_undefer_gibs(struct zone *zone, u64 count, const struct gib_use *use)
{
	u64 done = 0;

	for (u64 gib = zone_first_gib(zone); gib < zone_end_gib(zone) && done < count; gib++) {
		pfn_t records;

		if (!claim_deferred(zone, gib))
			continue;
		records = kept_records(zone, gib);
		give_records(zone, records, records ? SECTION_RECORD_FRAMES : 0);
		move_frames(zone, &zone->deferred, &zone->unopened, order_pages(GIGA_ORDER));
		end_claim(zone->mm, gib, SECTION_UNOPENED);
		done++;
	}
	count_kept(zone, use, -(s64)done);
	meta_unreserve(zone_meta_node(zone), META_LASTING, done * reserved_for(use));
	return done;
}

/* ---- opening ---- */

/* A GiB that is being opened. */
struct gib_opening {
	struct zone *zone;
	const struct gib_use *use;
	u64 reserved; /* LASTING frames that the opener has reserved: for tables, then for heads */
	u64 heads;    /* HEADS frames of its own blocks that are reserved */
	struct block_list blocks;
};

/* Give the section's first blocks to metadata memory, for heads, and reserve these. */
static void give_to_meta(struct gib_opening *g, struct opening *o)
{
	const unsigned meta = g->use->meta;
	const unsigned each = DIV_ROUND_UP(g->use->heads, meta);

	section_publish_records(o, o->first, meta, BLOCK_META);
	zone_lock(g->zone);
	counter_sub(&g->zone->deferred, meta * BLOCK_FRAMES);
	zone_unlock(g->zone);
	for (u32 index = o->first; index < o->first + meta; index++) {
		if (meta_add_block_reserving(o->node, index, each) < 0)
			meta_leave_block(g->zone, index);
		else
			g->heads += each;
	}
}

/* List the section's blocks from number `from` on, in transit. */
static void give_to_list(struct gib_opening *g, struct opening *o, unsigned from)
{
	const unsigned count = SECTION_BLOCKS - from;

	section_publish_records(o, o->first + from, count, BLOCK_BARE);
	zone_lock(g->zone);
	counter_sub(&g->zone->deferred, count * BLOCK_FRAMES);
	for (u32 index = o->first + from; index < o->first + SECTION_BLOCKS; index++) {
		block_begin(g->zone, index, BLOCK_ORDER, BLOCK_HUGE);
		block_list_push(g->zone->mm, &g->blocks, index);
	}
	zone_unlock(g->zone);
}

/* Open one section of a claimed GiB. Returns its state afterwards. */
static enum section_state open_section(struct gib_opening *g, u64 section)
{
	struct zone *zone = g->zone;
	const unsigned meta = section % GIB_SECTIONS == 0 ? g->use->meta : 0;
	struct opening o = {.mm = zone->mm,
			    .section = section,
			    .style = SECTION_ON_DEMAND,
			    .node = zone_meta_node(zone),
			    .first = (u32)(section * SECTION_BLOCKS),
			    .reserved = g->reserved > 0,
			    .memmap = BLOCK_NONE};
	int err = fail_here(&zone->mm->fail, FAIL_OPEN) ? -ENOMEM : 0;

	g->reserved -= o.reserved;
	if (!err)
		err = section_open_trying(&o, section_open_on_demand);
	if (err) {
		g->reserved += o.reserved;
		move_frames(zone, &zone->deferred, &zone->unopened, SECTION_FRAMES);
		pr_warn("memory: section %llu of a pool cannot be opened", section);
		return SECTION_UNOPENED;
	}
	for (unsigned i = 0; i < SECTION_BLOCKS; i++)
		o.zone[i] = zone->index;
	if (meta > 0)
		give_to_meta(g, &o);
	give_to_list(g, &o, meta);
	mm_count(zone->mm, COUNT_SECTIONS_OPENED, 1);
	wait_moved(WAIT_OPENING);
	return SECTION_OPEN;
}

/*
 * The 512 blocks of a GiB become one run, before its sections are open and others can isolate any
 * of them. If some could not be opened, the others become free.
 */
static void join_blocks(struct gib_opening *g)
{
	const u32 first = g->blocks.head;

	if (g->blocks.count == GIB_BLOCKS && block_join(g->zone, first) == 0) {
		g->blocks = BLOCK_LIST_INIT;
		block_list_push(g->zone->mm, &g->blocks, first);
	} else {
		block_list_publish_free(g->zone->mm, &g->blocks);
	}
}

/* Let the list have as many runs as there are heads reserved for, at most use->heads. */
static void match_heads(struct gib_opening *g)
{
	const enum meta_kind kind = g->use->join ? META_LASTING : META_HEADS;
	struct node *node = zone_meta_node(g->zone);
	struct block_list without = BLOCK_LIST_INIT;
	const u64 lacking = g->use->heads - MIN(g->use->heads, g->heads);
	u64 heads = g->heads + MIN(g->reserved, lacking);

	if (!g->use->join)
		meta_keep_as_heads(node, heads - g->heads);
	meta_unreserve(node, META_LASTING, g->reserved - (heads - g->heads));
	if (heads < g->use->heads && meta_reserve(node, kind, g->use->heads - heads) == 0)
		heads = g->use->heads;
	while (g->blocks.count > heads)
		block_list_push(g->zone->mm, &without, block_list_pop(g->zone->mm, &g->blocks));
	block_list_publish_free(g->zone->mm, &without);
	meta_unreserve(node, kind, heads - g->blocks.count);
}

bool section_open_deferred(struct zone *zone, u64 wanted, const struct gib_use *use,
			   struct block_list *list)
{
	const u64 gib = claim_wanted(zone, wanted), first = gib * GIB_SECTIONS;
	struct gib_opening g = {.zone = zone,
				.use = use,
				.reserved = reserved_for(use) - OTHERS,
				.blocks = BLOCK_LIST_INIT};
	enum section_state state[GIB_SECTIONS];
	pfn_t records;

	if (gib == NO_GIB)
		return false;
	count_kept(zone, use, -1);
	meta_unreserve(zone_meta_node(zone), META_LASTING, OTHERS);
	records = kept_records(zone, gib);
	if (records)
		section_set_records(zone->mm, gib, records);
	for (unsigned i = 0; i < GIB_SECTIONS; i++)
		state[i] = open_section(&g, first + i);
	if (use->join)
		join_blocks(&g);
	for (unsigned i = GIB_SECTIONS; i-- > 0;)
		set_state(zone->mm, first + i, state[i]);
	match_heads(&g);
	block_list_splice(zone->mm, list, &g.blocks);
	meta_top_up(zone_meta_node(zone));
	return true;
}
