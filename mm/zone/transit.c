/*
 * Blocks in transit: see transit.h.
 */
#include "mm/zone/transit.h"

#include <arch/check.h>

#include "kernel/core/panic.h"
#include "kernel/core/shootdown.h"
#include "mm/memmap/enter.h"
#include "mm/memmap/vmemmap.h"
#include "mm/zone/buddy.h"
#include "mm/zone/buddy_huge.h"

/*
 * Mark a run, whose record says `word`, with the order that it is to have. The caller holds the
 * zone's lock and counts the frames.
 */
static inline void transit_begin(u32 index, struct block *block, struct block_word word,
				 enum block_state to)
{
	ASSERT(!(word.flags & (BLOCK_FREE | BLOCK_TRANSIT)),
	       "block %u begins a change while flags are %x", index, word.flags);
	block_put(block, block_word_with(word, BLOCK_WORD(.target = 0xff),
					 BLOCK_WORD(.flags = BLOCK_TRANSIT, .target = (u8)to)));
}

void block_begin(struct zone *zone, u32 index, unsigned order, enum block_state to)
{
	struct block *block = block_existing(zone->mm, index);
	struct block_word word = block_look(block);

	ASSERT(spin_held(&zone->lock), "block %u begins a change without the zone lock", index);
	word.order = (u8)order;
	transit_begin(index, block, word, to);
	counter_add(&zone->transit, order_pages(order));
}

/*
 * Take a run that supplies up to `count` pieces of `order`: the smallest run that there is, and all
 * of it unless it is too large, so that taking many pieces splits few runs. *taken_order receives
 * its order.
 */
static u32 take_run(struct zone *zone, enum free_class class, enum migratetype type, unsigned order,
		    u64 count, unsigned *taken_order)
{
	const unsigned orders = zone->block_lists[class][type] & (~0u << (order - BLOCK_ORDER));
	unsigned wanted = order;

	if (!orders)
		return BLOCK_NONE;
	while (wanted < GIGA_ORDER && order_pages(wanted + 1 - order) <= count &&
	       (orders & ~0u << (wanted + 1 - BLOCK_ORDER)) &&
	       !(orders & 1u << (wanted - BLOCK_ORDER)))
		wanted++;
	*taken_order = wanted;
	return buddy_take_blocks(zone, wanted, class, type);
}

/* Take up to `count` pieces of `order` out of runs of one type. Zone lock held. */
static u64 take_pieces(struct zone *zone, enum free_class class, enum migratetype type,
		       unsigned order, u64 count, enum block_state to, struct block_list *list)
{
	const u32 step = order_blocks(order);
	unsigned run_order;
	u64 taken = 0;

	while (taken < count) {
		const u32 index = take_run(zone, class, type, order, count - taken, &run_order);
		struct block_list run = {.head = index};
		struct block *block;

		if (index == BLOCK_NONE)
			break;
		run.tail = index + order_blocks(run_order) - step;
		run.count = order_pages(run_order - order);
		counter_add(&zone->transit, order_pages(run_order));
		block = block_existing(zone->mm, index); /* a run's records lie side by side */
		for (u32 piece = index; piece <= run.tail; piece += step, block += step) {
			struct block_word word = block_look(block);

			word.order = (u8)order;
			transit_begin(piece, block, word, to);
			block->prev = piece - step;
			block->next = piece + step;
		}
		block_existing(zone->mm, run.head)->prev = BLOCK_NONE;
		block_existing(zone->mm, run.tail)->next = BLOCK_NONE;
		block_list_splice(zone->mm, list, &run);
		taken += order_pages(run_order - order);
	}
	return taken;
}

/*
 * The types from which blocks are taken, in this order. Metadata memory never moves, so it prefers
 * blocks whose contents do not move either; all other callers take movable blocks first. CMA blocks
 * are for movable pages only, so the only change that takes them is one that leaves them free
 * (BARE).
 */
static enum migratetype type_to_take(enum block_state to, unsigned turn)
{
	static const u8 for_meta[] = {MIGRATE_UNMOVABLE, MIGRATE_RECLAIMABLE, MIGRATE_MOVABLE};
	static const u8 others[] = {MIGRATE_MOVABLE, MIGRATE_RECLAIMABLE, MIGRATE_UNMOVABLE,
				    MIGRATE_CMA};

	return to == BLOCK_META ? for_meta[turn] : others[turn];
}

/*
 * One turn at the lock: take a slice of the blocks asked for, of the first `types` types in their
 * order. A result below `count` means that no more are free.
 */
static u64 take_turn(struct zone *zone, enum free_class class, unsigned order, u64 count,
		     enum block_state to, unsigned types, struct block_list *list)
{
	u64 taken = 0;

	zone_lock(zone);
	for (unsigned i = 0; i < types && taken < count; i++) {
		const enum migratetype type = type_to_take(to, i);

		taken += class == FREE_HUGE
				 ? buddy_begin_huge(zone, order, type, count - taken, to, list)
				 : take_pieces(zone, class, type, order, count - taken, to, list);
	}
	zone_unlock(zone);
	return taken;
}

