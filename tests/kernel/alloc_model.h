/*
 * A reference allocator to compare mm/ with: who holds each frame, in one flat array, and nothing
 * clever.
 *
 *   holder[frame]   0: free                     1..: a holder's number
 *                   MODEL_POOL: in the pool     MODEL_NO_RAM: hole, firmware, boot
 *
 * It cannot foretell which page the allocator will hand out, but it can say of each answer whether
 * it is right: the frames of a page were free RAM of the zone asked for; where the answer was
 * "none", there was none. It never asks the allocator whether a frame is free; what it must ask is
 * which blocks META took, because META takes what it likes.
 */
#pragma once

#include "tests/kernel/arena.h"

enum { MODEL_FREE = 0, MODEL_NO_RAM = 0xffff, MODEL_POOL = 0xfffe, MODEL_HOLDERS_MAX = 0xfff0 };

struct alloc_model {
	struct arena *a;
	struct page *memory; /* the machine's, for the arrays */
	u64 real_frames, frames;
	u16 *holder;        /* [frames]: the real memory's, then the phantom's */
	u16 *held, *no_ram; /* [frames / 512]: frames of each block */
	u64 total;          /* frames held, the pool's not included */
};

/* Everything free that is RAM. False if there is no memory for the arrays: the case is skipped. */
bool model_make(struct alloc_model *m, struct arena *a);
void model_drop(struct alloc_model *m);

/* Frames change hands. False, said why, if one of them was not `from`'s. */
bool model_move(struct alloc_model *m, pfn_t pfn, u64 frames, u16 from, u16 to);

/* Is it in nobody's hands? And: a free frame is no RAM any more, because it is bad. */
bool model_is_free(const struct alloc_model *m, pfn_t pfn);
void model_lose(struct alloc_model *m, pfn_t pfn);

/*
 * After rings were drained and gated frames released: should a page of this order have been found
 * (NODE_NONE: anywhere)? True only if the allocator's promises leave no excuse.
 */
bool model_has_room(struct alloc_model *m, unsigned order, node_t node);

/* What the model knows, for people: runs of blocks alike. */
void model_print(const struct alloc_model *m);

/* Rings drained: does every block record agree with the model? What differs is said. */
bool model_agrees(struct alloc_model *m);
