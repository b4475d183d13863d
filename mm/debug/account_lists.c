/*
 * Accounting, the free lists: each entry must be what its list says, and all entries together what
 * the zone's counters say. The file also checks which holder each isolation belongs to. See
 * account.h; the other count, by blocks and struct pages, is in account.c.
 */
#include "mm/debug/account_lists.h"

#include "kernel/core/printk.h"
#include "mm/page/pcp.h"
#include "mm/zone/buddy.h"

bool account_agree(const char *what, const struct zone *zone, u64 counted, u64 walked)
{
	if (counted == walked)
		return true;
	pr_err("accounting: zone %u (node %u): %s counted %llu frames, walked %llu", zone->index,
	       zone->node, what, counted, walked);
	return false;
}

static bool walk_block_list(struct zone *zone, unsigned class, unsigned type, unsigned list,
			    u64 *frames)
{
	const unsigned order = buddy_list_order(class, list);
	u32 prev = BLOCK_NONE, index = zone->block_list[class][type][list];

	for (; index != BLOCK_NONE; prev = index, index = block_at(zone->mm, index)->next) {
		const struct block *block = block_at(zone->mm, index);
		const struct block_word word = block_look(block);

		if (!(word.flags & BLOCK_FREE) || word.order != order || block->prev != prev ||
		    type_list(word.type) != type || block_free_class(word) != class ||
		    word.zone != zone->index || buddy_list_of(class, index, order) != list) {
			pr_err("accounting: block %u on the free list of order %u does not match "
			       "that list",
			       index, order);
			return false;
		}
		*frames += order_pages(order);
	}
	return true;
}

/*
 * May a page lie on a list that is not its block's? It may once a stored type has been believed
 * (pcp_types.c), and from then on. Such pages merge with others, and only a change of the block's
 * type corrects them.
 */
static bool types_were_believed(const struct mm *mm)
{
	return pcp_stats(mm).stale > 0;
}

static bool walk_page_list(struct zone *zone, unsigned type, unsigned order, u64 *frames)
{
	const struct page *prev = NULL;

	for (const struct page *page = zone->page_list[type][order]; page;
	     prev = page, page = page->next) {
		const struct block_word word = block_look(block_of(zone->mm, page_to_pfn(page)));

		if (!(page->flags & PAGE_BUDDY) || page->order != order || page->prev != prev ||
		    page->private[0] != type ||
		    (type_list(word.type) != type && !types_were_believed(zone->mm)) ||
		    page->zone != zone->index) {
			pr_err("accounting: frame %llx on the free list of order %u does not match "
			       "that list",
			       page_to_pfn(page), order);
			return false;
		}
		*frames += order_pages(order);
	}
	return true;
}

/* Check a bit that says whether a list has any entries. */
static bool bit_agrees(const struct zone *zone, u16 bits, unsigned bit, bool any)
{
	if ((bits >> bit & 1) == any)
		return true;
	pr_err("accounting: zone %u: free list %u has %s, but its bit says the opposite",
	       zone->index, bit, any ? "entries" : "no entries");
	return false;
}

static const char *const free_of_type[MIGRATE_LISTS] = {
	[MIGRATE_UNMOVABLE] = "free, unmovable,",     [MIGRATE_MOVABLE] = "free, movable,",
	[MIGRATE_RECLAIMABLE] = "free, reclaimable,", [MIGRATE_CMA] = "free, CMA,",
	[MIGRATE_ISOLATE] = "free, isolated,",
};

bool account_lists(struct zone *zone)
{
	u64 class_frames[FREE_CLASSES] = {0}, type_frames[MIGRATE_LISTS] = {0}, small = 0;
	bool ok = true;

	for (unsigned type = 0; type < MIGRATE_LISTS; type++) {
		for (unsigned class = 0; class < FREE_CLASSES; class ++) {
			u64 frames = 0;

			for (unsigned list = 0; list < BLOCK_ORDERS; list++) {
				ok &= walk_block_list(zone, class, type, list, &frames);
				ok &= bit_agrees(zone, zone->block_lists[class][type], list,
						 zone->block_list[class][type][list] != BLOCK_NONE);
			}
			class_frames[class] += frames;
			type_frames[type] += frames;
		}
		for (unsigned order = 0; order < PAGE_ORDERS; order++) {
			u64 frames = 0;

			ok &= walk_page_list(zone, type, order, &frames);
			ok &= bit_agrees(zone, zone->page_orders[type], order,
					 zone->page_list[type][order] != NULL);
			small += frames;
			type_frames[type] += frames;
		}
	}
	for (unsigned class = 0; class < FREE_CLASSES; class ++)
		ok &= account_agree("free blocks of one class", zone, zone->free_class[class],
				    class_frames[class]);
	for (unsigned type = 0; type < MIGRATE_LISTS; type++)
		ok &= account_agree(free_of_type[type], zone, zone->free_type[type],
				    type_frames[type]);
	return account_agree("free small pages", zone, zone->free_small, small) && ok;
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

bool account_isolations(struct zone *zone)
{
	const u32 first = (u32)(zone->start_pfn >> BLOCK_ORDER),
		  end = (u32)DIV_ROUND_UP(zone->end_pfn, BLOCK_FRAMES);
	bool ok = true;

	for (u32 index = first; index < end; index++) {
		const struct block *block = block_at(zone->mm, index);
		const struct block_word word = block ? block_look(block) : BLOCK_WORD(0);
		const unsigned held = word.zone == zone->index ? holders(zone, index) : 0;

		if (word.zone == zone->index && held != block_word_is_isolated(word)) {
			pr_err("accounting: block %u is %sisolated, but %u isolations cover it",
			       index, block_word_is_isolated(word) ? "" : "not ", held);
			ok = false;
		}
	}
	return ok;
}