static u64 take_of(struct zone *zone, enum free_class class, unsigned order, u64 count,
		   enum block_state to, unsigned types, struct block_list *list)
{
	u64 taken = 0, wanted = 0, got = 0;

	while (got == wanted && taken < count) {
		wanted = MIN(count - taken, MAX(LOCK_SLICE / order_blocks(order), 1));
		got = take_turn(zone, class, order, wanted, to, types, list);
		taken += got;
	}
	return taken;
}

u64 block_take(struct zone *zone, enum free_class class, unsigned order, u64 count,
	       enum block_state to, struct block_list *list)
{
	return take_of(zone, class, order, count, to, to == BLOCK_BARE ? 4 : 3, list);
}

u64 block_take_movable(struct zone *zone, enum free_class class, unsigned order, u64 count,
		       enum block_state to, struct block_list *list)
{
	return take_of(zone, class, order, count, to, 2, list);
}

u32 block_take_one(struct zone *zone, enum free_class class, enum block_state to)
{
	struct block_list list = BLOCK_LIST_INIT;

	block_take(zone, class, BLOCK_ORDER, 1, to, &list);
	return block_list_pop(zone->mm, &list);
}

/* A record says which class its block would be free in, even inside a run. */
static inline bool may_take(const struct zone *zone, struct block_word word, unsigned from)
{
	const enum migratetype list = type_list(word.type);

	return word.zone == zone->index && (from >> block_free_class(word) & 1) &&
	       (list < MIGRATE_CMA || (from & (list == MIGRATE_CMA ? TAKE_CMA : TAKE_ISOLATED)));
}

unsigned block_take_at(struct zone *zone, u32 index, unsigned order, unsigned from,
		       enum block_state to)
{
	struct block_word word;
	u32 head;

	if (!may_take(zone, block_look_any(zone->mm, index), from))
		return 0;
	head = block_run_head(zone->mm, index, &word);
	if (!(word.flags & BLOCK_FREE))
		return 0;
	if (word.state == BLOCK_HUGE)
		order = word.order;
	else if (index + order_blocks(order) > head + order_blocks(word.order))
		order = BLOCK_ORDER;
	buddy_unlink_within(zone, head, index, index + order_blocks(order));
	block_begin(zone, index, order, to);
	return order;
}

u32 block_take_in(struct zone *zone, u32 first, u32 count, unsigned from, enum block_state to)
{
	u32 index = first;

	/* a look at the record first, because most blocks are ruled out by it */
	while (index < first + count && !may_take(zone, block_look_any(zone->mm, index), from))
		index++;
	if (index == first + count)
		return BLOCK_NONE;
	zone_lock(zone);
	while (index < first + count && !(may_take(zone, block_look_any(zone->mm, index), from) &&
					  block_take_at(zone, index, BLOCK_ORDER, from, to)))
		index++;
	zone_unlock(zone);
	return index < first + count ? index : BLOCK_NONE;
}

/*
 * May 512 pieces in transit become one run? Zone lock held, so a CPU that isolates one of them does
 * so either before this or after the pieces have become one.
 */
static int can_join(struct zone *zone, u32 first)
{
	const u8 style = block_look_at(zone->mm, first).flags & BLOCK_MAPPED;

	for (u32 index = first; index < first + GIB_BLOCKS; index++) {
		const struct block_word word = block_look_at(zone->mm, index);

		ASSERT((word.flags & BLOCK_TRANSIT) && word.order == BLOCK_ORDER,
		       "block %u is joined, but is no piece in transit", index);
		if (word.type >= MIGRATE_CMA || (word.flags & BLOCK_MAPPED) != style)
			return -EBUSY;
	}
	return 0;
}

int block_join(struct zone *zone, u32 first)
{
	int err;

	zone_lock(zone);
	err = can_join(zone, first);
	for (u32 index = first; !err && index < first + GIB_BLOCKS; index++) {
		struct block *block = block_at(zone->mm, index);
		struct block_word word = block_look(block);

		word.type = MIGRATE_MOVABLE; /* none of them is isolated */
		word.order = index == first ? GIGA_ORDER : 0;
		if (index > first)
			word.flags &= (u8)~BLOCK_TRANSIT; /* the head's mark covers it */
		block_put(block, word);
	}
	zone_unlock(zone);
	return err;
}

void block_cut(struct zone *zone, u32 first, struct block_list *pieces)
{
	struct block_word head;

	zone_lock(zone);
	head = block_look_at(zone->mm, first);
	ASSERT(head.flags & BLOCK_TRANSIT, "block %u is cut while it is not in transit", first);
	for (u32 index = first; index < first + order_blocks(head.order); index++) {
		struct block *block = block_at(zone->mm, index);
		struct block_word word = block_look(block);

		word.flags |= BLOCK_TRANSIT;
		word.order = BLOCK_ORDER;
		block_put(block, word);
		block_list_push(zone->mm, pieces, index);
	}
	zone_unlock(zone);
}

/*
 * End the transit of a run, whose record says `word`; the caller holds the zone's lock and counts
 * the frames. Returns the new contents of the word.
 */
