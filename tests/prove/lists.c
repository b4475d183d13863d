/*
 * Lists of free runs, in a GiB of 4 blocks (seeds.txt): one call changes the list as split.c's
 * stand-ins do, from any state that is sound. Nothing is proved about the counters.
 */
#include "tests/prove/prove.h"

#include "mm/memmap/block.c"
#include "mm/zone/buddy.c"

enum { BLOCKS = GIB_BLOCKS };

static struct block records[BLOCKS];
static struct gib gib = {.blocks = records, .whole = true};
static struct mm mm = {.gib = &gib, .gibs = 1};
static struct zone zone = {.mm = &mm, .index = 1};
enum { CLASS = FREE_FULL, TYPE = MIGRATE_MOVABLE, LIST = 1 }; /* the list whose runs come and go */
static u64 before[BLOCKS];
static u16 bits;        /* which lists of this class and type have runs */
static u8 rank[BLOCKS]; /* each run's is lower than that of the next, so the list is no circle */

static u32 *list_head(void)
{
	return &zone.block_list[CLASS][TYPE][LIST];
}

static bool is_of_list(struct block_word word)
{
	return word.zone == zone.index && block_free_class(word) == CLASS &&
	       type_list(word.type) == TYPE;
}

/* Each run knows its neighbours, the head is the first, and the bit says if there is one. */
static bool is_sound(void)
{
	const u32 head = *list_head();
	bool sound = (head != BLOCK_NONE) == (zone.block_lists[CLASS][TYPE] >> LIST & 1);
	u32 on = 0;

	for (u32 i = 0; i < BLOCKS; i++) {
		const struct block_word word = block_word_of(records[i].word);
		const bool is_on = (word.flags & BLOCK_FREE) && is_of_list(word) &&
				   buddy_list_of(CLASS, i, word.order) == LIST;

		on |= (u32)is_on << i;
	}
	sound &= head == BLOCK_NONE || (head < BLOCKS && (on >> head & 1));
	for (u32 i = 0; i < BLOCKS; i++) {
		const u32 next = records[i].next, prev = records[i].prev;
		const bool from = prev == BLOCK_NONE ? head == i
						     : prev < BLOCKS && (on >> prev & 1) &&
							       records[prev].next == i;
		const bool to =
			next == BLOCK_NONE || (next < BLOCKS && (on >> next & 1) &&
					       records[next].prev == i && rank[i] < rank[next]);

		sound &= !(on >> i & 1) || (from && to);
	}
	return sound;
}

/* Any list, and a block of which nobody knows whether it is on it. */
static u32 begin(void)
{
	for (u32 i = 0; i < BLOCKS; i++) {
		records[i].word = before[i] = ANY(u64);
		records[i].next = ANY(u32);
		records[i].prev = ANY(u32);
		rank[i] = 1 + ANY_BELOW(u8, BLOCKS);
	}
	*list_head() = ANY(u32);
	zone.block_lists[CLASS][TYPE] = bits = ANY(u16);
	assume(is_sound());
	return ANY_BELOW(u32, BLOCKS);
}

/* The list is sound, others are as before, and only the word of block `index` is another: this. */
static void end(u32 index, struct block_word word)
{
	prove(is_sound());
	prove(((zone.block_lists[CLASS][TYPE] ^ bits) & ~(1u << LIST)) == 0);
	prove(zone.block_list[CLASS][TYPE][0] == 0 && zone.block_list[CLASS][TYPE][2] == 0);
	prove(zone.block_list[FREE_HUGE][TYPE][LIST] == 0);
	for (u32 i = 0; i < BLOCKS; i++)
		prove(records[i].word == (i == index ? block_word_bits(word) : before[i]));
}

PROVE(listed, "5", "the-first-forgets-the-new-one",
      "up to 4 runs of order 10, full and movable, any run")
{
	const u32 index = begin();
	const unsigned order = BLOCK_ORDER + LIST;
	struct block_word word = block_word_of(records[index].word);

	assume(!(word.flags & BLOCK_FREE) && is_of_list(word));
	list_add(&zone, index, order, CLASS);
	rank[index] = 0;
	word.flags |= BLOCK_FREE;
	word.order = (u8)order;
	prove(*list_head() == index);
	end(index, word);
}

PROVE(unlisted, "5", "the-last-has-no-one-before-it",
      "up to 4 runs of order 10, full and movable, any of them")
{
	const u32 index = begin();
	struct block_word word = block_word_of(records[index].word);

	assume((word.flags & BLOCK_FREE) && is_of_list(word) &&
	       buddy_list_of(CLASS, index, word.order) == LIST);
	list_remove(&zone, index, CLASS);
	word.flags &= (u8)~BLOCK_FREE;
	word.order = 0;
	end(index, word);
}
