/* Heads of runs, in a GiB of 16 blocks (seeds.txt). */
#include "tests/prove/prove.h"

#include "mm/memmap/block.c"

enum { BLOCKS = GIB_BLOCKS, ORDERS = 5 };

static struct block records[BLOCKS];
static struct gib gib = {.blocks = records, .whole = true};
static struct mm mm = {.gib = &gib, .gibs = 1};

PROVE(run_head, "17", "1077-run-behind-the-first-bit", "any run of 1 to 16 blocks, any block in it")
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
