/*
 * Gated frames: a queue per node, in order of tag. Inside metadata memory only.
 *
 *   node's queue   [lot: tag 7, block 40] -> [lot: tag 7, block 12] -> [lot: tag 8, block 40] ->
 *                  [lot: tag 9, block 12]
 *   block 40       its own lots    1: tag 7, 3 frames    2: tag 8, 500 frames    3, 4: unused
 *
 * A lot is a map of the frames of one metadata block that wait for one generation. Lots are part of
 * the block's descriptor, so gating a frame never needs memory and never fails. Lots leave the
 * front of the queue as soon as shootdown_reusable() has reached their tag. So a frame that is
 * gated later never delays an earlier one, and the cost of a release is proportional to what it
 * releases.
 *
 * Tags in the queue never fall from front to back. A frame whose tag is lower than that of the last
 * lot waits for the higher tag, which is late and safe. The same happens to the latest lot of a
 * block when the block waits for more generations than it has lots: that lot joins the new
 * generation. Only the latest lot is ever delayed this way. The earlier ones leave on time, and
 * each one that leaves makes room.
 *
 * Locks: the node's metadata lock, for everything here.
 */
#pragma once

#include "mm/memmap/zone.h"

/*
 * Frames of a block of this metadata memory, in use until now, wait for `tag` from now on. They are
 * the bits of `frames` in word `at` of the block's maps.
 */
void gate_add(struct meta *meta, struct meta_block *block, unsigned at, u64 frames, u64 tag);

/*
 * Free the frames of up to GATE_SLICE lots whose tag is not above `done`. True if more such lots
 * are left.
 */
enum { GATE_SLICE = 32 };
bool gate_release(struct meta *meta, u64 done);

/*
 * A block leaves metadata memory: its lots leave the queue, and its gated frames stay with the
 * block.
 */
void gate_forget_block(struct meta *meta, struct meta_block *block);

/* The highest generation that any gated frame waits for now; 0 if no frame is gated. */
u64 gate_last_tag(const struct meta *meta);

/*
 * For audits: true if the queue is in order and its lots hold the gated frames of their blocks,
 * each frame once. No CPU may be changing the queue.
 */
bool gate_walk(const struct meta *meta);

/*
 * Count `frames` of a block that came into use, or, if negative, that became free again, in the
 * block and in its metadata memory.
 */
static inline void meta_count_used(struct meta *meta, struct meta_block *block, int frames)
{
	meta->unused[block->kind] -= block->used == 0;
	block->used = (u16)(block->used + frames);
	meta->unused[block->kind] += block->used == 0;
	counter_add(&meta->used, (u64)(s64)frames);
	counter_sub(&meta->free[block->kind], (u64)(s64)frames);
	/*
	 * Without a hint there is none to lower: blocks before this one may have free frames as
	 * well.
	 */
	if (frames < 0 && meta->hint[block->kind] && block->block < meta->hint[block->kind]->block)
		meta->hint[block->kind] = block;
}
