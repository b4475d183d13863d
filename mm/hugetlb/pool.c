/* Huge page pools: see pool.h. pool_use.c takes pages, reserves them and counts what is saved. */
#include "mm/hugetlb/pool.h"

#include "kernel/core/context.h"
#include "kernel/core/panic.h"
#include "kernel/core/printk.h"
#include "kernel/core/reason_set.h"
#include "kernel/core/wait.h"
#include "mm/hugetlb/pool_defer.h"
#include "mm/hugetlb/prezero.h"
#include "mm/hvo/hvo_restore.h"
#include "mm/hvo/hvo_take.h"
#include "mm/memmap/meta.h"
#include "mm/zone/section_close.h"
#include "mm/zone/section_defer.h"
#include "mm/zone/transit.h"

struct pool pool_2m, pool_1g;

void pool_init(struct pool *pool, struct mm *mm, unsigned order, struct pool_node *nodes)
{
	*pool = (struct pool){
		.mm = mm, .order = order, .lock = SPINLOCK_INIT(LOCK_POOL), .node = nodes};
	for (node_t n = 0; n < mm->nodes; n++)
		nodes[n] = (struct pool_node){.free = BLOCK_LIST_INIT};
	pool->next = mm->pools;
	mm->pools = pool;
}

struct pool *pool_with_order(struct mm *mm, unsigned order)
{
	struct pool *pool = mm->pools;

	while (pool && pool->order != order)
		pool = pool->next;
	return pool;
}

static struct pool_node *node_of_block(struct pool *pool, u32 index)
{
	return &pool->node[block_zone(pool->mm, index)->node];
}

/* Pool lock held. Zero pages stand first in the list of their node. */
static void push_free(struct pool *pool, u32 index, bool zeroed)
{
	struct block_list *free = &node_of_block(pool, index)->free;

	if (zeroed)
		block_list_push_front(pool->mm, free, index);
	else
		block_list_push(pool->mm, free, index);
	counter_add(&pool->zeroed, zeroed);
}

void pool_list_free(struct pool *pool, u32 index)
{
	push_free(pool, index, block_set_pool_free(pool->mm, index));
}

/* ---- into the pool ---- */

/*
 * New persistent pages; surplus; surplus and promised the moment they can be found; or pages that
 * were deferred, and are counted as pages already.
 */
enum pool_kept { POOL_KEPT, POOL_KEPT_AS_SURPLUS, POOL_PROMISED, POOL_WAS_DEFERRED };

/*
 * Enqueue a slice in one turn at the lock. On a machine with one node the list just changes hands,
 * unless zero pages are among its pages.
 */
static void enqueue_slice(struct pool *pool, struct block_list *list, enum pool_kept kept)
{
	const u64 count = list->count, added = kept == POOL_WAS_DEFERRED ? 0 : 1;
	const u64 surplus = kept == POOL_KEPT_AS_SURPLUS || kept == POOL_PROMISED;
	bool zeroed = false;

	spin_lock(&pool->lock);
	block_list_foreach(pool->mm, index, list)
		zeroed |= block_set_pool_free(pool->mm, index);
	if (pool->mm->nodes == 1 && !zeroed) {
		block_list_splice(pool->mm, &pool->node[0].free, list);
		pool->node[0].pages += added * count;
		pool->node[0].surplus += surplus * count;
	}
	block_list_drain(pool->mm, index, list) {
		struct pool_node *node = node_of_block(pool, index);

		push_free(pool, index, block_is_zero(pool->mm, index));
		node->pages += added;
		node->surplus += surplus;
	}
	pool->surplus += surplus * count;
	pool->pages += added * count;
	counter_add(&pool->free, count);
	if (kept == POOL_PROMISED) {
		pool->reserved += count;
		pool->making -= count;
	}
	if (kept == POOL_WAS_DEFERRED) {
		counter_sub(&pool->in_use, count);
		pool->opening -= count;
	}
	spin_unlock(&pool->lock);
}

