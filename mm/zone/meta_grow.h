/*
 * Metadata memory grows by whole blocks and gives blocks back. For metadata memory's and the
 * sections' code only.
 */
#pragma once

#include "mm/memmap/meta.h"

/*
 * Bring metadata memory nearer to `count` available frames: by releasing gated frames that are
 * done, by adding one block (free, or of a section opened for it), or, when no block is left, by a
 * round that frees the gated frames.
 *
 * One CPU at a time makes metadata memory grow, of any node. Others wait for it. Returns 0 if the
 * caller should look again, or -ENOMEM if nothing is left. A CPU that is growing this node's
 * metadata memory already opens no section. No lock held.
 */
int meta_grow(struct node *node, enum meta_kind kind, u64 count);

/*
 * Restore the emergency frames after some were used, unless another CPU is growing metadata memory.
 * No lock held.
 */
void meta_top_up(struct node *node);

/*
 * Free a block in state META that is in no list of metadata memory any more, or that was chosen to
 * hold a section's struct pages and will not. It is in transit until it is free. No lock held.
 */
void meta_leave_block(struct zone *zone, u32 index);

/* Give back blocks of which no frame is used, keeping some frames free. No lock held. */
void meta_trim(struct node *node);

/*
 * Give back all blocks of which no frame is used; the next one comes from beside the node's boot
 * memory. No lock held.
 */
void meta_trim_all(struct node *node);

/*
 * Add a block that the caller owns, already in state META, to the node's metadata memory with its
 * first `used` frames in use. A block of kind MEMMAP is marked BLOCK_MEMMAP as long as it belongs
 * to metadata memory. Its maps are kept in metadata frames. 0 or -ENOMEM.
 */
int meta_add_block(struct node *node, u32 index, enum meta_kind kind, unsigned used);

/*
 * Take a block of any kind out of metadata memory again. 0 if exactly `own` of its frames are in
 * use besides gated ones, and metadata memory's reservations can do without it; else -EBUSY with
 * nothing changed. Frames that are still gated go with the block, so the caller completes a round
 * before it uses any of them. The caller owns the block afterwards.
 */
int meta_remove_block(struct node *node, u32 index, unsigned own);

/*
 * Frames of kind LASTING that all sections of a GiB, and the blocks of metadata memory for it, may
 * ever need: 8 for block records, 8 for tables, the head of a page, and maps.
 */
enum { META_LASTING_PER_GIB = 20, META_BLOCKS_AT_BOOT_MAX = 16 };

/*
 * Blocks that hold `lasting` such frames, and some for other uses. Start-up must not take longer
 * with more RAM, so nodes of more than 400 GiB get the others when they need them, beside these as
 * long as there is room.
 */
static inline u64 meta_blocks_at_boot(u64 lasting)
{
	return MIN(DIV_ROUND_UP(lasting + 2 * META_EMERGENCY, BLOCK_FRAMES),
		   META_BLOCKS_AT_BOOT_MAX);
}

/*
 * Start-up: the blocks from `phys` on, as many as meta_blocks_at_boot(lasting) says, reserved by
 * the caller, become the node's first metadata blocks. The first frames of a block hold the maps
 * of all and, if its GiB has none yet, the block records; they are cleared here. The others are
 * cleared by the code that takes them. False only if a block could not be added.
 */
bool meta_init_node(struct node *node, phys_t phys, u64 lasting);
