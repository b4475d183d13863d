/* Touches: see touch.h. */
#include "mm/vm/touch.h"

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/clear.h>

#include "kernel/core/percpu.h"
#include "kernel/core/reason_set.h"
#include "mm/clear/clear.h"
#include "mm/memmap/page.h"
#include "mm/memmap/zone.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/mm.h"
#include "mm/page/page_alloc.h"
#include "mm/vm/entry.h"
#include "mm/vm/pages.h"

/* ---- pages ---- */

static bool has_room(const struct area *area, u64 addr, u64 size)
{
	const u64 start = ALIGN_DOWN(addr, size);

	return start >= area->start && start + size <= area->end;
}

/* The level of the leaf that a touch of `addr` may bring. */
static inline enum pt_level level_for(const struct space *space, const struct area *area, u64 addr)
{
	unsigned huge;

	if (area->level > PT_PAGE)
		return area->level;
	/* the object may be gone: this is asked before there is a pin */
	if (!space->huge || area->object || (area->flags & AREA_SMALL))
		return PT_PAGE;
	huge = atomic_load_relaxed(space->huge);
	if (huge == SPACE_HUGE_NEVER || (huge == SPACE_HUGE_ASKED && !(area->flags & AREA_HUGE)))
		return PT_PAGE;
	return has_room(area, addr, MIB(2)) ? PT_PMD : PT_PAGE;
}

/* The n-th node of a set that is not empty. */
static node_t nth_node(u64 nodes, u64 n)
{
	for (n %= (unsigned)__builtin_popcountll(nodes); n > 0; n--)
		nodes &= nodes - 1;
	return (node_t)__builtin_ctzll(nodes);
}

static bool has_node(struct memory_policy policy, node_t node)
{
	return node < POLICY_NODES && (policy.nodes >> node & 1);
}

static __attribute__((noinline)) node_t node_of_set(struct memory_policy policy, u64 index)
{
	if (policy.how == POLICY_INTERLEAVE)
		return nth_node(policy.nodes, index);
	return has_node(policy, this_cpu()->node) ? this_cpu()->node : nth_node(policy.nodes, 0);
}

/* The node to ask first for the page of `order` at `addr`. */
static inline node_t node_for(struct memory_policy policy, u64 addr, unsigned order)
{
	return likely(policy.how == POLICY_NEAR) ? this_cpu()->node
						 : node_of_set(policy, addr >> PAGE_SHIFT >> order);
}

static bool is_allowed(struct memory_policy policy, const struct page *page)
{
	return policy.how != POLICY_BIND || has_node(policy, mm_kernel.zone[page->zone].node);
}

/* The node that was asked first has no page. The others of its set may have one. */
static __attribute__((noinline)) struct page *alloc_bound(unsigned order, enum page_use use,
							  u64 nodes)
{
	struct page *page = NULL;

	for (; nodes && !page; nodes &= nodes - 1)
		page = mm_page_alloc(&mm_kernel, order, use, PAGE_NODE,
				     (node_t)__builtin_ctzll(nodes));
	return page;
}

/* A page of the page allocator. */
static inline struct page *alloc(const struct space *space, const struct area *area, u64 addr,
				 unsigned order)
{
	const struct memory_policy policy = space_policy(space, area);
	const enum page_use use = space->user ? USE_MOVABLE : USE_UNMOVABLE;
	const bool bound = policy.how == POLICY_BIND;
	struct page *page = mm_page_alloc(&mm_kernel, order, use, bound ? PAGE_NODE : 0,
					  node_for(policy, addr, order));

	return likely(page) || !bound ? page : alloc_bound(order, use, policy.nodes);
}

static bool is_promised(const struct area *area, enum pt_level level)
{
	return level == area->level && area_is_promised(area);
}

/* Does it show pages of its object itself, and no copies? */
static bool is_shown(const struct area *area)
{
	return (area->flags & AREA_SHARED) && area_has_contents(area);
}

/* Where the area is bound to nodes, a page that is promised to nobody comes from these only. */
static struct page *take_from_pool(const struct space *space, const struct area *area, u64 addr,
				   enum pt_level level)
{
	const struct memory_policy policy = space_policy(space, area);
	const node_t node = node_for(policy, addr, level == PT_PUD ? GIGA_ORDER : BLOCK_ORDER);
	struct pool *pool = pages_pool(level);
	struct page *page;

	if (is_promised(area, level))
		return pool_page_take(pool, node, POOL_RESERVED);
	page = pool_page_take(pool, node, POOL_ANY);
	for (u64 left = policy.nodes; page && !is_allowed(policy, page); left &= left - 1) {
		pool_page_give(pool, page);
		if (!left)
			return reason_null(REASON_NO_POOL_PAGE);
		page = pool_page_take(pool, (node_t)__builtin_ctzll(left), POOL_ANY);
	}
	return page;
}

