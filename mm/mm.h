/*
 * The memory API of Ashlar: what a program linked to this kernel uses.
 *
 * Each call names the context that it is for; made in another one it ends the machine, in every build, and says why (kernel/context.h):
 *
 *   ordinary   no lock held; not in an interrupt handler, in a function that another CPU called (call_cpus()), in an NMI
 *   locked     the same, but locks may be held
 *   handler    anywhere but in NMIs and machine checks (not checked)
 *   any        anywhere
 *
 * It may be any CPU, with interrupts on or off. Out of memory is an ordinary return value. Counts are in pages of the size named;
 * addresses in bytes.
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
	PAGE_NODE = 1 << 2,    /* this node or nothing; nothing, too, if there is no such node */
	PAGE_DMA32 = 1 << 3,   /* below 4 GiB */
};

/*
 * 2^order contiguous 4 KiB pages, naturally aligned, as one compound page: refcount 1, page_head() of each is the
 * first. Orders 0..9 and 18. `node` is where to look first (NODE_NONE, or one that does not exist: this CPU's). NULL if there is none.
 * Context: ordinary; locked with PAGE_NOFLUSH.
 */
struct page *page_alloc(unsigned order, enum page_use use, unsigned request, node_t node);

/*
 * Give it back. `page` is the head, its refcount is 1, and nobody else can get a reference: callers that share a page use page_put().
 * Freeing what is not allocated, a tail, mapped by page_map() or with references left is a caught bug: panic with the page named.
 * Context: ordinary.
 */
void page_free(struct page *page);

/*
 * `count` single pages (order 0) into `pages`, as page_alloc() would give them, for a fraction of the cost each. Returns how
 * many there were: fewer when memory ends, and those are the caller's.
 * Context: ordinary; locked with PAGE_NOFLUSH.
 */
size_t page_alloc_bulk(enum page_use use, unsigned request, node_t node, struct page **pages, size_t count);

/* page_free() of each, any order. Context: ordinary. */
void page_free_bulk(struct page *const *pages, size_t count);

/* One reference more. page_try_get() fails on a free page or a tail. Context: handler. */
void page_get(struct page *page);
bool page_try_get(struct page *page);

/*
 * One reference less. The last one frees the page, or gives a pool's back to its pool (pool.h). The caller looks at nothing of the page
 * afterwards. Context: ordinary.
 */
void page_put(struct page *page);

/*
 * Frame, address in the direct map and order of a page; page of a frame (which must be allocated: else use page_peek()).
 * Context: handler.
 */
pfn_t page_pfn(const struct page *page);
void *page_address(const struct page *page);
unsigned page_order(const struct page *page);
struct page *pfn_to_page(pfn_t pfn);

/*
 * How the holder of a page moves it elsewhere, so that memory can be found in one piece. Pages without a mover stay where they are.
 *
 * move(): everything that refers to `from` is to refer to `to`: same order, allocated, contents undefined, mover set. The holder
 * takes its own lock, sees whether `from` is still its own and nobody uses it just now, copies (page_copy()), changes its
 * references, and returns 0: `to` is its own then, with its one reference, and `from` is no longer, reference
 * included. Any other value: nothing has changed, `to` goes back. The caller holds a reference to `from`, so its struct page
 * is good whatever happened, and no lock; the holder may allocate, wait and start rounds, but not free `from`.
 * Called on any CPU, not from interrupt handlers, possibly for a page that was just given back: then refuse.
 *
 * A movable page is given back by page_free() or page_put(), even while it is being looked at: the last reference frees it.
 */
struct page_mover {
	const char *name;
	int (*move)(struct page *from, struct page *to);
};

/*
 * `page`: head of a page in use, of this caller. Until it is freed. Allocate it with USE_MOVABLE.
 * Context: handler.
 */
void page_set_movable(struct page *page, const struct page_mover *mover);