/* Has one of the pages a frame that was found bad while the page was not free? */
static bool has_bad(const struct pool *pool, const struct block_list *list)
{
	if (likely(!(atomic_load_relaxed(&pool->mm->watch) & WATCH_BAD)))
		return false;
	block_list_foreach(pool->mm, index, list)
		if (bad_frames_pending(pool->mm, block_pfn(index), order_pages(pool->order)))
			return true;
	return false;
}

/*
 * Enqueue runs in transit that are already huge. They are marked as the pool's before anybody can
 * find them in it.
 */
static u64 pool_enqueue(struct pool *pool, struct block_list *list, enum pool_kept kept)
{
	const u64 count = list->count;
	const bool bad = has_bad(pool, list);
	struct block_list slice;

	while (list->count > 0) {
		block_list_cut(pool->mm, list, LOCK_SLICE, &slice);
		/* this also brings the records into the cache before the pool writes them */
		block_list_publish_used(pool->mm, &slice, BLOCK_POOL);
		enqueue_slice(pool, &slice, kept);
	}
	prezero_wake(pool);
	if (bad)
		bad_frames_withdraw(pool->mm);
	return count;
}

/* Take runs of one node, NORMAL before DMA32, and append them to the batch. */
static void take_from_node(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count,
			   struct block_list *list)
{
	const u64 before = list->count;

	for (int kind = ZONE_NORMAL; kind >= 0; kind--) {
		struct zone *zone = node_zone(&pool->mm->node[node], kind);
		const u64 taken = list->count - before;

		if (zone && taken < count)
			hvo_take_blocks(zone, mode, pool->order, count - taken, list);
	}
}

/*
 * Take equal shares from all nodes, with the remainder one page a node, round robin. What some
 * nodes could not give is then taken from any.
 */
static void take_from_all(struct pool *pool, const struct hvo_mode *mode, u64 count,
			  struct block_list *list)
{
	const node_t nodes = pool->mm->nodes;
	const node_t first = (node_t)(atomic_fetch_add(&pool->turn, count) % nodes);

	for (node_t i = 0; i < nodes && list->count < count; i++)
		take_from_node(pool, mode, (first + i) % nodes,
			       pool_share_of(count - list->count, nodes - i), list);
	for (node_t i = 0; i < nodes && list->count < count; i++)
		take_from_node(pool, mode, (first + i) % nodes, count - list->count, list);
}

u64 pool_make(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count,
	      struct block_list *list)
{
	context_assert(CONTEXT_ORDINARY);
	mode = hvo_mode_or_selected(mode);
	if (node == NODE_NONE)
		take_from_all(pool, mode, count, list);
	else
		take_from_node(pool, mode, node, count, list);
	hvo_make_all(pool->mm, mode, list);
	return list->count;
}

/*
 * Call sections_give_back(), unless that was done since the pool last grew. Returns whether it was
 * called.
 */
static bool give_back_once(const struct pool *pool, const struct hvo_mode *mode, bool *asked)
{
	if (*asked)
		return false;
	*asked = true;
	sections_give_back(pool->mm, hvo_style(mode));
	return true;
}

u64 pool_grow_on(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count)
{
	u64 grown = 0, before;
	bool asked = false;

	context_assert(CONTEXT_ORDINARY);
	mode = hvo_mode_or_selected(mode);
	if (node != NODE_NONE && node >= pool->mm->nodes) {
		reason_set(REASON_BAD_NODE);
		return 0;
	}
	do { /* repeat while it helps: frames freed by one batch may serve the next */
		struct block_list list = BLOCK_LIST_INIT;

		before = grown;
		pool_make(pool, mode, node, count - grown, &list);
		grown += pool_enqueue(pool, &list, POOL_KEPT);
		meta_end_batch_all(pool->mm);
		if (grown > before)
			asked = false;
	} while (grown < count && (grown > before || give_back_once(pool, mode, &asked)));
	if (grown < count)
		reason_set(REASON_NO_MEMORY);
	return grown;
}

u64 pool_grow(struct pool *pool, const struct hvo_mode *mode, u64 count)
{
	context_assert(CONTEXT_ORDINARY);
	return pool_grow_on(pool, mode, NODE_NONE, count);
}