struct page *touch_alloc_huge(const struct space *space, const struct area *area, u64 addr)
{
	return alloc(space, area, addr, BLOCK_ORDER);
}

static struct page *alloc_huge_and_table(const struct space *space, const struct area *area,
					 u64 addr)
{
	struct page *table = mm_page_alloc(&mm_kernel, 0, USE_UNMOVABLE, 0, NODE_NONE);
	struct page *page = table ? touch_alloc_huge(space, area, addr) : NULL;

	if (page)
		page->private[PAGE_TABLE] = (virt_t)table;
	else if (table)
		page_free(table);
	return page;
}

/* A large page, contents undefined, or NULL. */
static struct page *large_page(const struct space *space, const struct area *area, u64 addr,
			       enum pt_level level)
{
	struct page *page = NULL;

	if (area->level > PT_PAGE)
		page = take_from_pool(space, area, addr, level);
	if (page || (area->flags & AREA_POOL))
		return page;
	if (space->user)
		return alloc_huge_and_table(space, area, addr);
	return alloc(space, area, addr, level == PT_PUD ? GIGA_ORDER : BLOCK_ORDER);
}

/* A page came into an entry. */
static void count_page(const struct space *space, enum pt_level level)
{
	struct space_cpu *here = space_here(space);

	atomic_store_relaxed(&here->leaves[level], here->leaves[level] + 1);
	atomic_store_relaxed(&here->brought[level], here->brought[level] + 1);
}

/* ---- pages in pieces ---- */

/* Frees the tables below, whose pieces are no longer needed. */
static void free_pieces(pte_t table_entry, enum pt_level level)
{
	for (unsigned i = 0; level > PT_PAGE && i < PTRS_PER_TABLE; i++) {
		const pte_t pte = pte_load(&pte_table(table_entry)[i]);

		if (pte_present(pte) && !pte_is_leaf(pte, level))
			free_pieces(pte, level - 1);
	}
	page_free(pfn_to_page(pte_pfn(table_entry)));
}

/*
 * A table of the pieces of a page that several areas share, each with the rights of its area; it
 * is not linked yet. *pieces grows by their number. Returns its entry, or 0 if there is no memory.
 */
static pte_t make_pieces(const struct space *space, u64 virt, enum pt_level level, pfn_t pfn,
			 u64 *pieces)
{
	const u64 size = pt_level_size(level);
	struct page *frame = entry_table_frame(PAGE_ZERO);
	pte_t entry, *table;
	struct area area;

	if (!frame)
		return 0;
	entry = entry_make_table(space, page_pfn(frame)) | PTE_PIECE;
	table = page_address(frame);
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++, virt += size, pfn += size >> PAGE_SHIFT) {
		pte_t piece;

		area_tree_from(&space->tree, virt, &area);
		if (has_room(&area, virt, size)) {
			piece = entry_make(space, pfn, level, area.rights) | PTE_PIECE;
			++*pieces;
		} else {
			piece = make_pieces(space, virt, level - 1, pfn, pieces);
		}
		if (!piece) {
			free_pieces(entry, level);
			return 0;
		}
		pte_store(&table[i], virt, level, piece);
	}
	return entry;
}

/* The table for a page that several areas share, or 0 if there is no memory. */
static __attribute__((noinline)) pte_t pieces_of(const struct space *space, struct page *page,
						 u64 virt, enum pt_level level, bool promised)
{
	u64 pieces = promised ? PIECES_PROMISED : 0;
	const pte_t pte = make_pieces(space, virt, level - 1, page_pfn(page), &pieces);

	page->private[PAGE_PIECES] = pieces;
	return pte;
}

/* The entry for a page that is to be mapped at `virt`, or 0 if there is no memory. */
static pte_t entry_for_page(const struct space *space, const struct area *area, struct page *page,
			    u64 virt, enum pt_level level)
{
	const bool promised = is_promised(area, level);

	if (unlikely(!has_room(area, virt, pt_level_size(level))))
		return pieces_of(space, page, virt, level, promised);
	return entry_make(space, page_pfn(page), level, area->rights) | (promised ? PTE_PROMISED
									 : is_shown(area) ? PTE_FILE
											  : 0);
}

/* The page was taken for an area and could not be mapped. */
static void give_back(const struct area *area, struct page *page, enum pt_level level)
{
	if (is_promised(area, level))
		pool_page_give_promised(pages_pool(level), page);
	else
		page_put(page);
}

/*
 * A page with what the object has at `addr`, where the page begins: the object's own, or `own`,
 * filled. NULL, with *err set, if there is none; where that is for lack of `own`, *err stays.
 */
