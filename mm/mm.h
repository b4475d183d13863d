/*
 * The memory API of Ashlar: what a program linked to this kernel uses.
 *
 * Context: unless a comment says otherwise, any CPU, interrupts on or off, no lock held; not from interrupt handlers. Out of memory
 * is an ordinary return value. Counts are in pages of the size named; addresses in bytes.
 */
#pragma once

#include "kernel/types.h"

struct page;
struct mm;

/* What the holder will do with a page: decides which block it comes from. */
enum page_use {
	USE_UNMOVABLE,   /* kernel objects: never moved */
	USE_MOVABLE,     /* holder registered a way to move it */
	USE_RECLAIMABLE, /* holder can give it back when asked */
};

enum page_request {
	PAGE_ZERO = 1 << 0,    /* cleared */
	PAGE_NOFLUSH = 1 << 1, /* caller holds a lock: NULL instead of a shootdown round or a wait */
	PAGE_NODE = 1 << 2,    /* this node or nothing */
	PAGE_DMA32 = 1 << 3,   /* below 4 GiB */
};

/*
 * 2^order contiguous 4 KiB pages, naturally aligned, as one compound page: refcount 1, page_head() of each is the
 * first. Orders 0..9 and 18. `node` is where to look first (NODE_NONE: this CPU's). NULL if there is none.
 */
struct page *page_alloc(unsigned order, enum page_use use, unsigned request, node_t node);

/*
 * Give it back. `page` is the head, its refcount is 1. Freeing what is not allocated, a tail or with references left is a caught bug: panic
 * with the page named.
 */
void page_free(struct page *page);

/* References. page_put() frees at zero. page_try_get() fails on a free page or a tail. */
void page_get(struct page *page);
void page_put(struct page *page);
bool page_try_get(struct page *page);

/* Frame, address in the direct map and order of a page; page of a frame (which must be allocated: else use page_peek). */
pfn_t page_pfn(const struct page *page);
void *page_address(const struct page *page);
unsigned page_order(const struct page *page);
struct page *pfn_to_page(pfn_t pfn);

/*
 * Copy of the struct page of any frame, if it has one: never faults, whatever changes meanwhile. Any context, NMI included.
 */
bool page_peek(pfn_t pfn, struct page *copy);

/* Memory by owner, in 4 KiB frames. Together they are all of RAM (mm_account() proves it). */
struct mm_usage {
	u64 ram, free, unopened, per_cpu, pool_free, in_use, meta, gated, transit, bad, reserved;
	u64 memmap_bytes; /* struct pages and their tables in use */
};
void mm_usage(struct mm_usage *usage);

/*
 * A page mapped once more, by leaves of `leaf` bytes (4K, 2M or 1G, at most the page's size), readable and writable: to see what the
 * page size costs. page_unmap() takes it away again, on every CPU, and must come before page_free(). NULL for lack of memory, an
 * impossible `leaf`, or lack of addresses: each mapping uses up 2 GiB of them for good, and there are 15 TiB. One CPU at a time.
 */
void *page_map(struct page *page, u64 leaf);
void page_unmap(void *address);

/* Device registers, uncached. NULL for lack of memory or addresses. One CPU at a time. */
void *mmio_map(phys_t phys, u64 size);
void mmio_unmap(void *address, u64 size);

/* Huge page pools: pool.h. */
