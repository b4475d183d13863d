/* Records of blocks: states, heads of runs, and the buddy on a zone of 16 blocks. */
#define OWN_PANIC
#include "tests/prove/prove.h"

#include "mm/memmap/block.c"
#include "mm/memmap/block_state.c"
#include "mm/zone/buddy.c"

enum { BLOCKS = 16, ORDERS = 5 };

static struct block records[GIB_BLOCKS];
static struct gib gib = {.blocks = records, .whole = true};
static struct zone zone;
static struct mm mm = {.gib = &gib, .gibs = 1, .zone = &zone, .zones = 1};
static bool refused;

__noreturn void panic(const char *format, ...)
{
	prove(refused); /* where the harness expects it */
	assume(0);
	for (;;)
		;
}

bool spin_held(const struct spinlock *lock)
{
	return true;
}

/* The list of legal changes, written once more from the table at the head of block_state.c. */
static bool is_listed(enum block_state from, enum block_state to)
{
	switch (from) {
	case BLOCK_UNOPENED:
		return to < BLOCK_STATES && to != BLOCK_UNOPENED && to != BLOCK_HUGE &&
		       to != BLOCK_NOHEAD;
	case BLOCK_BARE:
		return to == BLOCK_HUGE || to == BLOCK_NOHEAD || to == BLOCK_FULL ||
		       to == BLOCK_META || to == BLOCK_UNOPENED;
	case BLOCK_META:
		return to == BLOCK_BARE || to == BLOCK_FULL || to == BLOCK_UNOPENED;
	case BLOCK_HUGE:
	case BLOCK_NOHEAD:
		return to == BLOCK_BARE || to == BLOCK_FULL;
	case BLOCK_FULL:
		return to == BLOCK_HUGE || to == BLOCK_NOHEAD || to == BLOCK_META ||
		       to == BLOCK_UNOPENED;
	default:
		return false; /* no RAM, reserved: for ever */
	}
}

static struct pcp_counts counts;

PROVE(states, "3", "a-state-in-use-is-closed", "any record, any pair of states")
{
	static struct percpu cpu;
	static u64 lists[16];
	struct pcp *pcp = (struct pcp *)lists, *all[1] = {pcp};
	const u64 was = ANY(u64);
	const enum block_state from = block_word_of(was).state, to = ANY_BELOW(u32, 256);
	const unsigned n = ANY_BELOW(unsigned, MM_COUNTS);
	struct block_word is;

	host_this_cpu = &cpu;
	pcp->counts = &counts;
	mm.pcp = all;
	records[0].word = was;
	refused = !is_listed(from, to);
	prove(block_change_legal(from, to) == is_listed(from, to));
	block_set_state(&mm, 0, to);
	prove(!refused); /* it came back */
	is = block_look(&records[0]);
	prove(is.state == to && is.flags == block_word_of(was).flags &&
	      is.type == block_word_of(was).type && is.order == block_word_of(was).order);
	prove(!block_word_is_reported(is));
	prove(counts.count[n] == (n == COUNT_CHANGE(from, to)));
}

PROVE(run_head, "11", "1077-run-behind-the-first-bit",
      "any run of 1 to 512 blocks, any block in it")
{
	const unsigned order = BLOCK_ORDER + ANY_BELOW(unsigned, BLOCK_ORDERS);
	const u32 head = ANY_BELOW(u32, GIB_BLOCKS), index = ANY_BELOW(u32, GIB_BLOCKS);
	struct block_word word;

	__CPROVER_havoc_object(records);
	assume(IS_ALIGNED(head, order_blocks(order)) && head <= index);
	assume(index - head < order_blocks(order));
	for (u32 at = index; at > head; at &= at - 1) /* nothing heads a run inside of it */
		assume(block_look(&records[at]).order == 0);
	assume(block_look(&records[head]).order == order);
	prove(block_run_head(&mm, index, &word) == head);
	prove(block_word_bits(word) == records[head].word);
}

/* ---- the buddy ---- */

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
	__CPROVER_havoc_object(&zone);
	zone.mm = &mm;
	zone.index = 0;
	zone.max_order = BLOCK_ORDER + ORDERS - 1;
	assume(is_right());
}

PROVE(merge, "17", "182-merges-upwards-only", "any zone of 16 blocks of 2 types, any run")
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

PROVE(split, "17", "the-upper-half-is-lost", "any zone of 16 blocks of 2 types, any order")
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
