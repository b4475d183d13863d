/*
 * The memory API of Ashlar, for programs linked to this kernel.
 *
 * Each call names the context in which it may be made. A call made in any other context ends the
 * machine, in every build, with a message that says why (kernel/core/context.h). The contexts are:
 *
 *   ordinary   no lock held; not in an interrupt handler, in a function that another CPU called
 *              (call_cpus()), or in an NMI
 *   locked     not in an interrupt handler, a called function or an NMI; locks may be held
 *   handler    anywhere except in NMIs and machine checks (not checked)
 *   any        anywhere
 *
 * Calls may be made on any CPU, with interrupts on or off. Running out of memory is an ordinary
 * return value, and last_reason() says what ran out (kernel/core/reason.h). Counts are in pages of
 * the size named; addresses and sizes are in bytes.
 */
#pragma once

#include "kernel/lib/types.h"

struct page;
struct mm;

/* The use that the holder will make of a page. It decides which block the page comes from. */
enum page_use {
	USE_UNMOVABLE,   /* kernel objects; never moved */
	USE_MOVABLE,     /* the holder has registered a way to move it */
	USE_RECLAIMABLE, /* the holder can give it back */
};

enum page_request {
	PAGE_ZERO = 1 << 0, /* cleared */
	/* the caller holds a lock: return NULL instead of waiting or starting a shootdown round */
	PAGE_NOFLUSH = 1 << 1,
	PAGE_NODE = 1 << 2,  /* from `node` only; always fails if there is no such node */
	PAGE_DMA32 = 1 << 3, /* below 4 GiB */
};

/*
 * Allocate 2^order contiguous 4 KiB pages, naturally aligned, as one compound page with refcount 1.
 * page_head() of each of them is the first. `order` is 0..9 or 18. The search starts at `node`;
 * NODE_NONE, or a node that does not exist, means the node of this CPU. Returns NULL if there is no
 * such memory.
 *
 * Orders 9 and 18 are made in the mode that hvo= names while there is memory that this mode
 * accepts, and as hvo=on makes them after that. Context: ordinary; locked with PAGE_NOFLUSH.
 */
struct page *page_alloc(unsigned order, enum page_use use, unsigned request, node_t node);

/* The lowest order that holds so many bytes. */
static inline unsigned page_order_for(u64 bytes)
{
	unsigned order = 0;

	while (PAGE_SIZE << order < bytes)
		order++;
	return order;
}

/*
 * Free a page. `page` is the head, its refcount is 1, and nobody else can obtain a reference;
 * callers that share a page use page_put() instead. It is a caught bug to free a page that is not
 * allocated, is a tail, is mapped by page_map() or has other references. The machine then panics
 * (with debug.bad_free=keep it goes on, and nothing is freed), and the message names the page.
 * Context: ordinary.
 */
void page_free(struct page *page);

/*
 * Allocate `count` single pages (order 0) into `pages`, as page_alloc() would, at a fraction of the
 * cost for each. Returns how many were allocated. The number is less than `count` when memory runs
 * out, and the caller owns the pages it did get. Context: ordinary; locked with PAGE_NOFLUSH.
 */
size_t page_alloc_bulk(enum page_use use, unsigned request, node_t node, struct page **pages,
		       size_t count);

/* Call page_free() for each page, of any order. Context: ordinary. */
void page_free_bulk(struct page *const *pages, size_t count);

/* Take one more reference. page_try_get() fails on a free page or a tail. Context: handler. */
void page_get(struct page *page);
bool page_try_get(struct page *page);

/*
 * Drop a reference. Dropping the last one frees the page, or returns a pool's page to its pool
 * (pool.h). The caller must not look at the page afterwards. Context: ordinary.
 */
void page_put(struct page *page);

/*
 * The frame number, the address in the direct map and the order of a page, and the page of a frame.
 * The frame must be allocated; for any other frame use page_peek(). Context: handler.
 */
pfn_t page_pfn(const struct page *page);
void *page_address(const struct page *page);
unsigned page_order(const struct page *page);
struct page *pfn_to_page(pfn_t pfn);

/*
 * How the holder of a page moves it elsewhere, so that contiguous memory can be found. Pages
 * without a mover stay where they are.
 *
 * move() makes everything that refers to `from` refer to `to`. `to` is an allocated page of the
 * same order with undefined contents and the mover already set. The holder takes its own lock and
 * checks that `from` is still its own and not being used at this moment. It then copies the page
 * (page_copy()), changes its references and returns 0. From then on the holder owns `to`, with its
 * one reference, and no longer owns `from` or the reference it had.
 *
 * Any other return value means that nothing has changed, and `to` is freed again.
 *
 * The caller of move() holds a reference to `from`, so the struct page of `from` is valid whatever
 * happened, and holds no lock. The holder may allocate, wait and start rounds, but must not free
 * `from`. move() is called on any CPU, never from an interrupt handler, and possibly for a page
 * that was freed a moment ago; the holder must then refuse.
 *
 * The holder frees a movable page with page_free() or page_put(), even while another CPU is
 * examining it. The last reference frees it.
 */