/* Contents and private words of a page to another of the same order. Context: handler. */
void page_copy(struct page *to, const struct page *from);

/*
 * A given range of frames, whole 2 MiB blocks: what is in use there is moved elsewhere, then all of it is the caller's, as single pages with
 * one reference each. 0; -EINVAL: no frames, not whole blocks, or not all RAM of one zone; -EBUSY: something cannot be moved, or is being
 * used for another range; -EAGAIN: another CPU is opening or closing memory in it, and takes long; -ENOMEM. On failure everything is as it was, but what was moved stays moved. free: the whole range again,
 * or parts of it that are whole blocks, or page by page with page_free(). Takes long.
 * Context: ordinary.
 */
int contig_alloc_range(pfn_t first, u64 frames);
void contig_free_range(pfn_t first, u64 frames);

/*
 * 2^order frames wherever room can be made, order 10..17: the first of them, single pages as above, to be freed as such a range. Other
 * orders: the same as page_alloc() with USE_MOVABLE, a compound page; order 18 makes room too. NULL if there is none.
 * Context: ordinary.
 */
struct page *contig_alloc(unsigned order, node_t node);

/*
 * Keep a range for such requests (CMA): until then only movable pages live there. Errors as for contig_alloc_range().
 * Context: ordinary.
 */
int contig_declare_cma(pfn_t first, u64 frames);

/*
 * Copy of the struct page of any frame, if it has one: never faults, whatever changes meanwhile.
 * Context: any.
 */
bool page_peek(pfn_t pfn, struct page *copy);

/*
 * This frame of RAM is faulty: keep it out of use for good. 0: it is (or was already). -EBUSY: somebody has it; it is taken out when it
 * is freed, and its block is given to nobody else meanwhile. -EINVAL: not RAM, or firmware's; -ENOMEM, -EAGAIN: nothing was done. Bad
 * frames are counted as such; see bad_frames.h, and badram= for those known before the start. May wait for other CPUs.
 * Context: ordinary.
 */
int page_mark_bad(pfn_t pfn);

/*
 * Memory by owner, in 4 KiB frames. Together they are all of RAM (mm_account() proves it).
 * Context: handler.
 */
struct mm_usage {
	u64 ram, free, unopened, per_cpu, pool_free, in_use, meta, gated, transit, bad, reserved;
	u64 memmap_bytes; /* struct pages and their tables in use */
};
void mm_usage(struct mm_usage *usage);

/*
 * A page in use, named by its head, mapped once more, by leaves of `leaf` bytes (4K, 2M or 1G, at most the page's size), readable and
 * writable: to see what the page size costs. NULL for lack of memory, an impossible `leaf` (1 GiB on a CPU that cannot map that), a page
 * that has seven mappings, or lack of addresses: each mapping uses up 2 GiB of them for good, and there are 15 TiB. One CPU at a time.
 *
 * A mapping has a reference to its page. page_unmap(), with what page_map() returned, takes the mapping away on every CPU and drops the
 * reference. page_free() must come after it: until then it is a caught bug, as is unmapping what is not mapped; nothing is done, and the
 * frame and the mapping are named. page_put() may come before. A page is not moved while it is mapped.
 * Context: ordinary.
 */
void *page_map(struct page *page, u64 leaf);
void page_unmap(void *address);

/*
 * Device registers, uncached; <arch/mmio.h> reads and writes them. NULL for lack of memory or addresses, if no CPU has such a
 * physical address, or, which the log says, if part of it is RAM that neither firmware keeps nor badram= names. mmio_unmap() takes all
 * of one mapping away; unmapping anything else is a caught bug, and nothing is done. One CPU at a time.
 * Context: ordinary.
 */
volatile void __iomem *mmio_map(phys_t phys, u64 size);
void mmio_unmap(volatile void __iomem *address, u64 size);

/* ---- huge mappings ---- */