u64 pool_add_promised(struct pool *pool, u64 count)
{
	struct block_list list = BLOCK_LIST_INIT;
	u64 made;

	context_assert(CONTEXT_ORDINARY);
	pool_make(pool, hvo_mode_selected(), NODE_NONE, count, &list);
	made = pool_enqueue(pool, &list, POOL_PROMISED);
	spin_lock(&pool->lock);
	pool->making -= count - made;
	spin_unlock(&pool->lock);
	meta_end_batch_all(pool->mm);
	return made;
}

/* ---- deferred pages ---- */

/* Claim the pages of one GiB. While they are made they are in use. */
static bool claim_deferred(struct pool *pool, struct pool_node *node)
{
	const u64 count = pool_gib_pages(pool);
	bool claimed;

	spin_lock(&pool->lock);
	claimed = !node->opening && node->deferred > 0;
	if (claimed) {
		node->opening = true;
		node->deferred -= count;
		counter_sub(&pool->free, count);
		counter_add(&pool->in_use, count);
		pool->opening += count;
	}
	spin_unlock(&pool->lock);
	return claimed;
}

/* Of the pages claimed, those not enqueued are deferred again, or leave the pool. */
static void end_claim(struct pool *pool, struct pool_node *node, u64 count, bool deferred)
{
	spin_lock(&pool->lock);
	node->opening = false;
	pool->opening -= count;
	counter_sub(&pool->in_use, count);
	if (deferred) {
		node->deferred += count;
		counter_add(&pool->free, count);
	} else {
		node->pages -= count;
		pool->pages -= count;
		pool->surplus -= node->surplus - MIN(node->surplus, node->pages);
		node->surplus = MIN(node->surplus, node->pages);
	}
	spin_unlock(&pool->lock);
}

bool pool_make_deferred(struct pool *pool, node_t n, u64 gib)
{
	struct block_list list = BLOCK_LIST_INIT;
	struct pool_node *node = &pool->node[n];
	u64 missing = pool_gib_pages(pool);
	bool opened;

	context_assert(CONTEXT_ORDINARY);
	if (!claim_deferred(pool, node))
		return false;
	opened = pool_open_gib(pool, n, gib, &list);
	missing -= pool_enqueue(pool, &list, POOL_WAS_DEFERRED);
	if (opened && missing > 0)
		pr_warn("pool: %llu deferred pages of order %u on node %u could not be made",
			missing, pool->order, n);
	end_claim(pool, node, missing, !opened);
	return opened;
}

void pool_make_all_deferred(struct pool *pool)
{
	context_assert(CONTEXT_ORDINARY);
	for (node_t n = 0; n < pool->mm->nodes; n++)
		while (pool_make_deferred(pool, n, GIB_ANY))
			;
}

/* The pool of small pages first: its pages can be moved. */
void pools_open_deferred(struct mm *mm, u64 gib)
{
	static const unsigned orders[] = {BLOCK_ORDER, GIGA_ORDER};

	context_assert(CONTEXT_ORDINARY);
	for (unsigned i = 0; i < ARRAY_LEN(orders); i++) {
		struct pool *pool = pool_with_order(mm, orders[i]);

		for (node_t n = 0; pool && n < mm->nodes; n++)
			if (pool_make_deferred(pool, n, gib))
				return;
	}
}

/*
 * Has the node deferred pages to make, and fewer than `count` pages are listed: on the node, or on
 * all nodes?
 */
static bool wants_deferred(struct pool *pool, const struct pool_node *node, bool all, u64 count)
{
	u64 listed = 0;
	bool wants;

	spin_lock(&pool->lock);
	for (node_t n = 0; n < pool->mm->nodes; n++)
		if (all || &pool->node[n] == node)
			listed += pool->node[n].free.count;
	wants = listed < count && (node->deferred > 0 || node->opening);
	spin_unlock(&pool->lock);
	return wants;
}

