/* Records of blocks: states, and heads of runs. */
#define OWN_PANIC
#include "tests/prove/prove.h"

#include "mm/memmap/block.c"
#include "mm/memmap/block_state.c"
#include "mm/zone/buddy.h"

static struct block records[GIB_BLOCKS];
static struct gib gib = {.blocks = records, .whole = true};
static struct mm mm = {.gib = &gib, .gibs = 1};
static bool refused;

__noreturn void panic(const char *format, ...)
{
	prove(refused); /* where the harness expects it */
	assume(0);
	for (;;)
		;
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
