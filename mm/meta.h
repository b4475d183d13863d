/*
 * META: blocks that hold frames for struct pages and page tables, so that describing memory never depends on pages that
 * are themselves described.
 *
 *   META block   [frame 0][frame 1] ... [frame 511]     used map, gated map, lots of the gated by tag
 *
 * Kinds, never mixed: LONG for what lives long (heads of huge pages, tables, block records, META's own maps) and
 * TAILS for the private struct pages of split blocks; lowest block first, so that high ones empty out. MEMMAP is the block
 * that holds the struct pages of a mapped section: what HVO frees there waits for that section's restore, and serves
 * as tails elsewhere only when nothing else is left, because a section whose memmap others use cannot be closed.
 *
 * A frame that was mapped in the vmemmap is *gated* when it is freed: it waits in the second map, and in the node's queue
 * (meta_gate.h), until shootdown_done() has reached its tag, because until then a CPU may still write through a stale translation.
 *
 * Frames are reserved before the work that needs them begins, so nothing fails half way. META_EMERGENCY frames of kind
 * LONG are left to those who make META grow: opening a section, a new block's maps.
 *
 * Locks: node->meta.lock, taken inside; ranks above zone->lock.
 */
#pragma once

#include "mm/zone.h"

enum { META_EMERGENCY = 24 };

/*
 * Make `count` frames of `kind` available to meta_take(), growing META if need be: takes zone locks, may open
 * sections, start a round, or wait for the CPU that grows it (never if this CPU grows META itself). Caller holds no lock. 0, or -ENOMEM with nothing reserved.
 */
int meta_reserve(struct node *node, enum meta_kind kind, u64 count);

/* The same from what is there: -ENOMEM instead of growing. Any lock of lower rank may be held. */
int meta_reserve_now(struct node *node, enum meta_kind kind, u64 count);

/* The same for those who make META grow: the emergency frames too. */
int meta_reserve_emergency(struct node *node, u64 count);

void meta_unreserve(struct node *node, enum meta_kind kind, u64 count);

/* Frames for private struct pages: TAILS, or in need MEMMAP. *kind says which were reserved. As meta_reserve(). */
int meta_reserve_tails(struct node *node, u64 count, enum meta_kind *kind);

/* One reserved frame, contents undefined. Never fails. */
pfn_t meta_take(struct node *node, enum meta_kind kind);

/* `count` of them in one lock cycle. */
void meta_take_many(struct node *node, enum meta_kind kind, pfn_t *pfn, unsigned count);

/* The same, from this META block if it has one free, of the same node and kind. */
pfn_t meta_take_from(struct node *node, enum meta_kind kind, u32 index);

/* `count` contiguous zeroed frames of kind LONG, not reserved before. PFN_NONE if there are none. */
pfn_t meta_take_contiguous(struct node *node, unsigned count);

/* Give a frame back, to the META it came from. With tag 0 at once; else it is gated until that generation is done. */
void meta_give(struct mm *mm, pfn_t pfn, u64 tag);

/* `count` of them, those that are PFN_NONE left out, under one tag. */
void meta_give_many(struct mm *mm, const pfn_t *pfn, unsigned count, u64 tag);

/*
 * End of a batch: release gated frames whose generation is done, bring the rest under the node's bound (max(512 frames, 1/256 of
 * the node), with a round if need be) and give blocks back that META no longer needs. No lock held.
 */
void meta_settle(struct node *node);

/* Release gated frames whose generation is done: no round, no wait. */
void meta_release_done(struct node *node);

/* Release what is gated, with a round if anything is. No lock held. */
void meta_flush_gated(struct node *node);

/*
 * A block that the caller owns, state META already, becomes part of the node's META, its first `used` frames in use.
 * One of kind MEMMAP is marked BLOCK_MEMMAP as long as it is. Its maps are kept in META frames. 0 or -ENOMEM.
 */
int meta_add_block(struct node *node, u32 index, enum meta_kind kind, unsigned used);

/*
 * Take a META block out again, whatever kind: 0 if exactly `own` of its frames are in use besides gated ones, else -EBUSY with
 * nothing changed. Frames still gated go with the block, so the caller completes a round before it uses any. The caller
 * owns the block afterwards.
 */
int meta_remove_block(struct node *node, u32 index, unsigned own);

/*
 * Start-up: the 2 MiB at `phys`, zeroed and reserved by the caller, become the node's first META block. Its first frames hold its own
 * maps and, if its GiB has none yet, the block records. False only if that cannot be.
 */
bool meta_init_node(struct node *node, phys_t phys);

/*
 * For audits: blocks, frames in use, gated and free of each kind, counted from lists and maps into the counters of `walked`. False if
 * blocks are not in order of address, the count of unused ones is wrong, or gated frames are not in the queue as they should be.
 */
bool meta_walk(const struct node *node, struct meta *walked);
