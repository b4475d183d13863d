/*
 * States of a 2 MiB block, and every legal change between them. Every pair that is not listed
 * asserts.
 *
 * Beside each state, its 8 vmemmap PTEs: one cache line, owned with the block.
 *
 *   UNOPENED  none            section never used
 *   ABSENT    none            no RAM
 *   RESERVED  8 private       contains non-RAM, image or firmware; free memory in it goes to the
 *                             buddy up to order 8
 *   BARE      none present    wholly free, or a page of a pool that was never taken
 *   HUGE      [head RW][shared tail RO x7]
 *                             the head frame holds the head and 63 preformatted tails
 *   NOHEAD    [shared tail RO x8]
 *                             blocks 1..511 of a 1 GiB page, tail page of order 18
 *   FULL      8 private RW    split, once split, boot allocations; in a mapped section also one
 *                             2 MiB leaf over 64 blocks
 *   META      none present    frames for other blocks; or the struct pages of a mapped section
 *                             (section_memmap.c)
 *
 *   from      to        owner, lock       PTEs                flush              on failure
 *   --------  --------  ----------------  ------------------  -----------------  ------------------
 *   UNOPENED  any but   opener (OPENING   table installed;    none: not present  frames are
 *             HUGE,     by CAS)           RESERVED, FULL: 8   -> present         reserved first;
 *             NOHEAD                      private                                else UNOPENED
 *                                                                                again
 *   BARE      HUGE      taker, in         1 head, 7 shared    none               heads reserved
 *                       transit                                                  before the block
 *                                                                                is unlinked
 *   BARE      NOHEAD    the same, order   8 shared            none               the same
 *                       18
 *   BARE      FULL      taker, in         8 private, final    none               8 reserved before
 *                       transit
 *   BARE      META      META grower       -                   none               -
 *   META      BARE      META              -                   none; done >= tag  refused while in
 *                                                             first              use
 *   FULL      META      META grower,      as they are         none               -
 *                       mapped
 *   META      FULL      META, mapped      as they are         none; done >= tag  refused while in
 *                                                             first              use
 *   HUGE      BARE      taker, in         cleared, head       1 full round per   -
 *                       transit           gated               batch
 *   NOHEAD    BARE      the same          cleared             the same           -
 *   FULL      HUGE      taker, in         private -> shared,  1 full round per   heads stay in
 *             (on)      transit           head in place, no   batch, 7 frames    place: nothing to
 *                                         window              gated              reserve
 *   FULL      HUGE      taker, mapped     split on first      2 rounds per page  roll back the
 *             (base-                      need, head to a     or per batch       walked prefix,
 *             line)                       new frame                              flush, stays FULL
 *   HUGE      FULL      taker, in         7 allocated frames, 1 round per page   stays HUGE,
 *                       transit           head in place       or per batch       surplus
 *   FULL      NOHEAD    the same two, 1   all 8 shared        the same           the same
 *                       GiB
 *   NOHEAD    FULL      the same,         8 allocated frames  the same           the same
 *                       restoring
 *   BARE,     UNOPENED  closer (CLOSING)  PMD cleared         1 full round,      -EBUSY before
 *   FULL,                                                     idle CPUs          anything is
 *   META                                                      included           unlinked
 *
 * FULL <-> metadata memory is for mapped sections only. Where everything was opened mapped
 * (memmap=serial, parallel) there is no BARE block that metadata memory could grow into. Going
 * through HUGE and BARE would cost a PMD split and two rounds to clear struct pages that nobody
 * will read.
 *
 * FULL <-> NOHEAD is the same step for blocks 1..511 of a 1 GiB page in mapped sections. A huge
 * block of a mapped section never becomes BARE: it is restored to FULL. FULL -> HUGE (on) leaves
 * the head in its frame, which is one of metadata memory's TAILS frames. This is the one case where
 * a head lives among tails, until the block is bare or full again.
 *
 * Freeing a HUGE block is no change of state: it stays HUGE. Counters: COUNT_CHANGE(from, to),
 * printed by the benchmarks.
 *
 * Locking: the caller owns the record (block.h).
 */
#include "mm/memmap/block_state.h"

#include <arch/check.h>

#include "kernel/core/panic.h"
#include "mm/memmap/enter.h"
#include "mm/memmap/vmemmap.h"

#define TO(state) (1u << BLOCK_##state)

static const u16 legal[BLOCK_STATES] = {
	[BLOCK_UNOPENED] = TO(ABSENT) | TO(RESERVED) | TO(BARE) | TO(FULL) | TO(META),
	[BLOCK_BARE] = TO(HUGE) | TO(NOHEAD) | TO(FULL) | TO(META) | TO(UNOPENED),
	[BLOCK_HUGE] = TO(BARE) | TO(FULL),
	[BLOCK_NOHEAD] = TO(BARE) | TO(FULL),
	[BLOCK_FULL] = TO(HUGE) | TO(NOHEAD) | TO(META) | TO(UNOPENED),
	[BLOCK_META] = TO(BARE) | TO(FULL) | TO(UNOPENED),
};

static const char *const names[BLOCK_STATES] = {
	[BLOCK_UNOPENED] = "unopened", [BLOCK_ABSENT] = "absent", [BLOCK_RESERVED] = "reserved",
	[BLOCK_BARE] = "bare",         [BLOCK_HUGE] = "huge",     [BLOCK_NOHEAD] = "nohead",
	[BLOCK_FULL] = "full",         [BLOCK_META] = "meta",
};

const char *block_state_name(enum block_state state)
{
	return state < BLOCK_STATES ? names[state] : "?";
}

bool block_change_legal(enum block_state from, enum block_state to)
{
	return from < BLOCK_STATES && to < BLOCK_STATES && (legal[from] >> to & 1);
}

enum block_state block_state_without_use(const struct mm *mm, u32 index)
{
	return block_look_at(mm, index).flags & BLOCK_MAPPED ? BLOCK_FULL : BLOCK_BARE;
}

static inline void check_change(const struct mm *mm, u32 index, enum block_state from,
				enum block_state to)
{
	ASSERT(block_change_legal(from, to), "block %u goes from %s to %s", index,
	       block_state_name(from), block_state_name(to));
	check_event(CHECK_STATE, vmemmap_of_block(mm, index), (u64)from * 16 + to);
}

_Static_assert(__builtin_offsetof(struct block_word, state) == 0, "a state alone is a word");

void block_set_state(struct mm *mm, u32 index, enum block_state to)
{
	const struct block_word clear = {.state = 0xff, .target = BLOCK_REPORTED};
	struct block *block = block_existing(mm, index);
	const enum block_state from = block_look(block).state;

	check_change(mm, index, from, to);
	block_change(block, clear, block_word_of(to));
	mm_count(mm, COUNT_CHANGE(from, to), 1);
}

void block_put_states(struct mm *mm, u32 first, u32 count, struct block_word word, const u8 *zones)
{
	struct block *blocks = block_existing(mm, first);
	const enum block_state from = block_look(blocks).state;

	for (u32 i = 0; i < count; i++) {
		const struct block_word was = block_look(&blocks[i]);

		ASSERT(was.state == from, "block %u is %s in a range of %s blocks", first + i,
		       block_state_name(was.state), block_state_name(from));
		ASSERT(!block_word_is_isolated(was),
		       "block %u opens or closes while it is isolated", first + i);
		check_change(mm, first + i, from, word.state);
		if (zones)
			word.zone = zones[i];
		block_put(&blocks[i], word);
	}
	mm_count(mm, COUNT_CHANGE(from, word.state), count);
}
