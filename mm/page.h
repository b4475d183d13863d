/*
 * struct page: 64 bytes that describe one 4 KiB frame, one cache line each, in the vmemmap.
 *
 *   vmemmap window   [page 0][page 1] ... [page 511][page 512] ...      512 of them (8 frames) per 2 MiB block
 *
 * A struct page may not exist: frames of a BARE or META block have none, and 7 of the 8 frames that would describe a
 * HUGE block are one shared read-only page (mm/block_state.c). Who is not sure uses page_peek().
 *
 * compound_head is a mask: head = address & head_mask. A page of its own has all ones, so page_head() has no branch,
 * and all tails of one order are the same 64 bytes, which is what lets one read-only page stand for every tail there
 * is (Song, "hugetlb: free some vmemmap pages", and the 2026 successor that stores masks). It needs the window aligned to the structs of the
 * largest page: 16 MiB for 1 GiB.
 */
#pragma once

#include <arch/atomic.h>
#include <arch/memory.h>
#include <arch/peek.h>

#include "kernel/types.h"

enum page_flags {
	PAGE_BUDDY = 1 << 0,    /* head of a free chunk of order 0..8 on its zone's list; zone->lock */
	PAGE_PCP = 1 << 1,      /* on a per-CPU list */
	PAGE_COMPOUND = 1 << 2, /* head of a multi-page allocation */
	PAGE_TAIL = 1 << 3,     /* one of its tails */
	PAGE_RESERVED = 1 << 4, /* not RAM, or firmware's, or the image: never allocated */
	PAGE_BOOT = 1 << 5,     /* given out by memblock; freeing it is an ordinary free */
	PAGE_HUGETLB = 1 << 6,  /* head of a page that belongs to a pool */
	PAGE_OPTIMISED = 1 << 7, /* head whose tails are the shared page; readers see it before any tail is remapped */
	PAGE_MOVABLE = 1 << 8,   /* head of a page in use that its holder can move: `mover` says how (migrate.h) */
	PAGE_BAD = 1 << 9,       /* named bad: kept out of use for good (bad_frames.h) */
	PAGE_MAPPING = 1 << 10,  /* one mapping of page_map(): three bits of a head count them, and each has a reference */
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
					u8 order; /* of the chunk or allocation this page heads */
					u8 zone;  /* index in its mm */
				};
				u32 kind; /* the three as one word: see page_kind() */
			};
			u32 refcount;
		};
		u64 state; /* kind and references as one word: see page_state() */
	};
	union {
		struct page *next;              /* free list of its order and type, while PAGE_BUDDY */
		const struct page_mover *mover; /* while PAGE_MOVABLE */
	};
	union {
		struct page *prev;
		u64 held_since; /* while allocated, page_owner=on: ns since start */
	};
	u64 owner;      /* page_owner=on: who holds it, or held it last (page_owner.h) */
	u64 private[3]; /* the holder's; while it is free and page_owner=on, the last is who freed it */
};

_Static_assert(sizeof(struct page) == 64, "a struct page is one cache line");

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
	PAGE_ORDERS = BLOCK_ORDER,                    /* free orders kept in struct pages: 0..8 */
	BLOCK_ORDERS = GIGA_ORDER - BLOCK_ORDER + 1,  /* and in the block table: 9..18 */
};

static inline u64 order_pages(unsigned order)
{
	return 1ULL << order;
}

/* Blocks of a run or page of `order`, 9 or more. */
static inline u32 order_blocks(unsigned order)
{
	return 1u << (order - BLOCK_ORDER);
}

/*
 * Flags, order and zone in one load and one store: the buddy looks at a neighbour that may just now be changing hands,
 * and must see what it was or what it is.
 */
struct page_kind {
	u16 flags;
	u8 order, zone;
};

static inline struct page_kind kind_of(u32 kind)
{
	return (struct page_kind){.flags = (u16)kind, .order = (u8)(kind >> 16), .zone = (u8)(kind >> 24)};
}

static inline struct page_kind page_kind(const struct page *page)
{
	return kind_of(atomic_load_relaxed(&page->kind));
}

static inline void page_set_kind(struct page *page, u16 flags, unsigned order)
{
	atomic_store_relaxed(&page->kind, (u32)flags | (u32)order << 16 | (u32)atomic_load_relaxed(&page->zone) << 24);
}

/* The same, and whoever sees it with acquire sees what was written before it. */
static inline void page_set_kind_release(struct page *page, u16 flags, unsigned order)
{
	atomic_store_release(&page->kind, (u32)flags | (u32)order << 16 | (u32)atomic_load_relaxed(&page->zone) << 24);
}

/* Value of `state`: what the fast paths compare a page with, and write, in one access. */
static inline u64 page_state(u16 flags, unsigned order, u8 zone, u32 references)
{
	return (u64)references << 32 | (u32)flags | (u32)order << 16 | (u32)zone << 24;
}

/* The halves of a `state` that was read once. */
static inline struct page_kind state_kind(u64 state)
{
	return kind_of((u32)state);
}

static inline u32 state_references(u64 state)
{
	return (u32)(state >> 32);
}

/* How many mappings of page_map() a page has. */
static inline u32 state_mappings(u64 state)
{
	return ((u32)state & PAGE_MAPPINGS) / PAGE_MAPPING;
}

/* One reference, as a step of `state`. */
#define PAGE_REFERENCE (1ULL << 32)

/*
 * Drop a reference to a head. Returns `state` as it was just before, and whatever follows is decided on that: if it says 2 references or
 * more, another CPU may drop the last one at once, so nothing of the page may be read; with 1 the page is the caller's alone, to be
 * sent where it belongs (page_put_head() does both); with 0 there was none to drop.
 */
static inline u64 page_drop(struct page *head)
{
	return atomic_fetch_sub(&head->state, PAGE_REFERENCE);
}

/* A reference dropped by mistake. */
static inline void page_undrop(struct page *head)
{
	atomic_fetch_add(&head->state, PAGE_REFERENCE);
}

/* Head of the page this struct belongs to: itself, unless it is a tail. */
static inline struct page *page_head(const struct page *page)
{
	return (struct page *)((virt_t)page & page->head_mask);
}

/* head_mask of the tails of an allocation of `order`; order 0: a page of its own. */
static inline u64 head_mask_of(unsigned order)
{
	return order == 0 ? ~0ULL : ~((order_pages(order) << PAGE_STRUCT_SHIFT) - 1);
}

/* It will be written soon: have its line on the way. Harmless for a page that does not exist. */
static inline void page_prefetch(const struct page *page)
{
	__builtin_prefetch(page, 1);
}

/* Frame a struct page describes, in whichever window it lies. */
static inline pfn_t page_to_pfn(const struct page *page)
{
	return (((virt_t)page - VMEMMAP_BASE) % VMEMMAP_WINDOW_SIZE) >> PAGE_STRUCT_SHIFT;
}
