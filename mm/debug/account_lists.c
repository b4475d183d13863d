/*
 * Accounting, lists and counters. Free lists and pools: each entry must be what its list says, and
 * all entries together what the counters of the zone, or of the pool and its nodes, say. Each
 * isolation must have one holder. See account.h; the other count, by blocks and struct pages, is in
 * account.c. Promises (`reserved`) to huge mappings are checked in account_refs.c.
 */
#include "mm/debug/account_lists.h"

#include "mm/hugetlb/pool.h"
#include "mm/memmap/zone.h"
#include "mm/page/pcp.h"
#include "mm/zone/buddy.h"
#include "mm/zone/section.h"

static void walk_block_list(struct zone *zone, unsigned class, unsigned type, unsigned list,
			    u64 *frames)
{
	const unsigned order = buddy_list_order(class, list);
	u32 prev = BLOCK_NONE, index = zone->block_list[class][type][list];

	for (; index != BLOCK_NONE; prev = index, index = block_existing(zone->mm, index)->next) {
		const struct block *block = block_existing(zone->mm, index);
		const struct block_word word = block_look(block);

		if (!(word.flags & BLOCK_FREE) || word.order != order || block->prev != prev ||
		    type_list(word.type) != type || block_free_class(word) != class ||
		    word.zone != zone->index || buddy_list_of(class, index, order) != list) {
			account_wrong("block %u on the free list of order %u does not match that "
				      "list",
				      index, order);
			return;
		}
		*frames += order_pages(order);
	}
}

/*
 * A page may lie on a list that is not its block's once a stored type has been believed
 * (pcp_types.c), and from then on. Such pages merge with others, and only a change of the block's
 * type corrects them.
 */
static void walk_page_list(struct zone *zone, unsigned type, unsigned order, u64 *frames)
{
	const struct page *prev = NULL;

	for (const struct page *page = zone->page_list[type][order]; page;
	     prev = page, page = page->next) {
		const struct block_word word = block_look(block_of(zone->mm, page_to_pfn(page)));

		if (!(page->flags & PAGE_BUDDY) || page->order != order || page->prev != prev ||
		    page->private[0] != type ||
		    (type_list(word.type) != type && pcp_stats(zone->mm).stale == 0) ||
		    page->zone != zone->index) {
			account_wrong("frame %llx on the free list of order %u does not match that "
				      "list",
				      page_to_pfn(page), order);
			return;
		}
		*frames += order_pages(order);
	}
}

/* Check a bit that says whether a list has any entries. */
static void check_bit(const struct zone *zone, u16 bits, unsigned bit, bool any)
{
	if ((bits >> bit & 1) != any)
		account_wrong("zone %u: free list %u has %s, but its bit says the opposite",
			      zone->index, bit, any ? "entries" : "no entries");
}

static const char *const free_of_type[MIGRATE_LISTS] = {
	[MIGRATE_UNMOVABLE] = "free, unmovable,",     [MIGRATE_MOVABLE] = "free, movable,",
	[MIGRATE_RECLAIMABLE] = "free, reclaimable,", [MIGRATE_CMA] = "free, CMA,",
	[MIGRATE_ISOLATE] = "free, isolated,",
};

void account_lists(struct zone *zone)
{
	u64 class_frames[FREE_CLASSES] = {0}, type_frames[MIGRATE_LISTS] = {0}, small = 0;

	for (unsigned type = 0; type < MIGRATE_LISTS; type++) {
		for (unsigned class = 0; class < FREE_CLASSES; class ++) {
			u64 frames = 0;

			for (unsigned list = 0; list < BLOCK_ORDERS; list++) {
				walk_block_list(zone, class, type, list, &frames);
				check_bit(zone, zone->block_lists[class][type], list,
					  zone->block_list[class][type][list] != BLOCK_NONE);
			}
			class_frames[class] += frames;
			type_frames[type] += frames;
		}
		for (unsigned order = 0; order < PAGE_ORDERS; order++) {
			u64 frames = 0;

			walk_page_list(zone, type, order, &frames);
			check_bit(zone, zone->page_orders[type], order,
				  zone->page_list[type][order] != NULL);
			small += frames;
			type_frames[type] += frames;
		}
	}
	for (unsigned class = 0; class < FREE_CLASSES; class ++)
		account_agree("free blocks of one class", zone, zone->free_class[class],
			      class_frames[class]);
	for (unsigned type = 0; type < MIGRATE_LISTS; type++)
		account_agree(free_of_type[type], zone, zone->free_type[type], type_frames[type]);
	account_agree("free small pages", zone, zone->free_small, small);
}

