/*
 * Splitting and merging in a GiB of 16 blocks, from any state that is sound: one call leaves a
 * sound state with the right blocks free. The lists are stand-ins (seeds.txt): lists.c proves that
 * the real ones do the same. A range is freed in runs, each of which merge is proved for.
 */
#include "tests/prove/prove.h"

#include "kernel/core/lock.h"
#define spin_held(lock) true
#include "mm/memmap/block.c"
#include "mm/memmap/block_state.h"
#include "mm/zone/buddy.h"

enum { BLOCKS = GIB_BLOCKS, ORDERS = 5, ZONE = 1 };

#define ORDER (0xffULL << 16) /* fields of a word */
#define FREE  ((u64)BLOCK_FREE << 24)

static struct block records[BLOCKS];
static struct gib gib = {.blocks = records, .whole = true};
static struct mm mm = {.gib = &gib, .gibs = 1};
static struct zone zone = {.mm = &mm, .index = ZONE};
static u64 before[BLOCKS];
static u32 listed; /* bit i: block i lies in a free run */
static u32 cut;    /* blocks of a run that is too large, which buddy_free_range() gets */
static u32 runs;   /* blocks that buddy_free_range() gives to buddy_free_blocks() */

/* What the record says, without taking an address. */
static struct block_word look(u32 i)
{
	const u64 word = records[i].word;

	return BLOCK_WORD(.state = (u8)word, .target = (u8)(word >> 8), .order = (u8)(word >> 16),
			  .flags = (u8)(word >> 24), .type = (u8)(word >> 32),
			  .zone = (u8)(word >> 40), .free_pages = (u16)(word >> 48));
}

static u32 bits_of(u32 index, u32 count)
{
	return ((1u << count) - 1) << index;
}

/* What lists.c assumes: the list is that of the record. */
static bool is_its_list(const struct zone *of, u32 index, enum free_class class)
{
	return of->index == look(index).zone && block_free_class(look(index)) == class;
}

static void stand_in_add(const struct zone *of, u32 index, unsigned order, enum free_class class)
{
	const u32 bits = bits_of(index, order_blocks(order));

	prove(is_its_list(of, index, class) && !(records[index].word & FREE));
	prove(index + order_blocks(order) <= BLOCKS && IS_ALIGNED(index, order_blocks(order)));
	prove(!(listed & bits));
	listed |= bits;
	records[index].word = (records[index].word & ~ORDER) | (u64)order << 16 | FREE;
}

static void stand_in_remove(const struct zone *of, u32 index, enum free_class class)
{
	prove(is_its_list(of, index, class) && (records[index].word & FREE));
	listed &= ~bits_of(index, order_blocks(look(index).order));
	records[index].word &= ~(ORDER | FREE);
}

static void stand_in_range(u32 index, u32 count)
{
	cut |= bits_of(index, count);
}

static void stand_in_blocks(u32 index, unsigned order, enum free_class class)
{
	const u32 count = order_blocks(order);

	prove(index + count <= BLOCKS && IS_ALIGNED(index, count) &&
	      !(runs & bits_of(index, count)));
	prove(order == BLOCK_ORDER || (class != FREE_HUGE && order <= zone.max_order));
	runs |= bits_of(index, count);
}

#include "mm/zone/buddy.c"

static bool is_run(u32 i, unsigned order)
{
	const struct block_word word = look(i);

	return (word.flags & BLOCK_FREE) && word.order == order;
}

/* Are they of the same zone, type and class? */
static bool is_alike(u32 i, u32 j)
{
	const struct block_word a = look(i), b = look(j);

	return a.zone == b.zone && a.type == b.type && block_free_class(a) == block_free_class(b);
}

/* No runs overlap, and no two neighbours could merge. The blocks in runs are `blocks`. */
static bool is_sound(u32 *blocks)
{
	u32 heads = 0, in_runs = 0;
	bool sound = true;

	for (unsigned n = 0; n < ORDERS; n++)
		for (u32 i = 0, next; i < BLOCKS; i = next) {
			const bool first = IS_ALIGNED(i, 2u << n);

			next = i + (1u << n);
			if (!is_run(i, BLOCK_ORDER + n))
				continue;
			heads |= 1u << i;
			in_runs |= bits_of(i, 1u << n);
			sound &= block_free_class(look(i)) < FREE_CLASSES;
			for (u32 j = i + 1; j < next; j++)
				sound &= is_alike(i, j) && look(j).order == 0 &&
					 !(look(j).flags & BLOCK_FREE);
			if (first && next < BLOCKS && is_run(next, BLOCK_ORDER + n) &&
			    look(i).zone == ZONE && BLOCK_ORDER + n < zone.max_order)
				sound &= !is_alike(i, next) ||
					 block_free_class(look(i)) == FREE_HUGE;
		}
	for (u32 i = 0; i < BLOCKS; i++)
		sound &= !(look(i).flags & BLOCK_FREE) || (heads >> i & 1);
	*blocks = in_runs;
	return sound;
}

