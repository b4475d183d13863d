/*
 * struct page: 64 bytes that describe one 4 KiB frame, one cache line each, in the vmemmap.
 *
 *   vmemmap window   [page 0][page 1] ... [page 511][page 512] ...
 *                    512 of them (8 frames) per 2 MiB block
 *
 * A struct page may not exist: frames of a BARE or metadata block have none, and 7 of the 8 frames
 * that would describe a HUGE block are one shared read-only page (mm/memmap/block_state.c). Code
 * that is not sure whether a struct page exists uses page_peek().
 *
 * compound_head is a mask: head = address & head_mask. A page that is not a tail has all ones, so
 * page_head() has no branch. All tails of one order are the same 64 bytes, and therefore one
 * read-only page can stand for every tail there is (Song, "hugetlb: free some vmemmap pages", and
 * the 2026 successor that stores masks). The mask needs the window aligned to the struct pages of
 * the largest page: 16 MiB for 1 GiB.
 */
#pragma once

#include <arch/atomic.h>
#include <arch/memory.h>

#include "kernel/lib/types.h"

enum page_flags {
	/* head of a free chunk of order 0..8 on its zone's list; zone->lock */
	PAGE_BUDDY = 1 << 0,
	PAGE_PCP = 1 << 1,      /* on a per-CPU list */
	PAGE_COMPOUND = 1 << 2, /* head of a multi-page allocation */
	PAGE_TAIL = 1 << 3,     /* one of its tails */
	PAGE_RESERVED = 1 << 4, /* not RAM, or firmware's, or the image: never allocated */
	PAGE_BOOT = 1 << 5,     /* given out by memblock; freeing it is an ordinary free */
	PAGE_HUGETLB = 1 << 6,  /* head of a page that belongs to a pool */
	/* head whose tails are the shared page; set before any tail is remapped */
	PAGE_OPTIMISED = 1 << 7,
	/* head of a page in use that its holder can move; `mover` says how (migrate.h) */
	PAGE_MOVABLE = 1 << 8,
	PAGE_BAD = 1 << 9, /* known to be bad: withheld for good (bad_frames.h) */
	/*
	 * one mapping of page_map(): three bits of a head count the mappings, and each mapping has
	 * a reference
	 */
	PAGE_MAPPING = 1 << 10,
	PAGE_MAPPINGS = 7 << 10
};

struct page_mover;

struct page {
	u64 head_mask;
	union {
		struct {
			union {
				struct {
					u16 flags;
					/* of the chunk or allocation that this page heads */
					u8 order;
					u8 zone; /* index in its mm */
				};
				u32 kind; /* flags, order and zone as one word: see page_kind() */
			};
			u32 refcount;
		};
		u64 state; /* kind and refcount as one word: see page_state() */
	};
	union {
		/* links of the free list of its order and type, while PAGE_BUDDY */
		struct page *next;
		const struct page_mover *mover; /* while PAGE_MOVABLE */
	};
	union {
		struct page *prev;
		u64 held_since; /* while allocated, debug.page_owner=on: ns since start */
	};
	u64 owner; /* debug.page_owner=on: the present holder, or the last one (page_owner.h) */
	/*
	 * the holder's, undefined until it writes them; while the page is free and
	 * debug.page_owner=on, the last word says which code freed it
	 */
	u64 private[3];
};

_Static_assert(sizeof(struct page) == 64, "a struct page is one cache line");

/*
 * A chain of pages that one holder has: private[0] of each leads to the next, so that it takes no
 * memory of its own. NULL is the empty chain. Any context; the holder's alone.
 *
 * Make `page` the first of the chain.
 */
static inline void page_chain_push(struct page **chain, struct page *page)
{
	page->private[0] = (u64)(virt_t)*chain;
	*chain = page;
}

/* Take the first page off the chain. Returns NULL if it is empty. */
static inline struct page *page_chain_pop(struct page **chain)
{
	struct page *page = *chain;

	if (page)
		*chain = (struct page *)(virt_t)page->private[0];
	return page;
}