/* ---- isolations ---- */

/* Count the holders whose isolation covers this block: one if its bit is set, none if it is not. */
static unsigned holders(const struct zone *zone, u32 index)
{
	unsigned count = 0;

	for (const struct isolation *token = zone->isolations; token; token = token->next)
		count += index - token->first < token->count;
	return count;
}

void account_isolations(struct zone *zone)
{
	const u32 first = (u32)(zone->start_pfn >> BLOCK_ORDER),
		  end = (u32)DIV_ROUND_UP(zone->end_pfn, BLOCK_FRAMES);

	for (u32 index = first; index < end; index++) {
		const struct block_word word = block_look_any(zone->mm, index);
		const unsigned held = word.zone == zone->index ? holders(zone, index) : 0;

		if (word.zone == zone->index && held != block_word_is_isolated(word))
			account_wrong("block %u is %sisolated, but %u isolations cover it", index,
				      block_word_is_isolated(word) ? "" : "not ", held);
	}
}

/* ---- pools ---- */

struct pool_sums {
	u64 pages, free, surplus;
};

/* A free page has no references. A bare one has no struct pages. */
static bool is_free_page(const struct mm *mm, u32 index, struct block_word word)
{
	const struct page *head = block_page(mm, index);
	const u16 huge = PAGE_HUGETLB | PAGE_COMPOUND;

	return word.state == BLOCK_BARE || (head->refcount == 0 && (head->flags & huge) == huge);
}

static void walk_free(const struct pool *pool, node_t n, struct pool_sums *sums)
{
	const u8 both = BLOCK_POOL | BLOCK_POOL_FREE;
	struct mm *mm = pool->mm;
	const struct block_list *list = &pool->node[n].free;
	u32 prev = BLOCK_NONE;
	u64 count = 0;

	for (u32 index = list->head; index != BLOCK_NONE;
	     prev = index, index = block_existing(mm, index)->next) {
		const struct block *block = block_existing(mm, index);
		const struct block_word word = block_look(block);

		if ((word.flags & both) != both || word.order != pool->order ||
		    block->prev != prev || block_zone(mm, index)->node != n ||
		    ++count > list->count || !is_free_page(mm, index, word)) {
			account_wrong("block %u in the pool of order %u does not match its list",
				      index, pool->order);
			return;
		}
	}
	sums->free += count;
	account_agree("the last page of a pool's list", NULL, list->tail, prev);
	account_agree("free pages of a pool's node", NULL, list->count, count);
}

bool account_pool(const struct pool *pool)
{
	const u32 before = account_faults;
	struct pool_sums sums = {0};

	for (node_t n = 0; n < pool->mm->nodes; n++) {
		const struct pool_node *node = &pool->node[n];

		walk_free(pool, n, &sums);
		sums.pages += node->pages;
		sums.surplus += node->surplus;
		if (node->surplus > node->pages || node->free.count > node->pages)
			account_agree("pages of a pool's node, too few for those free or surplus",
				      NULL, node->pages, MAX(node->surplus, node->free.count));
	}
	account_agree("pages of a pool, and of its nodes", NULL, pool->pages, sums.pages);
	account_agree("pages of a pool, and those free and in use", NULL, pool->pages,
		      pool->free + pool->in_use);
	account_agree("free pages of a pool", NULL, pool->free, sums.free);
	account_agree("surplus pages of a pool", NULL, pool->surplus, sums.surplus);
	account_agree("surplus pages being made", NULL, pool->making, 0);
	/* a page whose promise was given back may have a reference for a while yet */
	account_agree("promised pages of a pool, and those of them that it has", NULL,
		      pool->reserved, MIN(pool->reserved, pool->free + pool->in_use));
	return account_faults == before;
}

void account_pools(struct mm *mm)
{
	for (const struct pool *pool = mm->pools; pool; pool = pool->next)
		account_pool(pool);
}

/* ---- at rest ---- */

void account_idle(const struct mm *mm)
{
	account_agree("PMD splits that still need a flush round", NULL, mm->splits_unflushed, 0);
	account_agree("sections being opened or closed", NULL, sections_moving(mm), 0);
	account_agree("frames that CPUs keep in transit", NULL, mm->transit_kept, 0);
	for (unsigned z = 0; z < mm->zones; z++)
		account_agree("pcp_disable() calls that are still in effect", NULL,
			      mm->zone[z].pcp_disabled, 0);
}
