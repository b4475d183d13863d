/*
 * Metadata memory: blocks that hold frames for struct pages and page tables, so that describing
 * memory never depends on pages that are themselves described.
 *
 *   metadata block   [frame 0][frame 1] ... [frame 511]
 *                    used map, gated map, lots of the gated frames by tag
 *
 * LASTING is for frames that live as long as the machine or an open section: tables, block records,
 * metadata memory's own maps, private struct pages of boot memory, and the few heads of 1 GiB
 * pages. Its blocks lie beside the node's boot memory, and are taken at boot for all sections that
 * the node can have, so that no other GiB holds such a frame. HEADS is for the heads of 2 MiB
 * pages, TAILS for the private struct pages of split blocks. Their blocks become empty when free
 * pages give up their struct pages (section_close.h), and then go back. All kinds use the lowest
 * block first, so that high blocks empty out. Heads also use frames that LASTING will not need, so
 * that a small machine needs no block for them.
 *
 * MEMMAP is a block that holds the struct pages of a mapped section. Frames that HVO frees in such
 * a block wait for the restore of that section. They serve as tails elsewhere only when nothing
 * else is left, because a section whose memmap holds struct pages of other sections cannot be
 * closed.
 *
 * A frame that was mapped in the vmemmap is *gated* when it is freed. It waits in the second map
 * and in the node's queue (meta_gate.h) until shootdown_reusable() has reached its tag, because
 * until then a CPU may still have a stale, writable translation.
 *
 * Callers reserve frames before they begin the work that needs them, so no work fails half way.
 * META_EMERGENCY frames of kind LASTING are left to the code that makes metadata memory grow:
 * opening a section, and a new block's maps.
 *
 * Locks: node->meta.lock, taken by the functions here; it ranks above zone->lock.
 */
#pragma once

#include "mm/memmap/zone.h"

enum { META_EMERGENCY = 24 };

/*
 * Make `count` frames of `kind` available to meta_take(), growing metadata memory if necessary.
 * Growing may take zone locks, open sections, start a round, or wait for another CPU that grows
 * this metadata memory (never if this CPU is growing metadata memory itself). The caller holds no
 * lock. Returns 0, or -ENOMEM with nothing reserved.
 */
int meta_reserve(struct node *node, enum meta_kind kind, u64 count);

/*
 * Reserve `count` frames of `kind` that metadata memory has now: -ENOMEM instead of growing. Any
 * lock of lower rank may be held.
 */
int meta_reserve_now(struct node *node, enum meta_kind kind, u64 count);

/*
 * Reserve `count` frames of kind MEMMAP, if so many are free in metadata block `index`, which the
 * caller keeps from going back. If another CPU takes them first, the caller gets frames of other
 * blocks.
 */
int meta_reserve_in(struct mm *mm, u32 index, u64 count);

/* meta_reserve_now() for code that makes metadata memory grow: emergency frames serve it, too. */
int meta_reserve_emergency(struct node *node, u64 count);

void meta_unreserve(struct node *node, enum meta_kind kind, u64 count);

/* Reserved heads for which only LASTING frames are left. Metadata lock held. */
u64 meta_borrowed(const struct meta *meta);

/* The kind of the frame for the head of a page of this order. */
static inline enum meta_kind meta_kind_of_head(unsigned order)
{
	return order == GIGA_ORDER ? META_LASTING : META_HEADS;
}

/*
 * Could meta_reserve_now() reserve `count` frames at this moment? With 0 and kind LASTING: are the
 * emergency frames complete? Any lock of lower rank may be held.
 */
bool meta_has(struct node *node, enum meta_kind kind, u64 count);

/*
 * Reserve frames for private struct pages: TAILS, or MEMMAP if metadata memory cannot supply TAILS.
 * *kind says which kind was reserved. Otherwise as meta_reserve().
 */
int meta_reserve_tails(struct node *node, u64 count, enum meta_kind *kind);

/* Take one reserved frame, contents undefined. Never fails. */
pfn_t meta_take(struct node *node, enum meta_kind kind);

/*
 * Take `count` reserved frames in one lock cycle: from metadata block `index`, as far as it is of
 * this node and kind and has free frames; the rest from any block. BLOCK_NONE: all from any block.
 */
void meta_take_many(struct node *node, enum meta_kind kind, u32 index, pfn_t *pfn, unsigned count);

/*
 * Take up to `count` > 0 reserved frames of one word of a block's map, as bits of it; bit 0 stands
 * for frame *first. The caller calls check_frames_reused() for each before it writes to it.
 */
u64 meta_take_word(struct node *node, enum meta_kind kind, unsigned count, pfn_t *first);

/*
 * Take `count` contiguous frames of kind LASTING that were not reserved before, contents undefined.
 * PFN_NONE if there are none.
 */
pfn_t meta_take_run(struct node *node, unsigned count);

/*
 * Give a frame back to the metadata memory that it came from. With tag 0 it is free at once;
 * otherwise it is gated until the generation `tag` is done.
 */
void meta_give(struct mm *mm, pfn_t pfn, u64 tag);

/* Give `count` frames back under one tag, skipping entries that are PFN_NONE. */
void meta_give_many(struct mm *mm, const pfn_t *pfn, unsigned count, u64 tag);

/*
 * End of a batch. Releases gated frames whose generation is done, brings the rest below the node's
 * bound (max(512 frames, 1/256 of the node)), with a round if necessary, and gives back blocks that
 * metadata memory no longer needs. Frames for which quiet CPUs must flush stay above the bound
 * until these CPUs are asked (shootdown_ask_quiet()). No lock held.
 */
void meta_end_batch(struct node *node);
void meta_end_batch_all(struct mm *mm); /* of all nodes */

/* A round for all gated frames, unless there was one. Those that quiet CPUs hold back stay. */
void meta_wait_gated(struct node *node);

/* Release gated frames whose generation is done: no round, no wait. */
void meta_release_done(struct node *node);

/*
 * Release all gated frames, with a round if there are any. Quiet CPUs that hold some back are
 * interrupted. No lock held.
 */
void meta_flush_gated(struct node *node);

/*
 * For audits: count blocks, frames in use, gated frames, and free frames of each kind from the
 * lists and maps into the counters of `walked`. False if blocks are not in order of address, a
 * count of unused blocks is wrong, or the queue does not hold exactly the gated frames.
 */
bool meta_walk(const struct node *node, struct meta *walked);
