/*
 * The buddy below 2 MiB, orders 0..8: lists through the struct pages of FULL and RESERVED blocks.
 * See buddy.h.
 *
 * Two buddies of an order below 9 lie in one block, and such a block has all 512 struct pages, so
 * the neighbour's struct page may always be read. Frames that are not RAM are marked reserved, and
 * frames of another zone carry its number, so neither ever merges.
 */
#include "mm/zone/buddy_small.h"

#include "kernel/core/panic.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/memmap.h"
#include "mm/zone/gigablock.h"

/* ---- the lists ---- */

static inline __attribute__((always_inline)) void
page_list_link(struct zone *zone, struct page *page, unsigned order, u8 type)
{
	struct page **head = &zone->page_list[type][order];

	/*
	 * type of the list; equal to the block's unless pcp.type_cache=on put the chunk elsewhere
	 */
	page->private[0] = type;
	page->prev = NULL;
	page->next = *head;
	if (*head)
		(*head)->prev = page;
	*head = page;
	zone->page_orders[type] |= (u16)(1u << order);
	counter_add(&zone->free_type[type], order_pages(order));
}

static inline __attribute__((always_inline)) void page_list_unlink(struct zone *zone,
								   struct page *page)
{
	const u8 type = (u8)page->private[0];
	struct page **head = &zone->page_list[type][page->order];

	if (page->prev)
		page->prev->next = page->next;
	else
		*head = page->next;
	if (page->next)
		page->next->prev = page->prev;
	if (!*head)
		zone->page_orders[type] &= (u16) ~(1u << page->order);
	counter_sub(&zone->free_type[type], order_pages(page->order));
}

static void page_list_add(struct zone *zone, struct page *page, unsigned order, u8 type)
{
	page_set_kind(page, PAGE_BUDDY, order);
	counter_add(&zone->free_small, order_pages(order));
	page_list_link(zone, page, order, type);
}

static void page_list_remove(struct zone *zone, struct page *page)
{
	counter_sub(&zone->free_small, order_pages(page->order));
	page_list_unlink(zone, page);
	page_set_kind(page, 0, 0);
}

/* The whole block is free again: it has left the small lists and joins the list of its class. */
static void block_became_free(struct zone *zone, u32 index)
{
	struct block *block = block_at(zone->mm, index);
	struct block_word word = block_look(block);

	ASSERT(word.state == BLOCK_FULL, "block %u is wholly free but %s", index,
	       block_state_name(word.state));
	block->owner = 0;
	atomic_store_relaxed(&zone->split_batch, SPLIT_BATCH_MIN);
	word.free_pages = 0;
	if (gigablock_is_tainted(zone->mm, index))
		word.type = gigablock_type_of_freed(zone->mm, index, word.type);
	block_put(block, word);
	buddy_free_blocks(zone, index, BLOCK_ORDER, block_free_class(word));
}

void buddy_free_pages_as(struct zone *zone, struct page *page, unsigned order, u8 type)
{
	const u32 index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	struct block *block = block_at(zone->mm, index);

	ASSERT(spin_held(&zone->lock), "frame %llx freed without the zone lock", page_to_pfn(page));
	ASSERT(!(page->flags & PAGE_BUDDY), "double free of frame %llx", page_to_pfn(page));
	block_count_free(block, block_look(block), (s64)order_pages(order));
	gib_count_free(zone->mm, index, (s64)order_pages(order));
	while (order < BLOCK_ORDER) {
		struct page *buddy =
			(struct page *)((virt_t)page ^ (order_pages(order) << PAGE_STRUCT_SHIFT));

		const struct page_kind kind = page_kind(buddy);

		if (!(kind.flags & PAGE_BUDDY) || kind.order != order || kind.zone != zone->index)
			break;
		page_list_remove(zone, buddy);
		page = MIN(page, buddy);
		order++;
	}
	if (order == BLOCK_ORDER) {
		/* the block is counted again as a run */
		gib_count_free(zone->mm, index, -(s64)BLOCK_FRAMES);
		block_became_free(zone, index);
	} else {
		page_list_add(zone, page, order, (u8)type_list(type));
	}
}

void buddy_free_pages(struct zone *zone, struct page *page, unsigned order)
{
	buddy_free_pages_as(zone, page, order,
			    block_look(block_of(zone->mm, page_to_pfn(page))).type);
}

struct page *buddy_take_pages(struct zone *zone, unsigned order, enum migratetype type)
{
	const unsigned orders = zone->page_orders[type] & (~0u << order);
	struct block *block;
	struct page *page;
	unsigned found;
	u32 index;

	if (!orders)
		return NULL;
	found = (unsigned)__builtin_ctz(orders);
	page = zone->page_list[type][found];
	index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	page_list_remove(zone, page);
	while (found > order) {
		found--;
		page_list_add(zone, page + order_pages(found), found, (u8)type);
	}
	block = block_at(zone->mm, index);
	block_count_free(block, block_look(block), -(s64)order_pages(order));
	gib_count_free(zone->mm, index, -(s64)order_pages(order));
	return page;
}

void buddy_move_pages(struct zone *zone, u32 index, u8 to)
{
	struct page *pages = block_page(zone->mm, index);
	u64 left = block_look_at(zone->mm, index).free_pages;

	ASSERT(spin_held(&zone->lock), "free pages of block %u moved without the zone lock", index);
	for (u64 i = 0; left > 0 && i < BLOCK_FRAMES;) {
		const struct page_kind kind = page_kind(&pages[i]);

		if (!(kind.flags & PAGE_BUDDY)) {
			i++;
			continue;
		}
		page_list_unlink(zone, &pages[i]);
		page_list_link(zone, &pages[i], kind.order, (u8)type_list(to));
		i += order_pages(kind.order);
		left -= order_pages(kind.order);
	}
}