enum {
	PAGE_STRUCT_SHIFT = 6,
	BLOCK_ORDER = 9,
	GIGA_ORDER = 18,
	BLOCK_FRAMES = 1 << BLOCK_ORDER,
	GIB_BLOCKS = 512,
	SECTION_BLOCKS = 64,
	GIB_SECTIONS = GIB_BLOCKS / SECTION_BLOCKS,
	BLOCK_SHIFT = PAGE_SHIFT + BLOCK_ORDER,
	STRUCTS_PER_FRAME = 64,
	MEMMAP_FRAMES_PER_BLOCK = BLOCK_FRAMES / STRUCTS_PER_FRAME,
	MAX_ORDER = GIGA_ORDER,
	/* free orders whose lists go through struct pages: 0..8 */
	PAGE_ORDERS = BLOCK_ORDER,
	BLOCK_ORDERS = GIGA_ORDER - BLOCK_ORDER + 1, /* and through the block table: 9..18 */
};

static inline u64 order_pages(unsigned order)
{
	return 1ULL << order;
}

/* Number of blocks of a run or page of `order`, 9 or more. */
static inline u32 order_blocks(unsigned order)
{
	return 1u << (order - BLOCK_ORDER);
}

/*
 * Flags, order and zone in one load and one store. The buddy looks at a neighbour that may be
 * changing hands at this moment, and must see either its old or its new contents, never a mixture.
 */
struct page_kind {
	u16 flags;
	u8 order, zone;
};

static inline struct page_kind kind_of(u32 kind)
{
	return (struct page_kind){
		.flags = (u16)kind, .order = (u8)(kind >> 16), .zone = (u8)(kind >> 24)};
}

static inline struct page_kind page_kind(const struct page *page)
{
	return kind_of(atomic_load_relaxed(&page->kind));
}

/* A CPU that loads the kind with acquire sees what was written before this store. */
static inline void page_set_kind(struct page *page, u16 flags, unsigned order)
{
	atomic_store_release(&page->kind, (u32)flags | (u32)order << 16 |
						  (u32)atomic_load_relaxed(&page->zone) << 24);
}

/* Value of `state`: the fast paths compare a page with it, or write it, in one access. */
static inline u64 page_state(u16 flags, unsigned order, u8 zone, u32 references)
{
	return (u64)references << 32 | (u32)flags | (u32)order << 16 | (u32)zone << 24;
}

/* The two halves of a `state` that was read once. */
static inline struct page_kind state_kind(u64 state)
{
	return kind_of((u32)state);
}

static inline u32 state_references(u64 state)
{
	return (u32)(state >> 32);
}

/* Number of mappings of page_map() that a page has. */
static inline u32 state_mappings(u64 state)
{
	return ((u32)state & PAGE_MAPPINGS) / PAGE_MAPPING;
}

/*
 * May the holder of a page in use be asked to move it? A page that page_map() has mapped stays
 * where it is. `flags` are those of its head.
 */
static inline bool page_flags_can_move(u32 flags)
{
	return (flags & (PAGE_MOVABLE | PAGE_MAPPINGS)) == PAGE_MOVABLE;
}

/* One reference, as an increment of `state`. */
#define PAGE_REFERENCE (1ULL << 32)

/*
 * Drop a reference to a head. Returns `state` as it was just before, and the caller decides on that
 * value alone:
 *
 * - 2 references or more: another CPU may drop the last one at once, so the caller must not read
 *   anything of the page.
 * - 1: the page is the caller's alone, to be sent where it belongs (page_put_head() handles this
 *   and the case above).
 * - 0: there was no reference to drop.
 */
static inline u64 page_drop(struct page *head)
{
	return atomic_fetch_sub(&head->state, PAGE_REFERENCE);
}

/* Take back a reference that was dropped by mistake. */
static inline void page_undrop(struct page *head)
{
	atomic_fetch_add(&head->state, PAGE_REFERENCE);
}

/* Head of the page that this struct page belongs to: itself, unless it is a tail. */
static inline struct page *page_head(const struct page *page)
{
	return (struct page *)((virt_t)page & page->head_mask);
}

/*
 * head_mask of the tails of an allocation of `order`. For order 0, the mask of a page that is not a
 * tail.
 */
static inline u64 head_mask_of(unsigned order)
{
	return order == 0 ? ~0ULL : ~((order_pages(order) << PAGE_STRUCT_SHIFT) - 1);
}

/*
 * Start loading the cache line of a page that will be written soon. Harmless if the page does not
 * exist.
 */
static inline void page_prefetch(const struct page *page)
{
	__builtin_prefetch(page, 1);
}

/* The frame that a struct page describes, in whichever window the struct page lies. */
static inline pfn_t page_to_pfn(const struct page *page)
{
	return (((virt_t)page - VMEMMAP_BASE) % VMEMMAP_WINDOW_SIZE) >> PAGE_STRUCT_SHIFT;
}
