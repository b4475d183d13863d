/*
 * Huge page pools: see pool.h.
 */
#include "mm/pool.h"

#include "kernel/panic.h"
#include "kernel/percpu.h"
#include "mm/meta.h"
#include "mm/section.h"
#include "mm/transit.h"
#include "mm/vmemmap.h"

struct pool pool_2m;

void pool_init(struct pool *pool, struct mm *mm, struct pool_node *nodes)
{
	*pool = (struct pool){.mm = mm, .lock = SPINLOCK_INIT(LOCK_POOL), .node = nodes};
	for (node_t n = 0; n < mm->nodes; n++)
		nodes[n] = (struct pool_node){.free = BLOCK_LIST_INIT};
}

static struct pool_node *node_of_block(struct pool *pool, u32 index)
{
	return &pool->node[block_zone(pool->mm, index)->node];
}

/* Mark what is about to enter: before anybody can find it in the pool. */
static void mark_pool_pages(struct mm *mm, const struct block_list *list)
{
	for (u32 index = list->head; index != BLOCK_NONE; index = block_at(mm, index)->next) {
		struct page *head = pfn_page(mm, block_pfn(index));

		head->flags |= PAGE_HUGETLB;
		atomic_store_release(&head->refcount, 0); /* frozen: nobody gets a reference by address */
		block_at(mm, index)->flags |= BLOCK_POOL | BLOCK_POOL_FREE;
		block_at(mm, index)->order = BLOCK_ORDER;
	}
}