void buddy_split_block(struct zone *zone, u32 index)
{
	struct block *block = block_at(zone->mm, index);
	struct block_word word = block_look(block);
	struct page *first = block_page(zone->mm, index);
	const u8 type = (u8)type_list(word.type);

	ASSERT(word.state == BLOCK_FULL && !(word.flags & BLOCK_FREE),
	       "block %u is %s, not a taken full one", index, block_state_name(word.state));
	if (page_kind(first).flags & (PAGE_COMPOUND | PAGE_TAIL))
		/* a tail of a 1 GiB page that had all its struct pages */
		memmap_init_pages(first, BLOCK_FRAMES, zone->index);
	/*
	 * Two halves of order 8. They do not merge, because merging happens only when a chunk is
	 * freed.
	 */
	page_list_add(zone, first, BLOCK_ORDER - 1, type);
	page_list_add(zone, first + order_pages(BLOCK_ORDER - 1), BLOCK_ORDER - 1, type);
	word.free_pages = BLOCK_FRAMES;
	block_put(block, word);
	gib_count_free(zone->mm, index, (s64)BLOCK_FRAMES);
}

bool buddy_take_frame(struct zone *zone, struct page *page)
{
	const pfn_t pfn = page_to_pfn(page);
	const u32 index = (u32)(pfn >> BLOCK_ORDER);
	struct block *block = block_at(zone->mm, index);
	const struct block_word word = block_look(block);
	const u8 type = (u8)type_list(word.type);
	struct page *head = page;
	unsigned order = 0;

	ASSERT(spin_held(&zone->lock), "frame %llx taken without the zone lock", pfn);
	while (order < PAGE_ORDERS && !(head->flags & PAGE_BUDDY && head->order >= order)) {
		order++;
		head = page - (pfn & (order_pages(order) - 1));
	}
	if (order == PAGE_ORDERS || head->zone != zone->index)
		return false;
	order = head->order;
	page_list_remove(zone, head);
	/* the half without the frame goes back, the other half is halved again */
	while (order-- > 0) {
		struct page *upper = head + order_pages(order);

		page_list_add(zone, page < upper ? upper : head, order, type);
		head = page < upper ? head : upper;
	}
	block_count_free(block, word, -1);
	gib_count_free(zone->mm, index, -1);
	return true;
}

static bool is_among(u32 index, const u32 *blocks, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (blocks[i] == index)
			return true;
	return false;
}

unsigned buddy_blocks_in_pieces(struct zone *zone, unsigned order, enum migratetype type, u64 max,
				u32 *blocks, unsigned count)
{
	enum { LOOK = 32 }; /* chunks to look at */
	const struct page *page = zone->page_list[type][order];
	unsigned found = 0;

	for (unsigned i = 0; i < LOOK && page && found < count; i++, page = page->next) {
		const u32 index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
		const u64 pieces = block_look_at(zone->mm, index).free_pages;

		if (is_among(index, blocks, found))
			continue;
		if (pieces <= order_pages(order) || pieces > max)
			break;
		blocks[found++] = index;
		max -= pieces;
	}
	return found;
}

/*
 * Prefetch the list neighbours of a free chunk some way ahead, so that their cache lines are here
 * when the chunk is unlinked.
 */
static void prefetch_neighbours(const struct page *page)
{
	if (!(page_kind(page).flags & PAGE_BUDDY))
		return;
	if (page->next)
		page_prefetch(page->next);
	if (page->prev)
		page_prefetch(page->prev);
}

u64 buddy_take_pieces(struct zone *zone, u32 index, enum migratetype type,
		      u64 map[BLOCK_FRAMES / 64])
{
	enum { AHEAD = 16 };
	struct block *block = block_at(zone->mm, index);
	const struct block_word word = block_look(block);
	struct page *pages = block_page(zone->mm, index);
	u64 taken = 0;

	ASSERT(spin_held(&zone->lock), "pieces of block %u taken without the zone lock", index);
	if (!word.free_pages || word.type != type)
		return 0;
	for (u64 i = 0; i < BLOCK_FRAMES && taken < word.free_pages;) {
		const struct page_kind kind = page_kind(&pages[i]);

		if (i + AHEAD < BLOCK_FRAMES)
			prefetch_neighbours(&pages[i + AHEAD]);
		if (!(kind.flags & PAGE_BUDDY)) {
			i++;
			continue;
		}
		if (kind.zone == zone->index) {
			page_list_remove(zone, &pages[i]);
			block_map_add(map, i, kind.order);
			taken += order_pages(kind.order);
		}
		i += order_pages(kind.order);
	}
	block_count_free(block, word, -(s64)taken);
	gib_count_free(zone->mm, index, -(s64)taken);
	return taken;
}

void buddy_free_rest(struct zone *zone, u32 index)
{
	struct page *page = block_page(zone->mm, index);
	u64 left = block_look_at(zone->mm, index).free_pages;

	gib_count_free(zone->mm, index, -(s64)left);
	while (left > 0) {
		const struct page_kind kind = page_kind(page);

		if (kind.flags & PAGE_BUDDY) {
			page_list_remove(zone, page);
			left -= order_pages(kind.order);
			page += order_pages(kind.order);
		} else {
			page++;
		}
	}
	page_set_kind(block_page(zone->mm, index), 0, 0);
	block_became_free(zone, index);
}