static void make_listed_on(struct pool *pool, node_t n, bool all, u64 count)
{
	struct wait wait = wait_begin(WAIT_TRANSIT, "deferred pages that another CPU makes");

	wait.soft = true;
	while (wants_deferred(pool, &pool->node[n], all, count))
		if (!pool_make_deferred(pool, n, GIB_ANY))
			wait_spin(&wait, CPU_NONE);
}

/*
 * How many of `count` pages may leave: none that is reserved. The node in *first gives the first
 * page of the remainder.
 */
static u64 may_leave(struct pool *pool, u64 count, node_t *first)
{
	spin_lock(&pool->lock);
	*first = (node_t)(pool->free_turn % pool->mm->nodes);
	count = MIN(count, pool->free - MIN(pool->free, pool->reserved));
	spin_unlock(&pool->lock);
	return count;
}

/*
 * Make deferred pages until as many are listed as dequeue_slice() will find for this count: on one
 * node, or on each its share, and in all as many as may leave.
 */
static void make_listed(struct pool *pool, node_t only, u64 count)
{
	const node_t nodes = pool->mm->nodes;
	node_t first;
	u64 left = may_leave(pool, count, &first);

	if (only != NODE_NONE) {
		if (only < nodes)
			make_listed_on(pool, only, false, left);
		return;
	}
	count = left;
	for (node_t i = 0; i < nodes; i++) {
		const u64 share = pool_share_of(left, nodes - i);

		make_listed_on(pool, (first + i) % nodes, false, share);
		left -= share;
	}
	for (node_t n = 0; n < nodes; n++)
		make_listed_on(pool, n, true, count);
}

/* ---- out of the pool ---- */

/*
 * Pool lock held. Dequeue up to `count` free pages of one node. A node's surplus is attributed to
 * its pages in use first; if some free pages are surplus beyond that, they leave first.
 */
static void dequeue_from_node(struct pool *pool, struct pool_node *node, u64 count,
			      struct block_list *list)
{
	const u64 surplus = pool_node_free_surplus(node), before = list->count;
	u64 taken;

	if (node->free.count <= count)
		block_list_splice(pool->mm, list, &node->free);
	while (list->count - before < count && node->free.count > 0)
		block_list_push(pool->mm, list, block_list_pop(pool->mm, &node->free));
	taken = list->count - before;
	node->pages -= taken;
	node->surplus -= MIN(taken, surplus);
	pool->surplus -= MIN(taken, surplus);
}

/* Pool lock held. Account for pages that are already off the free lists. */
static void leave_pool(struct pool *pool, const struct block_list *list)
{
	block_list_foreach(pool->mm, index, list)
		pool_unlist_free(pool, index);
	pool->pages -= list->count;
	counter_sub(&pool->free, list->count);
}

/*
 * Pool lock held. Dequeue equal shares from all nodes, with the remainder one page a node, round
 * robin. Pages that some nodes lack are then taken from any node.
 */
static void dequeue_from_all(struct pool *pool, u64 count, struct block_list *list)
{
	const node_t nodes = pool->mm->nodes, first = (node_t)(pool->free_turn % nodes);

	for (node_t i = 0; i < nodes; i++)
		dequeue_from_node(pool, &pool->node[(first + i) % nodes],
				  pool_share_of(count - list->count, nodes - i), list);
	for (node_t i = 0; i < nodes; i++)
		dequeue_from_node(pool, &pool->node[(first + i) % nodes], count - list->count,
				  list);
	pool->free_turn += list->count;
}

/* Dequeue up to `count` free, unreserved pages in one turn at the lock. */
static void dequeue_slice(struct pool *pool, node_t only, u64 count, struct block_list *list)
{
	spin_lock(&pool->lock);
	count = MIN(count, pool->free - MIN(pool->free, pool->reserved));
	if (only == NODE_NONE)
		dequeue_from_all(pool, count, list);
	else if (only < pool->mm->nodes)
		dequeue_from_node(pool, &pool->node[only], count, list);
	leave_pool(pool, list);
	spin_unlock(&pool->lock);
}

