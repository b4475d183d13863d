/* The buddy on a zone of 16 blocks, which are all of its GiB (seeds.txt). */
#include "tests/prove/prove.h"

#include "mm/memmap/block.c"
#include "mm/zone/buddy.c"

enum { BLOCKS = GIB_BLOCKS, ORDERS = 5 };

static struct block records[BLOCKS];
static struct gib gib = {.blocks = records, .whole = true};
static struct zone zone;
static struct mm mm = {.gib = &gib, .gibs = 1, .zone = &zone, .zones = 1};

bool spin_held(const struct spinlock *lock)
{
	return true;
}

const char *block_state_name(enum block_state state)
{
	return "";
}

static u32 runs_of(u32 index)
{
	const struct block_word word = block_look(&records[index]);

	return word.flags & BLOCK_FREE ? order_blocks(word.order) : 0;
}

/* Any lists that hold exactly the free runs, each in one piece and as large as it can be. */
static bool is_right(void)
{
	bool right = true;
	u32 covered = 0;

	for (u32 i = 0; i < BLOCKS; i++) {
		const struct block_word word = block_look(&records[i]);
		const struct block *b = &records[i];
		const u32 blocks = runs_of(i), buddy = i ^ blocks;
		const u32 *head = zone.block_list[FREE_BARE][word.type & 1];

		right &= word.state == BLOCK_BARE && word.type <= 1 && word.zone == 0;
		right &= !(word.flags & ~BLOCK_FREE);
		if (!blocks) {
			right &= word.order == 0;
			continue;
		}
		right &= word.order >= BLOCK_ORDER && word.order < BLOCK_ORDER + ORDERS &&
			 i % blocks == 0 && i >= covered;
		covered = i + blocks;
		right &= b->prev == BLOCK_NONE ? head[word.order - BLOCK_ORDER] == i
					       : b->prev < BLOCKS && runs_of(b->prev) == blocks &&
							 records[b->prev].next == i;
		right &= b->next == BLOCK_NONE || (b->next < BLOCKS && runs_of(b->next) == blocks &&
						   records[b->next].prev == i &&
						   block_look(&records[b->next]).type == word.type);
		right &= word.order == zone.max_order || runs_of(buddy) != blocks ||
			 block_look(&records[buddy]).type != word.type;
	}
	for (u32 type = 0; type < 2; type++)
		for (u32 k = 0; k < ORDERS; k++) {
			const u32 head = zone.block_list[FREE_BARE][type][k];

			right &= (zone.block_lists[FREE_BARE][type] >> k & 1) ==
				 (head != BLOCK_NONE);
			right &= head == BLOCK_NONE || (head < BLOCKS && runs_of(head) == 1u << k &&
							records[head].prev == BLOCK_NONE &&
							block_look(&records[head]).type == type);
		}
	return right && zone.block_lists[FREE_BARE][0] < 32 && zone.block_lists[FREE_BARE][1] < 32;
}

static bool is_free(u32 index)
{
	bool found = false;

	for (u32 i = 0; i < BLOCKS; i++)
		found |= index >= i && index - i < runs_of(i);
	return found;
}

static void any_zone(void)
{
	for (u32 i = 0; i < BLOCKS; i++)
		records[i] = ANY(struct block);
	for (u32 type = 0; type < 2; type++) {
		zone.block_lists[FREE_BARE][type] = ANY(u16);
		for (u32 k = 0; k < ORDERS; k++)
			zone.block_list[FREE_BARE][type][k] = ANY(u32);
	}
	zone.mm = &mm;
	zone.index = 0;
	zone.max_order = BLOCK_ORDER + ORDERS - 1;
	assume(is_right());
}

PROVE(merge, "17 --unwindset buddy_free_blocks.0:6,buddy_free_blocks:1,buddy_free_range.0:1,buddy_free_range.1:1", "182-merges-upwards-only", "any zone of 16 blocks of 2 types, any run")
{
	const unsigned order = BLOCK_ORDER + ANY_BELOW(unsigned, ORDERS);
	const u32 index = ANY_BELOW(u32, BLOCKS), any = ANY_BELOW(u32, BLOCKS);
	bool was;
	u64 frames;

	any_zone();
	assume(IS_ALIGNED(index, order_blocks(order)));
	for (u32 i = 0; i < BLOCKS; i++)
		assume(i < index || i >= index + order_blocks(order) ||
		       (!is_free(i) && records[i].word == records[index].word));
	was = is_free(any);
	frames = zone.free_class[FREE_BARE];
	buddy_free_blocks(&zone, index, order, FREE_BARE);
	prove(is_right());
	prove(is_free(any) == (was || (any >= index && any - index < order_blocks(order))));
	prove(zone.free_class[FREE_BARE] == frames + order_pages(order));
}

PROVE(split, "17 --unwindset buddy_take_blocks.0:6", "the-upper-half-is-lost", "any zone of 16 blocks of 2 types, any order")
{
	const unsigned order = BLOCK_ORDER + ANY_BELOW(unsigned, ORDERS);
	const enum migratetype type = ANY_BELOW(u32, 2);
	const u32 any = ANY_BELOW(u32, BLOCKS);
	bool was;
	u32 index;

	any_zone();
	was = is_free(any);
	index = buddy_take_blocks(&zone, order, FREE_BARE, type);
	prove(is_right());
	if (index == BLOCK_NONE) {
		prove(is_free(any) == was);
		return;
	}
	prove(index < BLOCKS && IS_ALIGNED(index, order_blocks(order)));
	prove(is_free(any) == (was && (any < index || any - index >= order_blocks(order))));
	prove(was || any < index || any - index >= order_blocks(order));
}

PROVE(run_head, "17", "1077-run-behind-the-first-bit",
      "any run of 1 to 16 blocks, any block in it")
{
	const unsigned order = BLOCK_ORDER + ANY_BELOW(unsigned, ORDERS);
	const u32 head = ANY_BELOW(u32, BLOCKS), index = ANY_BELOW(u32, BLOCKS);
	struct block_word word;

	for (u32 i = 0; i < BLOCKS; i++)
		records[i].word = ANY(u64);
	assume(IS_ALIGNED(head, order_blocks(order)) && head <= index);
	assume(index - head < order_blocks(order));
	for (u32 at = index; at > head; at &= at - 1) /* nothing heads a run inside of it */
		assume(block_look(&records[at]).order == 0);
	assume(block_look(&records[head]).order == order);
	prove(block_run_head(&mm, index, &word) == head);
	prove(block_word_bits(word) == records[head].word);
}