static inline struct block_word transit_end(const struct zone *zone, u32 index,
					    const struct block *block, struct block_word word,
					    unsigned order)
{
	ASSERT(word.flags & BLOCK_TRANSIT, "block %u published but not in transit", index);
	/* otherwise hvo_complete_round() reports this, before the page is used */
	if (word.state != BLOCK_HUGE || block->tag <= shootdown_done())
		check_event(CHECK_SETTLED, vmemmap_of_block(zone->mm, index),
			    order_pages(order - BLOCK_ORDER));
	return block_word_with(word, BLOCK_WORD(.flags = BLOCK_TRANSIT), BLOCK_WORD(.flags = 0));
}

/* End the transit of one run, with the zone's lock held. Returns the new contents of the word. */
static struct block_word transit_end_one(struct zone *zone, u32 index, unsigned order)
{
	struct block *block = block_existing(zone->mm, index);
	const struct block_word word = transit_end(zone, index, block, block_look(block), order);

	block_put(block, word);
	counter_sub(&zone->transit, order_pages(order));
	return word;
}

void block_publish_used(struct zone *zone, u32 index, unsigned order)
{
	zone_lock(zone);
	transit_end_one(zone, index, order);
	zone_unlock(zone);
}

void block_publish_free(struct zone *zone, u32 index, unsigned order)
{
	zone_lock(zone);
	buddy_free_blocks(zone, index, order,
			  block_free_class(transit_end_one(zone, index, order)));
	zone_unlock(zone);
}

void block_free(struct zone *zone, u32 index, unsigned order)
{
	zone_lock(zone);
	buddy_free_blocks(zone, index, order, block_free_class(block_look_at(zone->mm, index)));
	zone_unlock(zone);
}

/* ---- lists ---- */

/* A turn at a zone's lock, and the run that is handled now. */
struct turn {
	struct zone *zone;
	u32 index;
	struct block *block;
	struct block_word word; /* read from the record before fn() */
	u8 arg;                 /* of fn() */
};

typedef void turn_fn(struct turn *at);

/*
 * Call fn() for the runs of a list, in its order, with turns at a zone's lock for all neighbours in
 * the list that lie in that zone, a slice of blocks in each. A large run has a turn of its own.
 * `transit` is what each block adds to the count of those in transit: 1, 0 or -1. fn() may put its
 * run onto another list.
 */
static inline __attribute__((always_inline)) void
in_turns(struct mm *mm, const struct block_list *list, turn_fn *fn, u8 arg, s64 transit)
{
	struct turn at = {.index = list->head, .arg = arg};

	while (at.index != BLOCK_NONE) {
		u64 done = 0;

		at.zone = block_zone(mm, at.index);
		zone_lock(at.zone);
		while (at.index != BLOCK_NONE) {
			u64 sum;
			u32 next;

			at.block = block_existing(mm, at.index);
			at.word = block_look(at.block);
			next = at.block->next;
			sum = done + order_blocks(at.word.order);
			if (at.word.zone != at.zone->index || (sum > LOCK_SLICE && done > 0))
				break;
			fn(&at);
			done = sum;
			at.index = next;
		}
		counter_add(&at.zone->transit, done * BLOCK_FRAMES * (u64)transit);
		zone_unlock(at.zone);
	}
}

static inline void begin_one(struct turn *at)
{
	transit_begin(at->index, at->block, at->word, (enum block_state)at->arg);
}

void block_list_begin(struct mm *mm, struct block_list *list, enum block_state to)
{
	in_turns(mm, list, begin_one, (u8)to, 1);
}

static inline void use_one(struct turn *at)
{
	const struct block_word word =
		transit_end(at->zone, at->index, at->block, at->word, at->word.order);

	block_put(at->block,
		  block_word_with(word, BLOCK_WORD(.flags = 0), BLOCK_WORD(.flags = at->arg)));
}

void block_list_publish_used(struct mm *mm, struct block_list *list, u8 flags)
{
	in_turns(mm, list, use_one, flags, -1);
}

static inline void free_one(struct turn *at)
{
	at->word.flags &= (u8)~BLOCK_POOL;
	if (at->word.state == BLOCK_HUGE && at->word.order == BLOCK_ORDER) {
		buddy_add_huge(at->zone, at->index, at->block, at->word, 0);
		counter_add(&at->zone->free_class[FREE_HUGE], BLOCK_FRAMES);
		return;
	}
	block_put(at->block, at->word);
	buddy_free_blocks(at->zone, at->index, at->word.order, block_free_class(at->word));
}

static inline void publish_one(struct turn *at)
{
	at->word = transit_end(at->zone, at->index, at->block, at->word, at->word.order);
	free_one(at);
}

void block_list_publish_free(struct mm *mm, struct block_list *list)
{
	in_turns(mm, list, publish_one, 0, -1);
	*list = BLOCK_LIST_INIT;
}

void block_list_free(struct mm *mm, struct block_list *list)
{
	in_turns(mm, list, free_one, 0, 0);
	*list = BLOCK_LIST_INIT;
}