/*
 * Large zeroed memory in huge pages that appear when they are first touched, with what is around the touch in the cache. Addresses
 * of a mapping are its own; at least 1 GiB before and behind it is never mapped, so running off either end is caught.
 *
 * Touching is for ordinary code: not for interrupt handlers, and not while a lock is held. Pages come from the nearest node: from
 * the pool of their size (pool.h) as long as it has any, then from the page allocator.
 */
enum huge_flags {
	HUGE_POOL = 1 << 0,     /* pages of 2 MiB and 1 GiB come from the pools only */
	HUGE_RESERVE = 1 << 1,  /* and are promised now: no touch will find none. Implies HUGE_POOL */
	HUGE_FALLBACK = 1 << 2, /* where there is no page of the size, the next smaller size: 1 GiB, 2 MiB, 4 KiB */
	HUGE_POPULATE = 1 << 3, /* all pages now, by all idle CPUs */
};

/*
 * No page for a touch of `addr`. Runs on the CPU that touched, interrupts as they were there, no lock held. True: memory was made
 * free, try again. False: the program cannot go on; its run ends, as failed. It may also not return.
 */
typedef bool huge_exhausted_fn(void *ctx, void *addr);

struct huge_request {
	u64 size;       /* bytes, rounded up to whole pages */
	u64 page;       /* bytes of a page: 4 KiB, 2 MiB or 1 GiB */
	unsigned flags; /* enum huge_flags */
	u64 room;       /* addresses kept for huge_grow(), in bytes from the start; less than `size`: none in particular */
	huge_exhausted_fn *exhausted; /* NULL: as if it returned false */
	void *ctx;
};

/*
 * The first address, aligned to 1 GiB. NULL: no such page size (1 GiB pages without HUGE_FALLBACK on a CPU that cannot map them), no
 * addresses, not that many pages to promise, or to populate. huge_map() is the plain form.
 * Context: ordinary.
 */
void *huge_map_with(const struct huge_request *request);
void *huge_map(u64 size, u64 page, unsigned flags);

/*
 * Give all of it back, with one shootdown round however many pages there are. `addr` is what huge_map() returned. Nobody may touch
 * the mapping any more, or work on it with the calls below; a touch that comes too late is caught.
 * Context: ordinary.
 */
void huge_unmap(void *addr);

/*
 * For whole pages [addr, addr + size) of one mapping; other CPUs may touch them meanwhile. 0, or -EINVAL.
 *
 * populate: as if touched, by all idle CPUs; -ENOMEM with as many pages as there were.
 * release: pages go back, one round for all; touched again, they are zero. With HUGE_RESERVE they are promised anew: -ENOMEM if others
 * took them in between, then touching may find none.
 * Context: ordinary.
 */
int huge_populate(void *addr, u64 size);
int huge_release(void *addr, u64 size);

/*
 * What may be done with the whole mapping: pages there and pages to come. One round to take writing away, none to allow it.
 * Context: ordinary.
 */
enum huge_access { HUGE_READ_WRITE, HUGE_READ_ONLY };
int huge_protect(void *addr, enum huge_access access);

/*
 * Make it larger where it stands. 0; -ENOMEM: the addresses behind it are taken, or too few pages to promise; -EINVAL. One caller at a time.
 * Context: ordinary.
 */
int huge_grow(void *addr, u64 size);

/* Since boot; by page size 4 KiB, 2 MiB, 1 GiB where there are three. Context: handler. */
struct huge_usage {
	u64 mapped[3];    /* pages now */
	u64 faults[3];    /* touches and populating that brought a page */
	u64 zeroed;       /* of them: pages that were known to be zero and not cleared again */
	u64 waited;       /* touches that found another CPU at it */
	u64 exhausted;    /* that found no page */
	u64 tables_kept;  /* frames of upper page tables, kept for later mappings */
};
void huge_usage(struct huge_usage *usage);

/* Huge page pools: pool.h. */