static __attribute__((noinline)) struct page *
contents_page(const struct area *area, u64 addr, enum pt_level level, struct page *own, int *err)
{
	const struct vm_object_ops *ops = area->object->ops;
	const u64 at = area->offset + addr - area->start;
	int failed;

	if (is_shown(area))
		return ops->page(area->object, at >> PAGE_SHIFT, err);
	if (!own)
		return NULL;
	failed = ops->copy(area->object, at, page_address(own), pt_level_size(level));
	if (failed == 0)
		return own;
	give_back(area, own, level);
	*err = failed;
	return NULL;
}

/*
 * Put a huge page into an entry that was absent; the memory around `addr` is cleared last if it is
 * `near`. Returns 0; -EAGAIN if another CPU was first; -ENOMEM; or -ENXIO beyond the end.
 */
static __attribute__((noinline)) int bring_huge(const struct space *space, const struct area *area,
						pte_t *entry, u64 addr, enum pt_level level,
						bool near)
{
	const u64 virt = ALIGN_DOWN(addr, pt_level_size(level));
	const bool contents = area_has_contents(area);
	struct page *page = NULL;
	int err = -ENOMEM;
	pte_t pte = 0;

	if (!pte_claim(entry, 0))
		return -EAGAIN;
	if (likely(!contents || !(area->flags & AREA_SHARED)))
		page = large_page(space, area, addr, level);
	if (unlikely(contents))
		page = contents_page(area, virt, level, page, &err);
	else if (likely(page))
		clear_huge_as_selected(page_address(page), pt_level_size(level),
				       near ? addr - virt : CLEAR_NO_HINT,
				       mm_kernel.zone[page->zone].node);
	if (likely(page))
		pte = entry_for_page(space, area, page, virt, level);
	if (unlikely(page && !pte)) /* before another CPU may take what is promised here */
		give_back(area, page, level);
	fence_store();
	pte_store(entry, virt, level, pte);
	if (unlikely(!pte))
		return err;
	count_page(space, level);
	return 0;
}

/* Put a page into an entry of 4 KiB that was absent. */
static inline void link_small(const struct space *space, const struct area *area, pte_t *entry,
			      u64 virt, struct page *page, pte_t flags)
{
	const pte_t pte = entry_make(space, page_pfn(page), PT_PAGE, area->rights) | flags;

	fence_store();
	if (likely(entry_put(entry, virt, PT_PAGE, pte)))
		count_page(space, PT_PAGE);
	else
		page_put(page); /* another CPU was first */
}

static __attribute__((noinline)) int bring_contents(const struct space *space,
						    const struct area *area, pte_t *entry, u64 virt)
{
	int err = -ENOMEM;
	struct page *page = is_shown(area) ? NULL : alloc(space, area, virt, 0);

	page = contents_page(area, virt, PT_PAGE, page, &err);
	if (page)
		link_small(space, area, entry, virt, page, is_shown(area) ? PTE_FILE : 0);
	return page ? 0 : err;
}

static inline int bring_small(const struct space *space, const struct area *area, pte_t *entry,
			      u64 virt)
{
	struct page *page;

	if (unlikely(area_has_contents(area)))
		return bring_contents(space, area, entry, virt);
	page = alloc(space, area, virt, 0);
	if (unlikely(!page))
		return -ENOMEM;
	clear_pages(page_address(page), 1);
	link_small(space, area, entry, virt, page, 0);
	return 0;
}

/* Do smaller pages come where there is none of the area's size? */
static bool falls_back(const struct area *area)
{
	return area->level == PT_PAGE || (area->flags & AREA_FALLBACK);
}

/* Beyond the end of an object that shows zeros? Others say so themselves. */
static bool is_beyond(const struct area *area, u64 addr)
{
	return area->object && !area->object->ops->page &&
	       area->offset + (addr - area->start) >= atomic_load_relaxed(&area->object->bytes);
}

/*
 * Make the page of `addr` present; the CPU's pin covers it at level `want`. With `near` the memory
 * around `addr` is in the cache afterwards. Returns 0; -ENOMEM; -EFAULT at a guard; or -ENXIO
 * beyond the end of an object.
 */
static inline int bring(const struct space *space, const struct area *area, u64 addr,
			enum pt_level want, bool near)
{
	enum pt_level level;
	pte_t *entry;

