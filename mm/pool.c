/*
 * Huge page pools: see pool.h. Taking pages, reserving, counting what is saved: pool_use.c.
 */
#include "mm/pool.h"

#include "kernel/panic.h"
#include "mm/meta.h"
#include "mm/transit.h"

struct pool pool_2m, pool_1g;

void pool_init(struct pool *pool, struct mm *mm, unsigned order, struct pool_node *nodes)
{
	*pool = (struct pool){.mm = mm, .order = order, .lock = SPINLOCK_INIT(LOCK_POOL), .node = nodes};
	for (node_t n = 0; n < mm->nodes; n++)
		nodes[n] = (struct pool_node){.free = BLOCK_LIST_INIT};
}

static struct pool_node *node_of_block(struct pool *pool, u32 index)
{
	return &pool->node[block_zone(pool->mm, index)->node];
}

static void settle_all(struct mm *mm)
{
	for (node_t n = 0; n < mm->nodes; n++)
		meta_settle(&mm->node[n]);
}

/* ---- in ---- */

/*
 * Runs in transit, already huge: they belong to the pool before anybody can find them in it. One lock cycle for the whole
 * batch; on a machine of one node the list just changes hands.
 */
static u64 pool_enqueue(struct pool *pool, struct block_list *list)
{
	const u64 count = list->count;
	u32 index;

	block_list_publish_used(pool->mm, list, BLOCK_POOL | BLOCK_POOL_FREE);
	spin_lock(&pool->lock);
	if (pool->mm->nodes == 1) {
		block_list_splice(pool->mm, &pool->node[0].free, list);
		pool->node[0].pages += count;
	}
	while ((index = block_list_pop(pool->mm, list)) != BLOCK_NONE) {
		struct pool_node *node = node_of_block(pool, index);

		block_list_push(pool->mm, &node->free, index);
		node->pages++;
	}
	pool->pages += count;
	pool->free += count;
	spin_unlock(&pool->lock);
	return count;
}

/* Runs of one node, NORMAL before DMA32, appended to the batch. */
static void take_from_node(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count, struct block_list *list)
{
	const u64 before = list->count;

	for (int kind = ZONE_NORMAL; kind >= 0; kind--) {
		const u8 zone = pool->mm->node[node].zone[kind];
		const u64 taken = list->count - before;

		if (zone != ZONE_NONE && taken < count)
			hvo_take_blocks(&pool->mm->zone[zone], mode, pool->order, count - taken, list);
	}
}

/* Equal shares from all nodes, then from any what others could not give. */
static void take_from_all(struct pool *pool, const struct hvo_mode *mode, u64 count, struct block_list *list)
{
	const node_t nodes = pool->mm->nodes;

	for (node_t n = 0; n < nodes && list->count < count; n++)
		take_from_node(pool, mode, n, DIV_ROUND_UP(count - list->count, nodes - n), list);
	for (node_t n = 0; n < nodes && list->count < count; n++)
		take_from_node(pool, mode, n, count - list->count, list);
}

u64 pool_grow_on(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count)
{
	struct mm *mm = pool->mm;
	u64 grown = 0, before;

	if (node != NODE_NONE && node >= mm->nodes)
		return 0;
	do { /* again while it helps: frames freed by one batch may serve the next */
		struct block_list list = BLOCK_LIST_INIT;

		before = grown;
		if (node == NODE_NONE)
			take_from_all(pool, mode, count - grown, &list);
		else
			take_from_node(pool, mode, node, count - grown, &list);
		hvo_optimise(mm, mode, &list);
		grown += pool_enqueue(pool, &list);
		settle_all(mm);
	} while (grown < count && grown > before);
	return grown;
}

u64 pool_grow(struct pool *pool, const struct hvo_mode *mode, u64 count)
{
	return pool_grow_on(pool, mode, NODE_NONE, count);
}

/* ---- out ---- */

/* Up to `count` free, unreserved pages off the pool in one lock cycle; from all nodes the fullest share is taken last. */
static void pool_dequeue(struct pool *pool, node_t only, u64 count, struct block_list *list)
{
	spin_lock(&pool->lock);
	count = MIN(count, pool->free - MIN(pool->free, pool->reserved));
	for (node_t n = pool->mm->nodes; n-- > 0;) {
		if (only != NODE_NONE && n != only)
			continue;
		if (pool->node[n].free.count <= count - list->count) {
			pool->node[n].pages -= pool->node[n].free.count;
			block_list_splice(pool->mm, list, &pool->node[n].free);
		}
		while (list->count < count && pool->node[n].free.count > 0) {
			block_list_push(pool->mm, list, block_list_pop(pool->mm, &pool->node[n].free));
			pool->node[n].pages--;
		}
	}
	pool->pages -= list->count;
	pool->free -= list->count;
	spin_unlock(&pool->lock);
}

/* Pages with all their struct pages are ordinary memory again; huge ones keep a formed, frozen head on the free list too. */
static void forget_heads(struct mm *mm, const struct block_list *list)
{
	for (u32 index = list->head; index != BLOCK_NONE; index = block_at(mm, index)->next)
		if (block_at(mm, index)->state == BLOCK_FULL)
			page_set_kind(pfn_page(mm, block_pfn(index)), 0, 0);
}

