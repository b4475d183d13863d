/*
 * The buddy for huge pages: free pages of exactly 2 MiB or 1 GiB, which never merge, on lists by
 * place. Functions handle many pages at a time, because two CPUs that give and take 2 MiB pages
 * meet on the zone's lock and wait for as long as it is held. See buddy.h.
 *
 * Pages that were freed at random lie on a list in that order, so a walk of it waits for each
 * record to arrive before it knows the next. The record of a page therefore names the page that
 * came back HUGE_AHEAD pages before it, which the walk will reach some entries later. The walk
 * prefetches that record.
 */
#include "mm/zone/buddy_huge.h"

#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"

/*
 * The list to take from: that of this CPU's place, or the next one that is not empty. CPUs with
 * consecutive numbers start at places that lie far apart.
 */
static unsigned choose_list(const struct zone *zone, unsigned order, enum migratetype type)
{
	static const u8 place_of_cpu[HUGE_PLACES] = {0, 4, 2, 6, 1, 5, 3, 7};
	const unsigned places = (1u << HUGE_PLACES) - 1,
		       all = order == BLOCK_ORDER ? places : 1u << (order - BLOCK_ORDER);
	const unsigned lists = zone->block_lists[FREE_HUGE][type] & all;
	const unsigned mine = lists & ~0u << place_of_cpu[cpu_id() % HUGE_PLACES];

	return lists ? (unsigned)__builtin_ctz(mine ? mine : lists) : BLOCK_ORDERS;
}

/*
 * Take the first pages of one list, in its order: into `pages`, or as a chain, for which the links
 * that they have serve. `flags` and `target` are what their records get.
 */
static inline __attribute__((always_inline)) u32 take_first(struct zone *zone,
							    enum migratetype type, unsigned list,
							    u32 count, u8 flags, u8 target,
							    u32 *pages, struct block_list *chain)
{
	u32 *head = &zone->block_list[FREE_HUGE][type][list];
	u32 index = *head, last = BLOCK_NONE, taken = 0;

	while (index != BLOCK_NONE && taken < count) {
		struct block *block = block_existing(zone->mm, index);
		struct block_word word = block_look(block);

		if (block->ahead)
			__builtin_prefetch(block_at(zone->mm, (u32)block->ahead - 1), 1);
		block->owner = 0;
		gib_count_free(zone->mm, index, -(s64)order_pages(word.order));
		word.flags = (u8)((word.flags & ~BLOCK_FREE) | flags);
		word.target = target; /* without BLOCK_REPORTED */
		block_put(block, word);
		last = index;
		index = block->next;
		if (pages) {
			block->next = block->prev = BLOCK_NONE;
			pages[taken] = last;
		}
		taken++;
	}
	if (chain) {
		block_existing(zone->mm, last)->next = BLOCK_NONE;
		*chain = (struct block_list){.head = *head, .tail = last, .count = taken};
	}
	*head = index;
	if (index == BLOCK_NONE)
		atomic_store_relaxed(&zone->block_lists[FREE_HUGE][type],
				     (u16)(zone->block_lists[FREE_HUGE][type] & ~(1u << list)));
	else
		block_existing(zone->mm, index)->prev = BLOCK_NONE;
	return taken;
}

static void count_taken(struct zone *zone, unsigned order, enum migratetype type, u64 taken)
{
	counter_sub(&zone->free_class[FREE_HUGE], taken * order_pages(order));
	counter_sub(&zone->free_type[type], taken * order_pages(order));
}

u32 buddy_take_huge(struct zone *zone, unsigned order, enum migratetype type, u32 *pages, u32 count)
{
	u32 taken = 0;

	while (taken < count) {
		const unsigned list = choose_list(zone, order, type);

		if (list >= BLOCK_ORDERS)
			break;
		taken += take_first(zone, type, list, count - taken, 0, 0, pages + taken, NULL);
	}
	count_taken(zone, order, type, taken);
	return taken;
}

u64 buddy_begin_huge(struct zone *zone, unsigned order, enum migratetype type, u64 count,
		     enum block_state to, struct block_list *list)
{
	struct block_list chain;
	u64 taken = 0;

	while (taken < count) {
		const unsigned from = choose_list(zone, order, type);

		if (from >= BLOCK_ORDERS)
			break;
		taken += take_first(zone, type, from, (u32)(count - taken), BLOCK_TRANSIT, (u8)to,
				    NULL, &chain);
		block_list_splice(zone->mm, list, &chain);
	}
	counter_add(&zone->transit, taken * order_pages(order));
	count_taken(zone, order, type, taken);
	return taken;
}

/* Note a page that comes back. Returns the one HUGE_AHEAD before it, as a record names it. */
static u32 note_given(struct zone *zone, u32 index)
{
	u32 *note = &zone->huge_given[zone->huge_gave++ % HUGE_AHEAD];
	const u32 before = *note;

	*note = index + 1;
	return before;
}

void buddy_free_huge(struct zone *zone, const u32 *pages, u32 count)
{
	ASSERT(spin_held(&zone->lock), "huge pages freed without the zone lock");
	for (u32 i = 0; i < count; i++) {
		struct block *block = block_existing(zone->mm, pages[i]);

		buddy_add_huge(zone, pages[i], block, block_look(block),
			       note_given(zone, pages[i]));
	}
	counter_add(&zone->free_class[FREE_HUGE], (u64)count * BLOCK_FRAMES);
}
