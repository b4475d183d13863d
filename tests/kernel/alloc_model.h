/*
 * A reference allocator to compare mm/ with. It records the holder of each frame in one flat array
 * and does nothing clever.
 *
 *   holder[frame]   0: free                     1..: a holder's number
 *                   MODEL_POOL: in the pool     MODEL_NO_RAM: hole, firmware, boot
 *
 * The model cannot foretell which page the allocator will return, but it can judge each answer. The
 * frames of a page must have been free RAM of the zone that was asked for, and where the answer was
 * "none", there must have been no such page. The model never asks the allocator whether a frame is
 * free. It must ask only which blocks metadata memory took, because metadata memory may take any
 * block.
 */
#pragma once

#include "tests/kernel/arena.h"

enum { MODEL_FREE = 0, MODEL_NO_RAM = 0xffff, MODEL_POOL = 0xfffe, MODEL_HOLDERS_MAX = 0xfff0 };

struct alloc_model {
	struct arena *a;
	struct page *memory; /* the machine's page for the arrays */
	u64 real_frames, frames;
	u16 *holder;        /* [frames]: of the real memory, then of the phantom */
	u16 *held, *no_ram; /* [frames / 512]: frames of each block */
	u64 total;          /* frames held, without those of the pool */
};

/*
 * Make a model in which all RAM is free. Returns false if there is no memory for the arrays; the
 * case is then skipped.
 */
bool model_make(struct alloc_model *m, struct arena *a);
void model_drop(struct alloc_model *m);

/*
 * Give frames from one holder to another. If one of them did not belong to `from`, the case fails
 * with a message, and the call returns false.
 */
bool model_move(struct alloc_model *m, pfn_t pfn, u64 frames, u16 from, u16 to);

/* model_is_free(): is the frame free? model_lose(): a free frame is bad and no longer RAM. */
bool model_is_free(const struct alloc_model *m, pfn_t pfn);
void model_lose(struct alloc_model *m, pfn_t pfn);

/*
 * Should the allocator have found a page of this order (NODE_NONE: on any node), after rings were
 * drained and gated frames released? True only if its promises leave no excuse.
 */
bool model_has_room(struct alloc_model *m, unsigned order, node_t node);

/* Print what the model knows, for people, as runs of similar blocks. */
void model_print(const struct alloc_model *m);

/* Does every block record agree with the model? Rings must be drained. A difference is reported. */
bool model_agrees(struct alloc_model *m);
