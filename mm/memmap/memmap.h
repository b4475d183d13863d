/*
 * Writing struct pages: whole frames of them, in their final state, in one pass, through the direct
 * map, before any translation shows them.
 */
#pragma once

#include "mm/memmap/zone.h"

/* `count` struct pages of order 0, free or about to be: flags, refcount and links clear. */
void memmap_init_pages(struct page *pages, u64 count, u8 zone);

/*
 * memmap_init_pages() without the links and private words, which keep whatever the frame held
 * before: no code reads them before it has written them. For blocks of on-demand sections that
 * become small.
 */
void memmap_form_free(struct page *pages, u64 count, u8 zone);

/*
 * memmap_init_pages() for many struct pages that will not be used soon: the stores bypass the
 * caches. The caller must execute fence_store_nt() before any other CPU can find these pages.
 */
void memmap_stream_pages(struct page *pages, u64 count, u8 zone);

/*
 * How the struct pages of a mapped section are written and its free blocks given to the buddy:
 *
 *   plain      Linux's deferred_init_memmap(), before and after the memmap series (Jordan
 *              2020): each struct page by itself, in the cache; memory is freed in pieces of
 *              MAX_ORDER, 4 MiB, each with a turn at the zone's lock
 *   stream     ours: past the caches, and all neighbouring blocks of the section in one turn
 *
 * write() fills `count` struct pages of free frames. The CPU that opens the section executes
 * fence_store_nt() afterwards.
 */
struct memmap_make {
	const char *name;
	void (*write)(struct page *pages, u64 count, u8 zone);
	u32 step; /* blocks freed in one turn, at multiples of this number */
};

enum { MAKE_PLAIN, MAKE_STREAM, MAKE_STEP_ORDER = 10 };
extern const struct memmap_make memmap_makes[]; /* ends with a name of NULL */

/*
 * Write one frame: the head of a huge page of `order`, frozen (refcount 0) as pools and free lists
 * expect it, and the page's first 63 tails.
 */
void memmap_init_head_frame(struct page *frame, unsigned order, u8 zone);

/* Write one frame of 64 tails of `order`: the page that all tails share. */
void memmap_init_tail_frame(struct page *frame, unsigned order, u8 zone);

/*
 * Turn `page`, in place, into the head of a compound page of `order` with refcount 1, and write all
 * its tails.
 */
void memmap_form_compound(struct page *page, unsigned order);

/*
 * Turn `page` into a single page in use; `in_use` is its state (page_state()). It takes two stores
 * to one cache line, which need not have arrived yet.
 */
static inline void memmap_form_single(struct page *page, u64 in_use)
{
	page->head_mask = head_mask_of(0);
	atomic_store_release(&page->state, in_use);
}

/* Kind of a frame, according to the frozen boot ranges. */
enum frame_kind { FRAME_HOLE, FRAME_RESERVED, FRAME_BAD, FRAME_BOOT, FRAME_FREE };
enum frame_kind memmap_frame_kind(const struct mm *mm, pfn_t pfn, u8 *zone);

/*
 * End of the frames from `pfn` on, and below `end`, that have its kind and zone. [pfn, end) lies in
 * one section.
 */
pfn_t memmap_frames_alike(const struct mm *mm, pfn_t pfn, pfn_t end);

/* The state that opening will give a block, and the zone of the block's first RAM. */
enum block_plan { PLAN_ABSENT, PLAN_FREE, PLAN_BOOT, PLAN_MIXED };
enum block_plan memmap_block_plan(const struct mm *mm, u32 index, u8 *zone);

/* The zone that owns a frame of RAM of this node. */
u8 memmap_zone_of(const struct mm *mm, pfn_t pfn, node_t node);
