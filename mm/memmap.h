/*
 * Writing struct pages: whole frames of them, in their final state, one pass, through the direct map, before any
 * translation shows them.
 */
#pragma once

#include "mm/zone.h"

/* `count` pages of their own, free or about to be: flags, refcount and links clear. */
void memmap_init_pages(struct page *pages, u64 count, u8 zone);

/* The same for many that will not be used soon: past the caches. The caller's fence_store_nt() comes before anybody is shown them. */
void memmap_stream_pages(struct page *pages, u64 count, u8 zone);

/* The same as one struct page, made once and copied `count` times. */
void memmap_copy_pages(struct page *pages, u64 count, u8 zone);

/*
 * How the struct pages of a mapped section are made and its free blocks given to the buddy:
 *
 *   plain      Linux's deferred_init_memmap(), before and after S1: each struct page by itself, in the cache; memory is freed in
 *              pieces of MAX_ORDER, 4 MiB, each with a turn at the zone's lock
 *   template   the same with one struct page copied (Li, "mm: device memmap by template copying", 2026-06)
 *   stream     ours: past the caches, and all neighbouring blocks of the section in one turn
 *
 * write() fills `count` struct pages of free frames; the opener's fence_store_nt() follows.
 */
struct memmap_make {
	const char *name;
	void (*write)(struct page *pages, u64 count, u8 zone);
	u32 step; /* blocks freed in one turn, at borders of as many */
};

enum { MAKE_PLAIN, MAKE_TEMPLATE, MAKE_STREAM, MAKE_STEP_ORDER = 10 };
extern const struct memmap_make memmap_makes[]; /* ends with a name of NULL */

/* One frame: the head of a huge page of `order`, frozen (refcount 0) as pools and free lists have it, and its first 63 tails. */
void memmap_init_head_frame(struct page *frame, unsigned order, u8 zone);

/* One frame of 64 tails of `order`: the page that all tails share. */
void memmap_init_tail_frame(struct page *frame, unsigned order, u8 zone);

/* In place: make `page` the head of a compound page of `order`, every tail written. refcount 1. */
void memmap_form_compound(struct page *page, unsigned order);

/* The same for a single page whose zone is known: two stores to one line, which need not be here yet. */
static inline void memmap_form_single(struct page *page, u8 zone)
{
	page->head_mask = head_mask_of(0);
	atomic_store_release(&page->state, page_state(0, 0, zone, 1));
}

/* What a frame is, by the frozen boot ranges. */
enum frame_kind { FRAME_HOLE, FRAME_RESERVED, FRAME_BAD, FRAME_BOOT, FRAME_FREE };
enum frame_kind memmap_frame_kind(const struct mm *mm, pfn_t pfn, u8 *zone);

/* What a block of an unopened section will be, and its zone (that of its first RAM). */
enum block_plan { PLAN_ABSENT, PLAN_FREE, PLAN_BOOT, PLAN_MIXED };
enum block_plan memmap_block_plan(const struct mm *mm, u32 index, u8 *zone);

/* Zone that owns a frame of RAM of this node. */
u8 memmap_zone_of(const struct mm *mm, pfn_t pfn, node_t node);
