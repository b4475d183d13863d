/* Huge page pools: see pool.h. pool_use.c takes pages, reserves them and counts what is saved. */
#include "mm/hugetlb/pool.h"

#include "kernel/core/context.h"
#include "kernel/core/reason_set.h"
#include "mm/hvo/hvo_restore.h"
#include "mm/hvo/hvo_take.h"
#include "mm/hvo/hvo_unshare.h"
#include "mm/memmap/meta.h"
#include "mm/zone/section_close.h"
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

/* ---- into the pool ---- */

/*
 * New persistent pages; surplus and promised the moment they can be found; pages that could not
 * leave and are surplus; and persistent ones that could not be cut.
 */
enum pool_kept { POOL_KEPT, POOL_PROMISED, POOL_LEFT_AS_SURPLUS, POOL_LEFT };

/*
 * Pool lock held. Move up to `count` pages of `list` to `first`, and mark each as free in the pool
 * or, with `flag` 0, as not free. To become free they must lie in one zone: the next page may
 * belong to another node. Movable frames are added up for neighbours of one GiB.
 */
static void cut_marked(const struct mm *mm, struct block_list *list, u64 count, u8 flag,
		       struct block_list *first)
{
	const unsigned zone = flag ? block_look_at(mm, list->head).zone : 0;
	u32 index = list->head, last = index;
	u64 cut = 0;
	s64 frames = 0;

	while (index != BLOCK_NONE && cut < count) {
		struct block *block = block_existing(mm, index);

		if (flag && block_look(block).zone != zone)
			break;
		if (index / GIB_BLOCKS != last / GIB_BLOCKS) {
			gib_count_movable(mm, last, frames);
			frames = 0;
		}
		frames += block_mark_pool_free(block, flag);
		last = index;
		index = block->next;
		cut++;
	}
	if (frames != 0)
		gib_count_movable(mm, last, frames);
	block_list_cut_after(mm, list, cut, last, first);
}

/*
 * Pages became free. Whoever found a frame of one bad before that could not take it; see
 * bad_frames.c. A page that this CPU itself takes out, and that could not be restored, is not tried
 * again at once: that would have no end. No lock held.
 */
static void look_for_bad(const struct pool *pool)
{
	if (pool_watches_bad(pool) &&
	    atomic_load_relaxed(&pool->mm->bad.withdrawing) != cpu_id() + 1u)
		bad_frames_withdraw(pool->mm);
}

/*
 * Enqueue a slice in one turn at the lock. Pages of one node change hands together. New ones go to
 * the front and leave first: blocks of GiB that other memory has spoilt are taken after all others,
 * and such memory needs their room (zone/gigablock.h). Those that could not leave go to the end, or
 * they would be tried again before pages that can.
 */
static void enqueue_slice(struct pool *pool, struct block_list *list, enum pool_kept kept)
{
	const s64 surplus = kept == POOL_LEFT_AS_SURPLUS || kept == POOL_PROMISED;
	struct block_list part;
	u64 left = LOCK_SLICE;

	spin_lock(&pool->lock);
	while (list->count > 0 && left > 0) {
		struct pool_node *node = pool_node_of(pool, list->head);
		s64 count;

		cut_marked(pool->mm, list, left, BLOCK_POOL_FREE, &part);
		left -= part.count;
		count = (s64)part.count;
		if (kept < POOL_LEFT_AS_SURPLUS) {
			block_list_splice(pool->mm, &part, &node->free);
			node->free = part;
		} else {
			block_list_splice(pool->mm, &node->free, &part);
		}
		pool_count(pool, node,
			   (struct pool_delta){
				   .pages = count, .free = count, .surplus = surplus * count});
	}
	if (kept == POOL_PROMISED) {
		pool_count(pool, NULL, (struct pool_delta){.reserved = (s64)(LOCK_SLICE - left)});
		pool->making -= LOCK_SLICE - left;
	}
	spin_unlock(&pool->lock);
}