/* Dequeue up to `count` surplus pages, from nodes that have any, in one hold of the lock. */
static void dequeue_surplus(struct pool *pool, u64 count, struct block_list *list)
{
	spin_lock(&pool->lock);
	count = MIN(count, pool->free - MIN(pool->free, pool->reserved));
	for (node_t n = 0; n < pool->mm->nodes; n++) {
		struct pool_node *node = &pool->node[n];
		const u64 most = MIN(count - list->count, MIN(node->surplus, node->free.count));

		for (u64 i = 0; i < most; i++)
			block_list_push(pool->mm, list, block_list_pop(pool->mm, &node->free));
		node->pages -= most;
		node->surplus -= most;
		pool->surplus -= most;
	}
	leave_pool(pool, list);
	spin_unlock(&pool->lock);
}

/* Make deferred pages where surplus ones are free and not made. */
static void list_surplus(struct pool *pool, u64 count)
{
	for (node_t n = 0; n < pool->mm->nodes; n++) {
		u64 surplus;

		spin_lock(&pool->lock);
		surplus = MIN(pool_node_free_surplus(&pool->node[n]),
			      pool->free - MIN(pool->free, pool->reserved));
		spin_unlock(&pool->lock);
		make_listed_on(pool, n, false, MIN(count, surplus));
	}
}

/*
 * Dequeue any number of pages into an empty list, slice by slice. Each slice is a multiple of the
 * number of nodes; the remainder is taken last.
 */
static void pool_dequeue(struct pool *pool, node_t only, u64 count, struct block_list *list)
{
	const u64 most = LOCK_SLICE - LOCK_SLICE % pool->mm->nodes;
	u64 wanted, taken;

	make_listed(pool, only, count);
	do {
		struct block_list slice = BLOCK_LIST_INIT;

		wanted = MIN(count - list->count, most);
		dequeue_slice(pool, only, wanted, &slice);
		taken = slice.count;
		block_list_splice(pool->mm, list, &slice);
	} while (taken == wanted && list->count < count);
}

/* Before pages of `list` are freed. */
static void forget_heads(struct mm *mm, const struct hvo_mode *mode, const struct block_list *list)
{
	if (mode->forget)
		mode->forget(mm, list);
}

/*
 * Release runs in transit that need restoring. The contract is that of the HVO series (Kravetz
 * 2023): restore the runs there are frames for, free those runs, which brings frames, and try the
 * rest again as long as that helps. Runs that cannot be restored stay in the pool, usable, as
 * surplus. Returns how many were given back.
 */
static u64 release_restored(struct pool *pool, const struct hvo_mode *mode, struct block_list *list)
{
	struct mm *mm = pool->mm;
	u64 given = 0, restored;

	do {
		struct block_list done = BLOCK_LIST_INIT;

		hvo_restore(mm, mode, list, &done, &restored);
		given += done.count;
		forget_heads(mm, mode, &done);
		block_list_publish_free(mm, &done);
	} while (list->count > 0 && restored > 0);
	pool_enqueue(pool, list, POOL_KEPT_AS_SURPLUS);
	return given;
}

/* Move the huge pages of mapped sections from `list` to `restore`. */
static void take_restorable(struct mm *mm, struct block_list *list, struct block_list *restore)
{
	for (u32 index = list->head, next; index != BLOCK_NONE; index = next) {
		const struct block *block = block_at(mm, index);
		const struct block_word word = block_look(block);

		next = block->next;
		if (word.state == BLOCK_HUGE && (word.flags & BLOCK_MAPPED)) {
			block_list_remove(mm, list, index);
			block_list_push(mm, restore, index);
		}
	}
}

u64 pool_release(struct pool *pool, const struct hvo_mode *mode, struct block_list *list)
{
	struct block_list restore = BLOCK_LIST_INIT;
	u64 given;
	bool bad;

	context_assert(CONTEXT_ORDINARY);
	mode = hvo_mode_or_selected(mode);
	bad = has_bad(pool, list);
	take_restorable(pool->mm, list, &restore);
	given = list->count;
	forget_heads(pool->mm, mode, list);
	block_list_free(pool->mm, list);
	if (restore.count > 0) {
		block_list_begin(pool->mm, &restore, BLOCK_FULL);
		given += release_restored(pool, mode, &restore);
	}
	meta_end_batch_all(pool->mm);
	if (bad)
		bad_frames_withdraw(pool->mm);
	return given;
}