struct page_mover {
	const char *name;
	int (*move)(struct page *from, struct page *to);
};

/*
 * Make a page movable until it is freed. `page` is the head of a page that the caller has in use,
 * allocated with USE_MOVABLE. Context: handler.
 */
void page_set_movable(struct page *page, const struct page_mover *mover);

/* Copy the contents and private words of a page to another of the same order. Context: handler. */
void page_copy(struct page *to, const struct page *from);

/*
 * Allocate a given range of frames, in whole 2 MiB blocks. Pages in use there are moved elsewhere;
 * then the whole range belongs to the caller, as single pages with one reference each. This takes
 * long.
 *
 *   0         success
 *   -EINVAL   no frames, not whole blocks, or not all RAM of one zone
 *   -EBUSY    some page cannot be moved, or is being used for another range
 *   -EAGAIN   another CPU is opening or closing memory in the range, and is taking long
 *   -ENOMEM   no memory
 *
 * On failure everything is as it was, except that pages already moved stay moved. The range is
 * freed as a whole, in parts that are whole blocks, or page by page with page_free(). Context:
 * ordinary.
 */
int contig_alloc_range(pfn_t first, u64 frames);
void contig_free_range(pfn_t first, u64 frames);

/*
 * Allocate 2^order frames, order 10..17, wherever room can be made, on the node nearest to `node`
 * that has any (NODE_NONE: to this CPU). Returns the first of them; they are single pages as above
 * and are freed as such a range. For other orders the result is a compound page, as from
 * page_alloc() with USE_MOVABLE; for orders 9 and 18 room is made, too, if there is none. Returns
 * NULL if there is no such memory. Context: ordinary.
 */
struct page *contig_alloc(unsigned order, node_t node);

/*
 * Keep a range for such requests (CMA). Until one comes, only movable pages live there. Errors are
 * those of contig_alloc_range(). Context: ordinary.
 */
int contig_declare_cma(pfn_t first, u64 frames);

/*
 * Copy the struct page of any frame. Returns false if the frame has none. Never faults, whatever
 * changes meanwhile. Context: any.
 */
bool page_peek(pfn_t pfn, struct page *copy);

/*
 * Report that a frame of RAM is faulty, to keep it out of use for good. May wait for other CPUs.
 *
 *   0                  the frame is out of use, now or already before
 *   -EBUSY             the frame is in use or in a page of a pool that is promised, or its block
 *                      could not be split for lack of memory. It is withdrawn once it is free and
 *                      there is memory, and until then its block is given to nobody else
 *   -EINVAL            the frame is not RAM, or belongs to firmware
 *   -ENOMEM, -EAGAIN   nothing was done
 *
 * Bad frames are counted as such; see bad_frames.h, and badram= for frames known to be bad before
 * the start. Context: ordinary.
 */
int page_mark_bad(pfn_t pfn);

/*
 * Memory by owner, in 4 KiB frames. The fields add up to all of RAM (mm_account() proves it).
 * Context: handler.
 */
struct mm_usage {
	u64 ram, free, unopened, per_cpu, pool_free, in_use, meta, gated, transit, bad, reserved;
	u64 memmap_bytes; /* struct pages in use and their page tables */
};
void mm_usage(struct mm_usage *usage);

/*
 * Map a page in use once more, so that the cost of a page size can be measured. `page` is its head.
 * The mapping is readable and writable and consists of leaves of `leaf` bytes (4K, 2M or 1G, at
 * most the size of the page).
 *
 * Returns NULL for lack of memory, for an impossible `leaf` (1 GiB on a CPU that cannot map it),
 * for a page that has seven mappings, or if there are 7168 mappings. The addresses of a mapping
 * that was removed are used again, as late as possible, and never while a CPU may still have the
 * old translation.
 *
 * A mapping holds a reference to its page. page_unmap() takes the address that page_map() returned,
 * removes the mapping on every CPU and drops the reference. A page is not moved while it is mapped.
 *
 * Call page_free() only after page_unmap(); page_put() may come before. Freeing a mapped page is a
 * caught bug, as is unmapping an address where no page is mapped: nothing is done, and the message
 * names the frame and its mapping, or the address. Context: ordinary.
 */
void *page_map(struct page *page, u64 leaf);
void page_unmap(void *address);

/*
 * Map device registers, uncached; <arch/mmio.h> reads and writes them. Returns NULL for lack of
 * memory, if too few addresses are left, or if no CPU has such a physical address. Also returns
 * NULL, with a line in the log, if part of the range is RAM that neither firmware keeps nor badram=
 * names.
 *
 * mmio_unmap() removes one whole mapping. Unmapping anything else is a caught bug, and nothing is
 * done. There are 1 TiB of addresses, which are not used again. Context: ordinary.
 */
volatile void __iomem *mmio_map(phys_t phys, u64 size);
void mmio_unmap(volatile void __iomem *address, u64 size);

