/* Deferred pages of pools: see pool_defer.h. */
#include "mm/hugetlb/pool_defer.h"

#include "kernel/core/context.h"
#include "mm/zone/section_defer.h"

/* Blocks of a GiB for metadata memory: 1024 frames, for 510 heads and the tables below them. */
enum { META_BLOCKS = 2 };

u64 pool_gib_pages(const struct pool *pool)
{
	return pool->order == GIGA_ORDER ? 1 : GIB_BLOCKS - META_BLOCKS;
}

u64 pool_deferred_frames(const struct pool *pool)
{
	u64 pages = 0;

	for (node_t n = 0; n < pool->mm->nodes; n++)
		pages += atomic_load_relaxed(&pool->node[n].deferred);
	return pages * order_pages(pool->order);
}

/*
 * How the pool uses the zone's deferred GiB. Some blocks of each become metadata memory, unless the
 * metadata memory of their node is on another node.
 */
static struct gib_use use_of(const struct pool *pool, struct zone *zone)
{
	const bool giga = pool->order == GIGA_ORDER;

	return (struct gib_use){
		.heads = (unsigned)pool_gib_pages(pool),
		.meta = giga || zone_meta_node(zone) != zone_node(zone) ? 0 : META_BLOCKS,
		.join = giga};
}

/* ---- into the pool and back, in whole GiB ---- */

typedef u64 change_gibs_fn(struct zone *zone, u64 count, const struct gib_use *use);

static u64 change_on(struct pool *pool, node_t node, u64 gibs, change_gibs_fn *change)
{
	u64 done = 0;

	for (int kind = ZONE_NORMAL; kind >= 0; kind--) {
		struct zone *zone = node_zone(&pool->mm->node[node], kind);

		if (zone) {
			const struct gib_use use = use_of(pool, zone);

			done += change(zone, gibs - done, &use);
		}
	}
	return done;
}

static u64 defer_on(struct pool *pool, node_t node, u64 count)
{
	const u64 gib = pool_gib_pages(pool);
	const u64 pages = gib * change_on(pool, node, count / gib, section_defer_gibs);

	spin_lock(&pool->lock);
	pool->node[node].deferred += pages;
	pool->node[node].pages += pages;
	pool->pages += pages;
	counter_add(&pool->free, pages);
	spin_unlock(&pool->lock);
	return pages;
}

/*
 * Claim as many whole GiB of the node as may go. Free pages that are surplus leave first. Returns
 * the pages claimed, with *surplus of them.
 */
static u64 claim_to_undefer(struct pool *pool, struct pool_node *node, u64 count, u64 *surplus)
{
	u64 pages;

	spin_lock(&pool->lock);
	pages = MIN(count, pool->free - MIN(pool->free, pool->reserved));
	pages = MIN(pages, node->deferred);
	pages -= pages % pool_gib_pages(pool);
	*surplus = MIN(pages, pool_node_free_surplus(node));
	node->deferred -= pages;
	node->pages -= pages;
	node->surplus -= *surplus;
	pool->pages -= pages;
	counter_sub(&pool->free, pages);
	pool->surplus -= *surplus;
	spin_unlock(&pool->lock);
	return pages;
}

/* Pages that were claimed, but whose GiB other CPUs moved while they were looked for, come back. */
static void take_back(struct pool *pool, struct pool_node *node, u64 pages, u64 surplus)
{
	spin_lock(&pool->lock);
	node->deferred += pages;
	node->pages += pages;
	node->surplus += surplus;
	pool->pages += pages;
	counter_add(&pool->free, pages);
	pool->surplus += surplus;
	spin_unlock(&pool->lock);
}

static u64 undefer_on(struct pool *pool, node_t node, u64 count)
{
	const u64 gib = pool_gib_pages(pool);
	u64 surplus;
	const u64 claimed = claim_to_undefer(pool, &pool->node[node], count, &surplus);
	const u64 pages =
		claimed ? gib * change_on(pool, node, claimed / gib, section_undefer_gibs) : 0;

	if (pages < claimed)
		take_back(pool, &pool->node[node], claimed - pages, surplus - MIN(surplus, pages));
	return pages;
}

/* Pages that the node could give to the pool: those of memory that was never opened. */
static u64 unopened_pages(struct pool *pool, node_t node)
{
	u64 frames = 0;

	for (int kind = ZONE_NORMAL; kind >= 0; kind--) {
		const struct zone *zone = node_zone(&pool->mm->node[node], kind);

		frames += zone ? atomic_load_relaxed(&zone->unopened) : 0;
	}
	return frames / order_pages(pool->order);
}

static u64 free_pages(struct pool *pool, node_t node)
{
	u64 pages;

	spin_lock(&pool->lock);
	pages = pool->node[node].free.count + pool->node[node].deferred;
	spin_unlock(&pool->lock);
	return pages;
}

/* Deferring, or the way back. */
struct change {
	u64 (*pages)(struct pool *pool, node_t node); /* how many it could be at most */
	u64 (*on)(struct pool *pool, node_t node, u64 count);
};

/*
 * Change as many whole GiB as fit into each node's equal share. A node that has less than its share
 * leaves the rest to the nodes after it. The remainders, each less than a GiB, are left to the
 * caller, who handles them page by page.
 */
static u64 change(struct pool *pool, node_t node, u64 count, const struct change *how)
{
	const node_t nodes = pool->mm->nodes;
	u64 done = 0;

	context_assert(CONTEXT_ORDINARY);
	if (node != NODE_NONE)
		return node < nodes ? how->on(pool, node, count) : 0;
	for (node_t n = 0; n < nodes; n++) {
		const u64 own = MIN(pool_share_of(count, nodes - n), how->pages(pool, n));

		done += how->on(pool, n, own);
		count -= own;
	}
	return done;
}

u64 pool_defer(struct pool *pool, node_t node, u64 count)
{
	static const struct change deferring = {.pages = unopened_pages, .on = defer_on};

	return change(pool, node, count, &deferring);
}

u64 pool_undefer(struct pool *pool, node_t node, u64 count)
{
	static const struct change undeferring = {.pages = free_pages, .on = undefer_on};

	return change(pool, node, count, &undeferring);
}

u64 pool_undefer_surplus(struct pool *pool, u64 count)
{
	u64 done = 0, surplus;

	context_assert(CONTEXT_ORDINARY);
	for (node_t n = 0; n < pool->mm->nodes; n++) {
		spin_lock(&pool->lock);
		surplus = pool_node_free_surplus(&pool->node[n]);
		spin_unlock(&pool->lock);
		done += undefer_on(pool, n, MIN(count - done, surplus));
	}
	return done;
}

/* ---- making the pages ---- */

bool pool_open_gib(struct pool *pool, node_t node, u64 gib, struct block_list *list)
{
	for (int kind = ZONE_NORMAL; kind >= 0; kind--) {
		struct zone *zone = node_zone(&pool->mm->node[node], kind);
		struct gib_use use;

		if (!zone)
			continue;
		use = use_of(pool, zone);
		if (!section_open_deferred(zone, gib, &use, list))
			continue;
		hvo_make_all(pool->mm, &hvo_modes[HVO_ON], list);
		return true;
	}
	return false;
}