u64 pool_shrink_on(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count)
{
	struct block_list list = BLOCK_LIST_INIT;
	bool held;
	u64 given;

	context_assert(CONTEXT_ORDINARY);
	held = prezero_hold_if_on(pool);
	given = pool_undefer(pool, node, count);
	pool_dequeue(pool, node, count - given, &list);
	given += pool_release(pool, mode, &list);
	if (held)
		prezero_release(pool);
	return given;
}

u64 pool_shed_surplus(struct pool *pool, const struct hvo_mode *mode, u64 count)
{
	u64 shed, tried, taken;
	bool held;

	context_assert(CONTEXT_ORDINARY);
	held = prezero_hold_if_on(pool);
	shed = tried = pool_undefer_surplus(pool, count);
	list_surplus(pool, count - shed);
	do {
		struct block_list list = BLOCK_LIST_INIT;

		dequeue_surplus(pool, MIN(count - tried, LOCK_SLICE), &list);
		taken = list.count;
		tried += taken;
		shed += taken ? pool_release(pool, mode, &list) : 0;
	} while (taken == LOCK_SLICE &&
		 tried < count); /* limits attempts: pages not restored came back */
	if (held)
		prezero_release(pool);
	return shed;
}

u64 pool_shrink(struct pool *pool, const struct hvo_mode *mode, u64 count)
{
	context_assert(CONTEXT_ORDINARY);
	return pool_shrink_on(pool, mode, NODE_NONE, count);
}

/*
 * Turn surplus pages, which are as good as new ones, into persistent pages, up to `target`. Returns
 * the persistent number.
 */
static u64 adopt_surplus(struct pool *pool, u64 target)
{
	u64 persistent;

	spin_lock(&pool->lock);
	persistent = pool->pages - pool->surplus;
	for (node_t n = 0; n < pool->mm->nodes && persistent < target; n++) {
		const u64 adopted = MIN(target - persistent, pool->node[n].surplus);

		pool->node[n].surplus -= adopted;
		pool->surplus -= adopted;
		persistent += adopted;
	}
	spin_unlock(&pool->lock);
	return persistent;
}

static u64 persistent_pages(struct pool *pool)
{
	u64 pages;

	spin_lock(&pool->lock);
	pages = pool->pages - pool->surplus;
	spin_unlock(&pool->lock);
	return pages;
}

/* Count surplus pages that are not even in use. */
static u64 free_surplus(struct pool *pool)
{
	u64 count = 0;

	spin_lock(&pool->lock);
	for (node_t n = 0; n < pool->mm->nodes; n++) {
		const struct pool_node *node = &pool->node[n];

		count += pool_node_free_surplus(node);
	}
	spin_unlock(&pool->lock);
	return count;
}

/*
 * Pool lock held. Make up to `count` more of a node's first `pages` pages surplus. Returns how many
 * became so.
 */
static u64 add_surplus(struct pool *pool, struct pool_node *node, u64 pages, u64 count)
{
	const u64 added = MIN(count, pages - MIN(pages, node->surplus));

	node->surplus += added;
	pool->surplus += added;
	return added;
}

/*
 * Make persistent pages beyond `target` surplus, starting with pages in use. Returns the persistent
 * number.
 */
static u64 mark_surplus(struct pool *pool, u64 target)
{
	u64 persistent;

	spin_lock(&pool->lock);
	persistent = pool->pages - pool->surplus;
	for (node_t n = 0; n < pool->mm->nodes && persistent > target; n++) {
		struct pool_node *node = &pool->node[n];

		persistent -= add_surplus(pool, node, pool_node_in_use(node), persistent - target);
	}
	for (node_t n = 0; n < pool->mm->nodes && persistent > target; n++)
		persistent -=
			add_surplus(pool, &pool->node[n], pool->node[n].pages, persistent - target);
	spin_unlock(&pool->lock);
	return persistent;
}

