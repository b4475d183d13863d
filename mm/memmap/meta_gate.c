/* Gated metadata frames: see meta_gate.h. */
#include "mm/memmap/meta_gate.h"

#include "kernel/core/shootdown.h"

static void queue_append(struct meta *meta, struct gate_lot *lot, u64 tag)
{
	lot->tag = tag;
	lot->next = NULL;
	lot->prev = meta->gate_last;
	if (meta->gate_last)
		meta->gate_last->next = lot;
	else
		meta->gate_first = lot;
	meta->gate_last = lot;
}

static void queue_remove(struct meta *meta, struct gate_lot *lot)
{
	if (lot->prev)
		lot->prev->next = lot->next;
	else
		meta->gate_first = lot->next;
	if (lot->next)
		lot->next->prev = lot->prev;
	else
		meta->gate_last = lot->prev;
	lot->tag = 0;
}

u64 gate_last_tag(const struct meta *meta)
{
	return meta->gate_last ? meta->gate_last->tag : 0;
}

/*
 * The lot of a block that has the highest tag, and in *unused one that is unused; NULL where there
 * is none.
 */
static struct gate_lot *latest_lot(struct meta_block *block, struct gate_lot **unused)
{
	struct gate_lot *latest = NULL;

	*unused = NULL;
	for (unsigned i = 0; i < GATE_LOTS; i++) {
		struct gate_lot *lot = &block->lot[i];

		if (lot->tag == 0)
			*unused = lot;
		else if (!latest || lot->tag > latest->tag)
			latest = lot;
	}
	return latest;
}

/* The lot of the block that waits for `tag`, which is not lower than any tag in the queue. */
static struct gate_lot *lot_for(struct meta *meta, struct meta_block *block, u64 tag)
{
	struct gate_lot *unused, *latest = latest_lot(block, &unused);

	if (latest && latest->tag == tag)
		return latest;
	if (!unused) { /* a generation may have completed meanwhile */
		gate_release(meta, shootdown_reusable());
		latest = latest_lot(block, &unused);
	}
	if (!unused) {
		unused = latest;
		queue_remove(meta, latest);
	}
	unused->block = block;
	queue_append(meta, unused, tag);
	return unused;
}

void gate_add(struct meta *meta, struct meta_block *block, unsigned at, u64 frames, u64 tag)
{
	struct gate_lot *lot = lot_for(meta, block, MAX(tag, gate_last_tag(meta)));

	lot->map[at] |= frames;
	block->gated_map[at] |= frames;
	block->gated = (u16)(block->gated + __builtin_popcountll(frames));
	counter_add(&meta->gated, (u64)__builtin_popcountll(frames));
}

/* Take a lot out of the queue and free its frames in the block's maps. Returns their number. */
static unsigned lot_empty(struct meta *meta, struct gate_lot *lot)
{
	struct meta_block *block = lot->block;
	unsigned frames = 0;

	queue_remove(meta, lot);
	for (unsigned i = 0; i < ARRAY_LEN(lot->map); i++) {
		frames += (unsigned)__builtin_popcountll(lot->map[i]);
		block->gated_map[i] &= ~lot->map[i];
		block->used_map[i] &= ~lot->map[i];
		lot->map[i] = 0;
	}
	block->gated = (u16)(block->gated - frames);
	counter_sub(&meta->gated, frames);
	return frames;
}

bool gate_release(struct meta *meta, u64 done)
{
	struct gate_lot *lot = meta->gate_first;

	for (unsigned n = 0; n < GATE_SLICE && lot && lot->tag <= done; n++) {
		struct meta_block *block = lot->block;

		meta_count_used(meta, block, -(int)lot_empty(meta, lot));
		lot = meta->gate_first;
	}
	return lot && lot->tag <= done;
}

void gate_forget_block(struct meta *meta, struct meta_block *block)
{
	for (unsigned i = 0; i < GATE_LOTS; i++)
		if (block->lot[i].tag != 0)
			queue_remove(meta, &block->lot[i]);
	counter_sub(&meta->gated, block->gated);
}

/* True if the lots of a block hold its gated frames, each once. */
static bool lots_agree(const struct meta_block *block)
{
	for (unsigned w = 0; w < ARRAY_LEN(block->gated_map); w++) {
		u64 all = 0;

		for (unsigned i = 0; i < GATE_LOTS; i++) {
			if (all & block->lot[i].map[w] ||
			    (block->lot[i].map[w] && !block->lot[i].tag))
				return false;
			all |= block->lot[i].map[w];
		}
		if (all != block->gated_map[w] || all & ~block->used_map[w])
			return false;
	}
	return true;
}

bool gate_walk(const struct meta *meta)
{
	u64 tag = 0;
	bool ok = true;

	for (const struct gate_lot *lot = meta->gate_first; lot; lot = lot->next) {
		ok &= lot->tag >= tag && lot->tag > 0 && lots_agree(lot->block);
		tag = lot->tag;
	}
	return ok;
}