/*
 * Runs in transit that need restoring. S0's contract: restore until the first error, free what was restored, which brings
 * frames, and try the rest again while that helps. What cannot be restored stays in the pool, usable: pool_resize()
 * counts it as surplus. Returns how many were given back.
 */
static u64 release_restored(struct pool *pool, const struct hvo_mode *mode, struct block_list *list)
{
	struct mm *mm = pool->mm;
	u64 given = 0, restored;

	do {
		struct block_list done = BLOCK_LIST_INIT;

		hvo_restore(mm, mode, list, &done, &restored);
		given += done.count;
		forget_heads(mm, &done);
		block_list_publish_free(mm, &done);
	} while (list->count > 0 && restored > 0);
	pool_enqueue(pool, list);
	return given;
}

/* Huge pages of mapped sections: out of `list`. */
static void take_restorable(struct mm *mm, struct block_list *list, struct block_list *restore)
{
	for (u32 index = list->head, next; index != BLOCK_NONE; index = next) {
		const struct block *block = block_at(mm, index);

		next = block->next;
		if (block->state == BLOCK_HUGE && (block->flags & BLOCK_MAPPED)) {
			block_list_remove(mm, list, index);
			block_list_push(mm, restore, index);
		}
	}
}

u64 pool_shrink_on(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count)
{
	struct block_list list = BLOCK_LIST_INIT, restore = BLOCK_LIST_INIT;
	u64 given;

	pool_dequeue(pool, node, count, &list);
	take_restorable(pool->mm, &list, &restore);
	given = list.count;
	forget_heads(pool->mm, &list);
	block_list_free(pool->mm, &list);
	if (restore.count > 0) {
		block_list_begin(pool->mm, &restore, BLOCK_FULL);
		given += release_restored(pool, mode, &restore);
	}
	settle_all(pool->mm);
	return given;
}

u64 pool_shrink(struct pool *pool, const struct hvo_mode *mode, u64 count)
{
	return pool_shrink_on(pool, mode, NODE_NONE, count);
}

u64 pool_resize(struct pool *pool, const struct hvo_mode *mode, u64 target)
{
	u64 persistent, adopted;

	spin_lock(&pool->lock);
	persistent = pool->pages - pool->surplus;
	if (target > persistent) { /* surplus pages are as good as new ones */
		adopted = MIN(target - persistent, pool->surplus);
		pool->surplus -= adopted;
		persistent += adopted;
	}
	spin_unlock(&pool->lock);
	if (target > persistent)
		pool_grow(pool, mode, target - persistent);
	else if (target < persistent)
		pool_shrink(pool, mode, persistent - target);
	spin_lock(&pool->lock);
	persistent = pool->pages - pool->surplus;
	if (persistent > target) { /* in use or reserved: gone when they come back */
		pool->surplus += persistent - target;
		persistent = target;
	}
	spin_unlock(&pool->lock);
	return persistent;
}

/* ---- between pools ---- */

/* 1 GiB pages that have all their struct pages become 2 MiB pages that the mode makes huge. */
static void demote_full(struct mm *mm, const struct hvo_mode *mode, struct block_list *list, struct block_list *done)
{
	struct hvo_mode in_place = *mode; /* heads were reserved for nobody: they stay where they are */
	struct block_list pieces = BLOCK_LIST_INIT;
	u32 index;

	in_place.new_head = false;

	while ((index = block_list_pop(mm, list)) != BLOCK_NONE) {
		for (u32 i = 0; i < GIB_BLOCKS; i++) {
			block_at(mm, index + i)->order = BLOCK_ORDER;
			block_set_flags(block_at(mm, index + i), BLOCK_TRANSIT);
			block_list_push(mm, &pieces, index + i);
		}
	}
	hvo_optimise(mm, &in_place, &pieces);
	while ((index = block_list_pop(mm, &pieces)) != BLOCK_NONE)
		block_list_push(mm, done, index);
}

u64 pool_demote(struct pool *from, struct pool *to, const struct hvo_mode *mode, u64 count)
{
	struct mm *mm = from->mm;
	struct block_list list = BLOCK_LIST_INIT, full = BLOCK_LIST_INIT, huge = BLOCK_LIST_INIT;
	struct block_list done = BLOCK_LIST_INIT;
	struct block_list restorable = BLOCK_LIST_INIT;
	u64 restored, demoted;
	u32 index;

	ASSERT(from->order == GIGA_ORDER && to->order == BLOCK_ORDER && to->mm == mm, "demotion between wrong pools");
	pool_dequeue(from, NODE_NONE, count, &list);
	block_list_begin(mm, &list, BLOCK_HUGE);
	while ((index = block_list_pop(mm, &list)) != BLOCK_NONE)
		block_list_push(mm, block_at(mm, index)->flags & BLOCK_MAPPED ? &full : &huge, index);
	demoted = hvo_demote(mm, &huge, &done);
	hvo_restore(mm, mode, &full, &restorable, &restored);
	demoted += restorable.count;
	forget_heads(mm, &restorable);
	demote_full(mm, mode, &restorable, &done);

	pool_enqueue(to, &done);
	pool_enqueue(from, &huge); /* what could not be changed goes back as it is */
	pool_enqueue(from, &full);
	settle_all(mm);
	return demoted;
}