	if (is_beyond(area, addr))
		return -ENXIO;
	for (entry = entry_walk(space, addr, PT_PAGE, &level);;
	     entry = entry_walk(space, addr, PT_PAGE, &level)) {
		const pte_t pte = entry_unclaimed(entry);

		if (likely(pte == 0 && level == PT_PAGE))
			return bring_small(space, area, entry, ALIGN_DOWN(addr, PAGE_SIZE));
		if (level != PT_PGD && entry_is_leaf(pte, level))
			return 0;
		if (unlikely(pte == ENTRY_GUARD))
			return -EFAULT;
		if (pte != 0) /* it has become a table */
			continue;
		if (level <= want) {
			const int err = bring_huge(space, area, entry, addr, level, near);

			if (err == -EAGAIN)
				continue;
			if (err == 0 || !falls_back(area))
				return err;
			want = level - 1;
		}
		if (!entry_bring_table(space, entry, addr, level))
			return -ENOMEM;
	}
}

/* ---- touches ---- */

/* Pin the page if the area that the CPU found last has it, and nothing has changed since. */
static inline bool pin_again(struct space *space, u64 addr, const struct area_found *last,
			     enum pt_level least, enum pt_level *level)
{
	if (addr < last->area.start || addr >= last->area.end)
		return false;
	*level = level_for(space, &last->area, addr);
	space_pin_only(space, addr, MAX(*level, least));
	if (likely(atomic_load_acquire(&space->tree.seq) == last->seq &&
		   !(last->area.flags & AREA_BUSY)))
		return true;
	space_unpin(space);
	return false;
}

/* A page may lie in several areas. The address of one that is being changed, or 0. */
static __attribute__((noinline)) u64 busy_part(const struct space *space, u64 addr, u64 size)
{
	const u64 end = ALIGN_DOWN(addr, size) + size;
	u64 at = ALIGN_DOWN(addr, size);
	struct area area;

	for (; at < end && area_tree_from(&space->tree, at, &area) && area.start < end;
	     at = area.end)
		if (area.flags & AREA_BUSY)
			return MAX(area.start, at);
	return 0;
}

/*
 * space_pin() of the page that a touch of `addr` brings, of the size *level, or of `least` around
 * it. Returns the area, which stays while the pin does; NULL, without a pin, if there is none. No
 * other area of the page is busy either: a page that comes has the rights of all.
 */
static inline __attribute__((always_inline)) const struct area *
pin_page(struct space *space, u64 addr, enum pt_level least, enum pt_level *level)
{
	const struct area_found *last = &space_here(space)->found;
	struct area area;
	u64 busy;

	for (;;) {
		while (unlikely(!pin_again(space, addr, last, least, level))) {
			if (!space_pin(space, addr, PT_PAGE, &area))
				return NULL;
			space_unpin(space); /* now it is the area found last */
		}
		if (likely(*level == PT_PAGE || has_room(&last->area, addr, pt_level_size(*level))))
			return &last->area;
		busy = busy_part(space, addr, pt_level_size(*level));
		if (!busy)
			return &last->area;
		space_unpin(space);
		space_wait_settled(space, busy);
	}
}

enum touch space_touch(struct space *space, u64 addr, enum user_access access)
{
	enum pt_level level;
	const struct area *area = pin_page(space, addr, PT_PAGE, &level);
	int err;

	if (unlikely(!area))
		return TOUCH_NO_AREA;
	if (unlikely(!(area->rights & area_rights_for(access)))) {
		space_unpin(space);
		return TOUCH_NO_RIGHT;
	}
	err = bring(space, area, addr, level, true);
	space_unpin(space);
	return likely(err == 0) ? TOUCH_DONE
	       : err == -EFAULT ? TOUCH_GUARD
	       : err == -ENXIO  ? TOUCH_BEYOND
				: TOUCH_NO_MEMORY;
}

/* The size of the page that was brought, which may be smaller than asked for. The CPU has a pin. */
static u64 bytes_brought(const struct space *space, const struct area *area, u64 addr, u64 size)
{
	enum pt_level level;

	if (likely(!(area->flags & AREA_FALLBACK)))
		return size;
	entry_walk(space, addr, PT_PAGE, &level);
	return MIN(pt_level_size(level), size);
}

/* Small pages of one area are brought up to 2 MiB at a time, under one pin. */
int space_bring(struct space *space, u64 start, u64 end, u64 size)
{
	for (u64 at = start; at < end;) {
		enum pt_level level;
		const struct area *area = pin_page(space, at, PT_PMD, &level);
		u64 stop = MIN(ALIGN_DOWN(at, MIB(2)) + MIB(2), end);
		int err = 0;

		if (unlikely(!area)) {
			at += size;
			continue;
		}
		for (stop = MIN(stop, area->end); at < stop && err != -ENOMEM;
		     at += bytes_brought(space, area, at, size))
			if (area->rights || area->end - at < size)
				err = bring(space, area, at, level, false);
		space_unpin(space);
		if (unlikely(err == -ENOMEM))
			return err;
	}
	return 0;
}