/*
 * Enqueue runs in transit that are already huge. They are marked as the pool's before anybody can
 * find them in it.
 */
static u64 pool_enqueue(struct pool *pool, struct block_list *list, enum pool_kept kept)
{
	const u64 count = list->count;

	block_list_publish_used(pool->mm, list, BLOCK_POOL);
	while (list->count > 0)
		enqueue_slice(pool, list, kept);
	look_for_bad(pool);
	return count;
}

typedef void from_node_fn(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count,
			  struct block_list *list);

/*
 * Append pages of all nodes to an empty list, in equal shares. The remainder comes one page a node,
 * beginning at node `first`. If some nodes have fewer pages than their share, the other nodes make
 * up for them.
 */
static void from_all(struct pool *pool, from_node_fn *from, const struct hvo_mode *mode, u64 first,
		     u64 count, struct block_list *list)
{
	const unsigned nodes = pool->mm->nodes;

	for (unsigned i = 0; i < 2 * nodes && list->count < count; i++) {
		/* rounded up without a sum that could overflow: a user may ask for any count */
		const u64 rest = count - list->count, left = i < nodes ? nodes - i : 1;

		from(pool, mode, (node_t)((first + i) % nodes), rest / left + (rest % left != 0),
		     list);
	}
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

u64 pool_make(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count,
	      struct block_list *list)
{
	context_assert(CONTEXT_ORDINARY);
	mode = hvo_mode_or_selected(mode);
	if (node == NODE_NONE)
		from_all(pool, take_from_node, mode,
			 atomic_fetch_add(&pool->grow_share, count) % pool->mm->nodes, count, list);
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

void pool_page_make(struct pool *pool, u32 index)
{
	struct block_list list = BLOCK_LIST_INIT;

	context_assert(CONTEXT_ORDINARY);
	if (likely(block_look_at(pool->mm, index).state != BLOCK_BARE))
		return;
	block_list_push(pool->mm, &list, index);
	hvo_make_all(pool->mm, &hvo_modes[HVO_ON], &list);
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
	if (mode == &hvo_leave_bare)
		atomic_store_relaxed(&pool->has_bare, true);
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

/* ---- out of the pool ---- */

/* Append `part` to `list`, except that its first pages, `surplus` of them, go to the front. */
static void append(const struct mm *mm, struct block_list *list, struct block_list *part,
		   u64 surplus)
{
	struct block_list first;

	if (unlikely(surplus > 0)) {
		block_list_cut(mm, part, surplus, &first);
		block_list_splice(mm, &first, list);
		*list = first;
	}
	block_list_splice(mm, list, part);
}

/*
 * Pool lock held. Dequeue up to `count` free pages of one node; the first `surplus` of them leave
 * as surplus pages, before all others of `list`.
 */
static void dequeue_from_node(struct pool *pool, struct pool_node *node, u64 count, u64 surplus,
			      struct block_list *list)
{
	struct block_list part;
	s64 taken;

	cut_marked(pool->mm, &node->free, count, 0, &part);
	taken = (s64)part.count;
	append(pool->mm, list, &part, surplus);
	pool_count(pool, node,
		   (struct pool_delta){
			   .pages = -taken, .free = -taken, .surplus = -MIN(taken, (s64)surplus)});
}

/*
 * Pool lock held. Dequeue up to `count` free pages of one node. A node's surplus is attributed to
 * its pages in use first; if some free pages are surplus beyond that, they leave first.
 */
static void dequeue_any(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count,
			struct block_list *list)
{
	struct pool_node *from = &pool->node[node];

	dequeue_from_node(pool, from, count, pool_node_free_surplus(from), list);
}

/* Pool lock held. Dequeue up to `count` surplus pages, from nodes that have any. */
static void dequeue_surplus(struct pool *pool, u64 count, struct block_list *list)
{
	for (node_t n = 0; n < pool->mm->nodes; n++) {
		const u64 most = MIN(count - list->count, pool->node[n].surplus);

		dequeue_from_node(pool, &pool->node[n], most, most, list);
	}
}

/* The free pages that leave a pool: of any node or of one, or only those that are surplus. */
struct leaving {
	node_t only;
	bool surplus;
};

/*
 * Dequeue up to `count` free, unreserved pages in one turn at the lock. Returns how many of them,
 * the first, left as surplus pages.
 */
static u64 dequeue_slice(struct pool *pool, struct leaving which, u64 count,
			 struct block_list *list)
{
	u64 surplus;

	spin_lock(&pool->lock);
	surplus = pool->surplus;
	count = MIN(count, saturating_sub(pool->free, pool->reserved));
	if (which.surplus) {
		dequeue_surplus(pool, count, list);
	} else if (which.only == NODE_NONE) {
		from_all(pool, dequeue_any, NULL, pool->free_share % pool->mm->nodes, count, list);
		pool->free_share += list->count;
	} else if (which.only < pool->mm->nodes) {
		dequeue_any(pool, NULL, which.only, count, list);
	}
	surplus -= pool->surplus;
	spin_unlock(&pool->lock);
	return surplus;
}

/*
 * Dequeue any number of pages into an empty list, slice by slice. Each slice is a multiple of the
 * number of nodes; the remainder is taken last. Returns how many, the first, left as surplus pages.
 */
static u64 pool_dequeue(struct pool *pool, struct leaving which, u64 count, struct block_list *list)
{
	const u64 most = LOCK_SLICE - LOCK_SLICE % pool->mm->nodes;
	u64 wanted, taken, part, surplus = 0;

	do {
		struct block_list slice = BLOCK_LIST_INIT;

		wanted = MIN(count - list->count, most);
		part = dequeue_slice(pool, which, wanted, &slice);
		surplus += part;
		taken = slice.count;
		append(pool->mm, list, &slice, part);
	} while (taken == wanted && list->count < count);
	return surplus;
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
		block_list_publish_free(mm, &done);
	} while (list->count > 0 && restored > 0);
	if (list->count > 0)
		pool_enqueue(pool, list, POOL_LEFT_AS_SURPLUS);
	return given;
}

/*
 * Move the huge pages of mapped sections from `list` to `restore`. Bare pages need the frames that
 * were reserved for their heads no more, and full ones are no huge pages from now on.
 */
static void take_restorable(struct mm *mm, struct block_list *list, struct block_list *restore)
{
	for (u32 index = list->head, next; index != BLOCK_NONE; index = next) {
		const struct block *block = block_existing(mm, index);
		const struct block_word word = block_look(block);

		next = block->next;
		if (word.state == BLOCK_HUGE && (word.flags & BLOCK_MAPPED)) {
			block_list_remove(mm, list, index);
			block_list_push(mm, restore, index);
		} else if (word.state == BLOCK_BARE) {
			meta_unreserve(block_meta_node(mm, index), meta_kind_of_head(word.order),
				       1);
		} else if (word.state == BLOCK_FULL) {
			hvo_forget_head(mm, index);
		}
	}
}

u64 pool_release(struct pool *pool, const struct hvo_mode *mode, struct block_list *list)
{
	struct block_list restore = BLOCK_LIST_INIT;
	u64 given;

	context_assert(CONTEXT_ORDINARY);
	mode = hvo_mode_or_selected(mode);
	take_restorable(pool->mm, list, &restore);
	given = list->count;
	block_list_free(pool->mm, list);
	if (restore.count > 0) {
		block_list_begin(pool->mm, &restore, BLOCK_FULL);
		given += release_restored(pool, mode, &restore);
	}
	meta_end_batch_all(pool->mm);
	look_for_bad(pool);
	return given;
}

u64 pool_shrink_on(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count)
{
	struct block_list list = BLOCK_LIST_INIT;

	context_assert(CONTEXT_ORDINARY);
	pool_dequeue(pool, (struct leaving){.only = node}, count, &list);
	return pool_release(pool, mode, &list);
}

u64 pool_shed_surplus(struct pool *pool, const struct hvo_mode *mode, u64 count)
{
	struct block_list list = BLOCK_LIST_INIT;

	context_assert(CONTEXT_ORDINARY);
	pool_dequeue(pool, (struct leaving){.surplus = true}, count, &list);
	return list.count ? pool_release(pool, mode, &list) : 0;
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

		pool_count(pool, &pool->node[n], (struct pool_delta){.surplus = -(s64)adopted});
		persistent += adopted;
	}
	spin_unlock(&pool->lock);
	return persistent;
}

/* Count surplus pages that are not even in use. */
static u64 free_surplus(struct pool *pool)
{
	u64 count = 0;

	spin_lock(&pool->lock);
	for (node_t n = 0; n < pool->mm->nodes; n++)
		count += pool_node_free_surplus(&pool->node[n]);
	spin_unlock(&pool->lock);
	return count;
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
	for (unsigned n = 0; n < 2u * pool->mm->nodes && persistent > target; n++) {
		struct pool_node *node = &pool->node[n % pool->mm->nodes];
		const u64 most = n < pool->mm->nodes ? pool_node_in_use(node) : node->pages;
		const u64 added = MIN(persistent - target, saturating_sub(most, node->surplus));

		pool_count(pool, node, (struct pool_delta){.surplus = (s64)added});
		persistent -= added;
	}
	spin_unlock(&pool->lock);
	return persistent;
}

u64 pool_resize(struct pool *pool, const struct hvo_mode *mode, u64 target)
{
	u64 persistent, shrunk = 1, surplus;

	context_assert(CONTEXT_ORDINARY);
	persistent = adopt_surplus(pool, target);
	if (target > persistent)
		pool_grow(pool, mode, target - persistent);
	/*
	 * pages that cannot be restored become surplus, so the count does not fall below the target
	 */
	for (persistent = adopt_surplus(pool, target); shrunk > 0 && persistent > target;
	     persistent = adopt_surplus(pool, target))
		shrunk = pool_shrink(pool, mode, persistent - target);
	surplus = free_surplus(pool);
	if (surplus > 0)
		pool_shed_surplus(pool, mode, surplus);
	/* pages in use, promised or not restorable leave the pool when they come back */
	return mark_surplus(pool, target);
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

/* Demote pages in transit. Those that cannot be demoted return as they were. */
static u64 demote(struct pool *from, struct pool *to, const struct hvo_mode *mode,
		  struct block_list *list, enum pool_kept kept)
{
	struct block_list done = BLOCK_LIST_INIT;
	u64 demoted;

	if (list->count == 0)
		return 0;
	block_list_begin(from->mm, list, BLOCK_HUGE);
	demoted = hvo_demote(from->mm, mode, list, &done);
	pool_enqueue(to, &done, POOL_KEPT);
	pool_enqueue(from, list, kept);
	return demoted;
}

u64 pool_demote(struct pool *from, struct pool *to, const struct hvo_mode *mode, u64 count)
{
	struct mm *mm = from->mm;
	struct block_list list = BLOCK_LIST_INIT, surplus;
	u64 left_as_surplus, demoted;

	context_assert(CONTEXT_ORDINARY);
	ASSERT(from->order == GIGA_ORDER && to->order == BLOCK_ORDER && to->mm == mm,
	       "demotion between wrong pools");
	mode = hvo_mode_or_selected(mode);
	left_as_surplus = pool_dequeue(from, (struct leaving){.only = NODE_NONE}, count, &list);
	block_list_cut(mm, &list, left_as_surplus, &surplus);
	demoted = demote(from, to, mode, &surplus, POOL_LEFT_AS_SURPLUS);
	demoted += demote(from, to, mode, &list, POOL_LEFT);
	meta_end_batch_all(mm);
	return demoted;
}