/* Any sound state. Returns the blocks that are free. */
static u32 begin(void)
{
	u32 blocks;

	for (u32 i = 0; i < BLOCKS; i++)
		records[i].word = before[i] = ANY(u64);
	zone.max_order = BLOCK_ORDER + ANY_BELOW(unsigned, ORDERS);
	assume(is_sound(&blocks));
	return listed = blocks;
}

/* Those are free now, and the records say nothing new but this. */
static void end(u32 free)
{
	u32 blocks;

	prove(is_sound(&blocks));
	prove(blocks == free && listed == free);
	for (u32 i = 0; i < BLOCKS; i++)
		prove(((before[i] ^ records[i].word) & ~(ORDER | FREE)) == 0);
}

/* Somebody owns `count` blocks that are alike, the first of which heads them. */
static void own(u32 index, u32 count)
{
	for (u32 i = 0; i < BLOCKS; i++) {
		const struct block_word word = look(i);

		if (i < index || i >= index + count)
			continue;
		assume(word.zone == ZONE && is_alike(index, i) && !(listed >> i & 1));
		assume(!(word.flags & (BLOCK_FREE | BLOCK_TRANSIT | BLOCK_POOL)));
		assume(i == index || word.order == 0);
	}
}

PROVE(merge, "17", "a-run-takes-its-other-neighbour", "any sound state of 16 blocks, any run")
{
	const u32 free = begin(), index = ANY_BELOW(u32, BLOCKS);
	const unsigned order = BLOCK_ORDER + ANY_BELOW(unsigned, ORDERS);
	const enum free_class class = block_free_class(look(index));
	const u32 run = bits_of(index, order_blocks(order));

	assume(class < FREE_CLASSES && IS_ALIGNED(index, order_blocks(order)));
	own(index, order_blocks(order));
	for (u32 i = 0; i < BLOCKS; i++) /* by constants, which is quicker */
		for (unsigned n = 0; n < ORDERS; n++)
			if (IS_ALIGNED(i, 1u << n) && i == index && order == BLOCK_ORDER + n)
				buddy_free_blocks(&zone, i, BLOCK_ORDER + n, class);
	if (class != FREE_HUGE && order > zone.max_order) {
		prove(cut == run);
		return;
	}
	prove(cut == 0);
	end(free | run);
}

PROVE(range, "17", "a-run-of-a-range-is-not-aligned", "any range of up to 16 blocks")
{
	const u32 index = ANY_BELOW(u32, BLOCKS), count = ANY_BELOW(u32, BLOCKS + 1);
	const enum free_class class = ANY_BELOW(unsigned, FREE_CLASSES);

	assume(count <= BLOCKS - index);
	zone.max_order = BLOCK_ORDER + ANY_BELOW(unsigned, ORDERS);
	buddy_free_range(&zone, index, count, class);
	prove(runs == (count ? bits_of(index, count) : 0));
}

PROVE(split, "17", "the-other-half-is-lost",
      "any sound state of 16 blocks, any list but of huge pages")
{
	const u32 free = begin();
	const unsigned order = BLOCK_ORDER + ANY_BELOW(unsigned, ORDERS);
	const enum free_class class = FREE_BARE + ANY_BELOW(unsigned, FREE_CLASSES - FREE_BARE);
	const enum migratetype type = ANY_BELOW(unsigned, MIGRATE_LISTS);
	u16 lists = 0;
	u32 taken;

	for (u32 n = 0; n < ORDERS; n++) {
		const u32 head = ANY_BELOW(u32, BLOCKS);
		bool is_head = false;

		for (u32 i = 0; i < BLOCKS; i++) {
			const struct block_word word = look(i);

			if (!is_run(i, BLOCK_ORDER + n) || word.zone != ZONE ||
			    type_list(word.type) != type || block_free_class(word) != class)
				continue;
			lists |= (u16)(1u << n);
			is_head |= i == head;
		}
		assume(is_head || !(lists >> n & 1));
		zone.block_list[class][type][n] = head;
	}
	zone.block_lists[class][type] = lists;
	taken = buddy_take_blocks(&zone, order, class, type);
	prove((taken == BLOCK_NONE) == !(lists >> (order - BLOCK_ORDER)));
	if (taken == BLOCK_NONE) {
		end(free);
		return;
	}
	prove(taken < BLOCKS && IS_ALIGNED(taken, order_blocks(order)));
	prove((free & bits_of(taken, order_blocks(order))) == bits_of(taken, order_blocks(order)));
	prove(type_list(look(taken).type) == type);
	prove(block_free_class(look(taken)) == class);
	end(free & ~bits_of(taken, order_blocks(order)));
}