/* ---- huge mappings ---- */

/*
 * Large zeroed memory made of huge pages. Each page appears when it is first touched, with the
 * memory around the touch already in the cache. The addresses of a mapping are its own. At least 1
 * GiB before and after it is never mapped, so running off either end is caught.
 *
 * Only ordinary code may touch the memory: not an interrupt handler, and not code that holds a
 * lock. Pages come from the node nearest to the CPU that touches first, from the pool of their size
 * (pool.h) as long as it has any, and after that from the page allocator.
 */
enum huge_flags {
	HUGE_POOL = 1 << 0, /* 2 MiB and 1 GiB pages come only from the pools */
	/* the pages are also promised now, so that every touch finds one. Implies HUGE_POOL */
	HUGE_RESERVE = 1 << 1,
	/* if there is no page of the size, use the next smaller one: 1 GiB, 2 MiB, 4 KiB */
	HUGE_FALLBACK = 1 << 2,
	HUGE_POPULATE = 1 << 3, /* make all pages present now, with all idle CPUs */
	/* pages come from request.node as long as it has any, whichever CPU touches them first */
	HUGE_NODE = 1 << 4,
	/* pages come only from request.node, and a touch that finds none there is exhausted() */
	HUGE_BIND = 1 << 5,
};

/*
 * Called when there is no page for a touch of `addr`. Runs on the CPU that touched, with interrupts
 * as they were at the touch and no lock held. Return true if memory was made free, to try again.
 * Return false if the program cannot go on; its run then ends as failed. The function may also not
 * return.
 */
typedef bool huge_exhausted_fn(void *ctx, void *addr);

struct huge_request {
	u64 size;                     /* in bytes, rounded up to whole pages */
	u64 page;                     /* page size in bytes: 4 KiB, 2 MiB or 1 GiB */
	unsigned flags;               /* enum huge_flags */
	node_t node;                  /* with HUGE_NODE or HUGE_BIND */
	huge_exhausted_fn *exhausted; /* NULL behaves like a function that returns false */
	void *ctx;
};

/*
 * Create a mapping. Returns its first address, aligned to 1 GiB. Returns NULL if there is no such
 * page size (1 GiB pages without HUGE_FALLBACK on a CPU that cannot map them), if addresses run
 * out, if there are too few pages to promise or to populate, or if a node is named that does not
 * exist or is not among the first 64. HUGE_BIND with HUGE_RESERVE is refused, too, because pools
 * promise no page of a certain node. huge_map() is the plain form. Context: ordinary.
 */
void *huge_map_with(const struct huge_request *request);
void *huge_map(u64 size, u64 page, unsigned flags);

/*
 * Remove a whole mapping and free its pages, with one shootdown round however many pages there are.
 * `addr` is what huge_map() returned. Nobody may still touch the mapping or work on it with the
 * calls below; a touch that comes too late is caught. Context: ordinary.
 */
void huge_unmap(void *addr);

/*
 * Populate or release the whole pages [addr, addr + size) of one mapping. Other CPUs may touch them
 * meanwhile. Both calls return 0, or -EINVAL for a bad range.
 *
 * huge_populate() makes the pages present as if touched, with all idle CPUs. If there are too few
 * it returns -ENOMEM and leaves those there were in place.
 *
 * huge_release() frees the pages, with one round for all. They are zero when they are touched
 * again. Pages that a pool has promised (HUGE_RESERVE) stay and are cleared, so that nobody else
 * can have them in between. -ENOMEM, with nothing changed: there is no memory to tell the range
 * from what lies beside it. Context: ordinary.
 */
int huge_populate(void *addr, u64 size);
int huge_release(void *addr, u64 size);

/*
 * Set the access allowed to the 4 KiB pages of [addr, addr + size), anywhere in one mapping. They
 * may be part of larger pages, present or to come. Contents stay, also while nothing may access
 * them. Rights stay when pages are released. Other CPUs may touch the range meanwhile; when the
 * call returns, no CPU has rights that were taken away.
 *
 * A large page with different rights in its parts is mapped by small entries until one call gives
 * all of it the same rights; it stays one page. Returns 0; -EINVAL for a bad range or `access`; or
 * -ENOMEM, with nothing changed. One round, if access is removed or small entries become a large
 * one again; else none. Context: ordinary.
 */
enum huge_access { HUGE_READ_WRITE, HUGE_READ_ONLY, HUGE_NONE };
int huge_protect(void *addr, u64 size, enum huge_access access);

/* Counts since boot. Arrays of three are by page size: 4 KiB, 2 MiB, 1 GiB. Context: handler. */
struct huge_usage {
	u64 mapped[3];   /* pages mapped now */
	u64 faults[3];   /* touches and populate calls that brought a page */
	u64 waited;      /* touches that found another CPU already making the page */
	u64 exhausted;   /* touches that found no page */
	u64 tables_kept; /* frames of upper page tables that are kept for later mappings */
};
void huge_usage(struct huge_usage *usage);

/* The API of the huge page pools is in pools.h. */