/* One lock cycle for the whole batch. */
static u64 pool_enqueue(struct pool *pool, struct block_list *list)
{
	const u64 count = list->count;
	u32 index;

	spin_lock(&pool->lock);
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

static void settle_all(struct mm *mm)
{
	for (node_t n = 0; n < mm->nodes; n++)
		meta_settle(&mm->node[n]);
}

/* Blocks from every zone, NORMAL before DMA32, into one batch. */
static void take_from_zones(struct pool *pool, const struct hvo_mode *mode, u64 count, struct block_list *list)
{
	struct mm *mm = pool->mm;

	for (int kind = ZONE_NORMAL; kind >= 0; kind--) {
		for (node_t n = 0; n < mm->nodes && list->count < count; n++) {
			const u8 zone = mm->node[n].zone[kind];

			if (zone != ZONE_NONE)
				hvo_take_blocks(&mm->zone[zone], mode, count - list->count, list);
		}
	}
}

u64 pool_grow(struct pool *pool, const struct hvo_mode *mode, u64 count)
{
	u64 grown = 0, before;

	do { /* again while it helps: frames freed by one batch may serve the next */
		struct block_list list = BLOCK_LIST_INIT, ready = BLOCK_LIST_INIT;

		before = grown;
		take_from_zones(pool, mode, count - grown, &list);
		hvo_optimise(pool->mm, mode, &list);
		mark_pool_pages(pool->mm, &list);
		block_list_publish_used(pool->mm, &list, &ready);
		grown += pool_enqueue(pool, &ready);
	} while (grown < count && grown > before);
	settle_all(pool->mm);
	return grown;
}

/* Up to `count` free pages off the pool, in one lock cycle, nodes in turn from the last. */
static void pool_dequeue(struct pool *pool, u64 count, struct block_list *list)
{
	spin_lock(&pool->lock);
	for (node_t n = pool->mm->nodes; n-- > 0;) {
		while (list->count < count && pool->node[n].free.count > 0) {
			block_list_push(pool->mm, list, block_list_pop(pool->mm, &pool->node[n].free));
			pool->node[n].pages--;
		}
	}
	pool->pages -= list->count;
	pool->free -= list->count;
	spin_unlock(&pool->lock);
}

static void clear_pool_marks(struct mm *mm, const struct block_list *list)
{
	for (u32 index = list->head; index != BLOCK_NONE; index = block_at(mm, index)->next) {
		block_at(mm, index)->flags &= (u8)~(BLOCK_POOL | BLOCK_POOL_FREE);
		pfn_page(mm, block_pfn(index))->flags = 0;
	}
}

/* Huge blocks of mapped sections go back with all their struct pages; those of on-demand sections as they are. */
static void split_by_restore(struct mm *mm, struct block_list *list, struct block_list *restore, struct block_list *as_is)
{
	u32 index;

	while ((index = block_list_pop(mm, list)) != BLOCK_NONE) {
		const struct block *block = block_at(mm, index);
		const bool mapped_huge = block->state == BLOCK_HUGE && (block->flags & BLOCK_MAPPED);

		block_list_push(mm, mapped_huge ? restore : as_is, index);
	}
}

u64 pool_shrink(struct pool *pool, const struct hvo_mode *mode, u64 count)
{
	struct mm *mm = pool->mm;
	struct block_list list = BLOCK_LIST_INIT, restore = BLOCK_LIST_INIT, done = BLOCK_LIST_INIT;
	u64 restored, given;

	pool_dequeue(pool, count, &list);
	block_list_begin(mm, &list, BLOCK_FULL);
	split_by_restore(mm, &list, &restore, &done);
	hvo_restore(mm, mode, &restore, &done, &restored);
	clear_pool_marks(mm, &done);
	given = done.count;
	block_list_publish_free(mm, &done);
	if (restore.count > 0) { /* what could not be restored stays in the pool, usable */
		struct block_list back = BLOCK_LIST_INIT;

		block_list_publish_used(mm, &restore, &back);
		pool_enqueue(pool, &back);
	}
	settle_all(mm);
	return given;
}

u64 pool_resize(struct pool *pool, const struct hvo_mode *mode, u64 target)
{
	const u64 now = atomic_load_relaxed(&pool->pages);

	if (target > now)
		pool_grow(pool, mode, target - now);
	else
		pool_shrink(pool, mode, now - target);
	return atomic_load_relaxed(&pool->pages);
}

struct page *pool_page_take(struct pool *pool, node_t node)
{
	struct page *page = NULL;
	u32 index = BLOCK_NONE;

	spin_lock(&pool->lock);
	for (node_t i = 0; i < pool->mm->nodes && index == BLOCK_NONE; i++)
		index = block_list_pop(pool->mm, &pool->node[(node + i) % pool->mm->nodes].free);
	if (index != BLOCK_NONE) {
		block_at(pool->mm, index)->flags &= (u8)~BLOCK_POOL_FREE;
		pool->free--;
		pool->in_use++;
		page = pfn_page(pool->mm, block_pfn(index));
		atomic_store_release(&page->refcount, 1);
	}
	spin_unlock(&pool->lock);
	return page;
}

void pool_page_give(struct pool *pool, struct page *page)
{
	const u32 index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	const u32 was = atomic_exchange(&page->refcount, 0);

	ASSERT(was == 1 && (page->flags & PAGE_HUGETLB), "pool page at frame %llx given back with %u references",
	       (unsigned long long)page_to_pfn(page), was);
	spin_lock(&pool->lock);
	block_at(pool->mm, index)->flags |= BLOCK_POOL_FREE;
	block_list_push(pool->mm, &node_of_block(pool, index)->free, index);
	pool->free++;
	pool->in_use--;
	spin_unlock(&pool->lock);
}

/* Frames that describe one pool page: private ones of its line, or its 8 under a leaf. */
static s64 frames_of_page(const struct mm *mm, u32 index)
{
	const pte_t *line = vmemmap_line(mm, index);
	s64 frames = 0;

	if (!line)
		return MEMMAP_FRAMES_PER_BLOCK;
	for (unsigned i = 0; i < PTES_PER_LINE; i++)
		frames += pte_writable(pte_load(&line[i]));
	return frames;
}

s64 pool_frames_saved(struct pool *pool)
{
	struct mm *mm = pool->mm;
	s64 saved = 0;

	for (u64 section = section_first(mm); section < section_end(mm); section++) {
		bool used = false;

		for (u32 i = 0; i < SECTION_BLOCKS && section_state(mm, section) == SECTION_OPEN; i++) {
			const u32 index = (u32)(section * SECTION_BLOCKS) + i;

			if (!(block_at(mm, index)->flags & BLOCK_POOL))
				continue;
			saved += MEMMAP_FRAMES_PER_BLOCK - frames_of_page(mm, index);
			used = true;
		}
		if (used && !vmemmap_is_leaf(mm, section))
			saved--; /* its page table */
	}
	return saved;
}