u64 pool_resize(struct pool *pool, const struct hvo_mode *mode, u64 target)
{
	u64 persistent, shrunk = 1, surplus;
	bool held;

	context_assert(CONTEXT_ORDINARY);
	held = prezero_hold_if_on(pool);
	persistent = adopt_surplus(pool, target);
	if (target > persistent)
		pool_grow(pool, mode, target - persistent);
	/*
	 * pages that cannot be restored become surplus, so the count does not fall below the target
	 */
	for (persistent = persistent_pages(pool); shrunk > 0 && persistent > target;
	     persistent = persistent_pages(pool))
		shrunk = pool_shrink(pool, mode, persistent - target);
	surplus = free_surplus(pool);
	if (surplus > 0)
		pool_shed_surplus(pool, mode, surplus);
	/* pages in use, promised or not restorable leave the pool when they come back */
	persistent = mark_surplus(pool, target);
	if (held)
		prezero_release(pool);
	return persistent;
}

void pool_set_overcommit(struct pool *pool, u64 count)
{
	spin_lock(&pool->lock);
	pool->overcommit = count;
	spin_unlock(&pool->lock);
}

void pool_usage(struct pool *pool, struct pool_usage *usage)
{
	context_assert(CONTEXT_ORDINARY);
	spin_lock(&pool->lock);
	*usage = (struct pool_usage){.page_bytes = PAGE_SIZE << pool->order,
				     .pages = pool->pages,
				     .free = pool->free,
				     .in_use = pool->in_use,
				     .reserved = pool->reserved,
				     .surplus = pool->surplus,
				     .overcommit = pool->overcommit};
	spin_unlock(&pool->lock);
}

/* ---- between pools ---- */

/* Demote 1 GiB pages that have all their struct pages to 2 MiB pages, which the mode makes huge. */
static void demote_full(struct pool *pool, const struct hvo_mode *mode, struct block_list *list,
			struct block_list *done)
{
	struct mm *mm = pool->mm;
	struct block_list pieces = BLOCK_LIST_INIT;

	block_list_drain(mm, index, list)
		block_cut(block_zone(mm, index), index, &pieces);
	hvo_make_in_place(mm, mode, &pieces);
	block_list_splice(mm, done, &pieces);
}

u64 pool_demote(struct pool *from, struct pool *to, const struct hvo_mode *mode, u64 count)
{
	struct mm *mm = from->mm;
	struct block_list list = BLOCK_LIST_INIT, full = BLOCK_LIST_INIT, huge = BLOCK_LIST_INIT;
	struct block_list done = BLOCK_LIST_INIT;
	struct block_list restorable = BLOCK_LIST_INIT;
	u64 restored, demoted;
	bool held;

	context_assert(CONTEXT_ORDINARY);
	mode = hvo_mode_or_selected(mode);
	ASSERT(from->order == GIGA_ORDER && to->order == BLOCK_ORDER && to->mm == mm,
	       "demotion between wrong pools");
	held = prezero_hold_if_on(from);
	pool_dequeue(from, NODE_NONE, count, &list);
	if (held)
		prezero_release(from);
	block_list_begin(mm, &list, BLOCK_HUGE);
	block_list_drain(mm, index, &list)
		block_list_push(mm, block_look_at(mm, index).flags & BLOCK_MAPPED ? &full : &huge,
				index);
	demoted = hvo_demote(mm, &huge, &done);
	hvo_restore(mm, mode, &full, &restorable, &restored);
	demoted += restorable.count;
	forget_heads(mm, mode, &restorable);
	demote_full(from, mode, &restorable, &done);

	pool_enqueue(to, &done, POOL_KEPT);
	/* pages that could not be changed go back as they are */
	pool_enqueue(from, &huge, POOL_KEPT);
	pool_enqueue(from, &full, POOL_KEPT);
	meta_end_batch_all(mm);
	return demoted;
}
