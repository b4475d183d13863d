/* A space's part of the page tables: see pages.h. */
#include "mm/vm/pages.h"

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/check.h>
#include <arch/clear.h>

#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/reason_set.h"
#include "kernel/core/wait.h"
#include "kernel/lib/string.h"
#include "mm/vm/pages_count.h"
#include "mm/clear/clear.h"
#include "mm/memmap/page.h"
#include "mm/memmap/zone.h"
#include "mm/mm.h"
#include "mm/page/page_alloc.h"
#include "mm/pools.h"
#include "mm/vm/entry.h"

u64 pages_tables_kept, pages_waited;

/* ---- tables ---- */

static pte_t *root_table(void)
{
	return phys_to_virt(pgtable_root() << PAGE_SHIFT);
}

/* All other entries of the root table are others', and their tables, too. */
static pte_t *root_entry(const struct space *space, u64 addr)
{
	ASSERT(space_has(space, addr, addr + 1), "no page of the space is at %llx", addr);
	return &root_table()[pt_index(addr, PT_PGD)];
}

static __attribute__((noinline)) pte_t wait_unclaimed(const pte_t *entry)
{
	struct wait wait = wait_begin(WAIT_TOUCH, "a huge page that another CPU clears");
	pte_t pte;

	atomic_add_relaxed(&pages_waited, 1);
	for (pte = pte_load(entry); pte_claimed(pte); pte = pte_load(entry))
		wait_spin(&wait, CPU_NONE);
	return pte;
}

/* The entry once no other CPU claims it. */
static pte_t unclaimed(const pte_t *entry)
{
	const pte_t pte = pte_load(entry);

	return pte_claimed(pte) ? wait_unclaimed(entry) : pte;
}

bool pages_find(const struct space *space, u64 addr, pte_t *pte, enum pt_level *level)
{
	const pte_t *entry = root_entry(space, addr);

	for (*level = PT_PGD;;) {
		*pte = pte_load(entry);
		if (!pte_present(*pte))
			return false;
		if (*level != PT_PGD && pte_is_leaf(*pte, *level))
			return true;
		(*level)--;
		entry = &pte_table(*pte)[pt_index(addr, *level)];
	}
}

pte_t *pages_entry(const struct space *space, u64 addr, enum pt_level want)
{
	pte_t *entry = root_entry(space, addr);

	for (enum pt_level level = PT_PGD; level > want; level--) {
		const pte_t pte = pte_load(entry);

		if (!pte_present(pte) || (level != PT_PGD && pte_is_leaf(pte, level)))
			return NULL;
		entry = &pte_table(pte)[pt_index(addr, level - 1)];
	}
	return entry;
}

/* ---- pages by touch ---- */

static bool has_room(const struct area *area, u64 addr, u64 size)
{
	const u64 start = ALIGN_DOWN(addr, size);

	return start >= area->start && start + size <= area->end;
}

/* Does it show pages of its object, and no zeros? */
static bool has_contents(const struct area *area)
{
	return area->object && area->object->ops->page;
}

enum pt_level pages_level(const struct space *space, const struct area *area, u64 addr)
{
	unsigned huge;

	if (area->level > PT_PAGE)
		return area->level;
	if (!space->huge || has_contents(area) || (area->flags & AREA_SMALL))
		return PT_PAGE;
	huge = atomic_load_relaxed(space->huge);
	if (huge == SPACE_HUGE_NEVER || (huge == SPACE_HUGE_ASKED && !(area->flags & AREA_HUGE)))
		return PT_PAGE;
	return has_room(area, addr, MIB(2)) ? PT_PMD : PT_PAGE;
}

static struct memory_policy policy_for(const struct space *space, const struct area *area)
{
	return area->policy.how == POLICY_NEAR ? space_here(space)->policy : area->policy;
}

/* The n-th node of a set that is not empty. */
static node_t nth_node(u32 nodes, unsigned n)
{
	for (n %= (unsigned)__builtin_popcount(nodes); n > 0; n--)
		nodes &= nodes - 1;
	return (node_t)__builtin_ctz(nodes);
}

static node_t node_for(struct memory_policy policy, u64 addr)
{
	switch (policy.how) {
	case POLICY_NEAR:
		return this_cpu()->node;
	case POLICY_INTERLEAVE:
		return nth_node(policy.nodes, (unsigned)(addr >> PAGE_SHIFT));
	default:
		return policy.nodes >> (this_cpu()->node % 32) & 1 ? this_cpu()->node
								   : nth_node(policy.nodes, 0);
	}
}

/*
 * A page of the page allocator. The CPU has a pin and perhaps a claim, so no program is asked for
 * memory here (mm/page/pressure.h).
 */
static inline struct page *alloc(const struct space *space, const struct area *area, u64 addr,
				 unsigned order)
{
	const struct memory_policy policy = policy_for(space, area);

	return mm_page_alloc(&mm_kernel, order, space->user ? USE_MOVABLE : USE_UNMOVABLE,
			     policy.how == POLICY_BIND ? PAGE_NODE : 0, node_for(policy, addr));
}

static bool is_promised(const struct area *area, enum pt_level level)
{
	return level == area->level && area_is_promised(area);
}

/* Where the area is bound to nodes, a page that is promised to nobody comes from these only. */
static struct page *take_from_pool(const struct space *space, const struct area *area, u64 addr,
				   enum pt_level level)
{
	const struct memory_policy policy = policy_for(space, area);
	const node_t node = node_for(policy, addr);
	struct page *page;

	if (is_promised(area, level))
		return pool_page_take(pages_pool(level), node, POOL_RESERVED);
	page = pool_page_take(pages_pool(level), node, POOL_ANY);
	if (!page || policy.how != POLICY_BIND ||
	    (policy.nodes >> mm_kernel.zone[page->zone].node & 1))
		return page;
	pool_page_give(pages_pool(level), page);
	return reason_null(REASON_NO_POOL_PAGE);
}

struct page *pages_alloc_huge(const struct space *space, const struct area *area, u64 addr)
{
	return alloc(space, area, addr, BLOCK_ORDER);
}

static struct page *alloc_huge_and_table(const struct space *space, const struct area *area,
					 u64 addr)
{
	struct page *table = mm_page_alloc(&mm_kernel, 0, USE_UNMOVABLE, 0, NODE_NONE);
	struct page *page = table ? pages_alloc_huge(space, area, addr) : NULL;

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

static void clear(struct page *page, enum pt_level level, u64 hint)
{
	const struct clear_how how = clear_how_selected();

	clear_huge(&how, page_address(page), pt_level_size(level), hint,
		   mm_kernel.zone[page->zone].node);
}

/* A page came into an entry. */
static void count_page(const struct space *space, enum pt_level level)
{
	struct space_cpu *here = space_here(space);

	atomic_store_relaxed(&here->leaves[level], here->leaves[level] + 1);
	atomic_store_relaxed(&here->brought[level], here->brought[level] + 1);
}

/* A frame for a table, or NULL. */
static struct page *table_frame(unsigned request)
{
	if (fail_here(&mm_kernel.fail, FAIL_PTE))
		return reason_null(REASON_NO_MEMORY);
	return mm_page_alloc(&mm_kernel, 0, USE_UNMOVABLE, request, NODE_NONE);
}

/* Fill an entry that was absent, unless another CPU is first. */
static bool put_entry(pte_t *entry, u64 virt, enum pt_level level, pte_t pte)
{
	if (!pte_claim(entry, 0))
		return false;
	pte_store(entry, virt, level, pte);
	return true;
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
	struct page *frame = table_frame(PAGE_ZERO);
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

/* The entry for a page that is to be mapped at `virt`, or 0 if there is no memory. */
static pte_t entry_for_page(const struct space *space, const struct area *area, struct page *page,
			    u64 virt, enum pt_level level)
{
	const bool promised = is_promised(area, level);
	u64 pieces = promised ? PIECES_PROMISED : 0;
	pte_t pte;

	if (has_room(area, virt, pt_level_size(level)))
		return entry_make(space, page_pfn(page), level, area->rights) |
		       (promised ? PTE_PROMISED : 0);
	pte = make_pieces(space, virt, level - 1, page_pfn(page), &pieces);
	page->private[PAGE_PIECES] = pieces;
	return pte;
}

/* The page was taken for an area and could not be mapped. */
static void give_back(const struct area *area, struct page *page, enum pt_level level)
{
	page_put(page);
	if (is_promised(area, level)) /* the page is free again, unless somebody was faster */
		pool_reserve(pages_pool(level), 1);
}

/*
 * Put a huge page into an entry that was absent. True if the entry is no longer absent, whoever
 * changed it; false if there was no page. The memory around `addr` is cleared last if it is `near`.
 */
static bool bring_huge(const struct space *space, const struct area *area, pte_t *entry, u64 addr,
		       enum pt_level level, bool near)
{
	const u64 virt = ALIGN_DOWN(addr, pt_level_size(level));
	struct page *page;
	pte_t pte = 0;

	if (!pte_claim(entry, 0))
		return true;
	page = large_page(space, area, addr, level);
	if (page) {
		clear(page, level, near ? addr - virt : CLEAR_NO_HINT);
		pte = entry_for_page(space, area, page, virt, level);
	}
	fence_store();
	pte_store(entry, virt, level, pte);
	if (pte)
		count_page(space, level);
	else if (page)
		give_back(area, page, level);
	return pte;
}

/* Are its pages the object's own? */
static bool is_shared(const struct area *area)
{
	return has_contents(area) && (area->flags & AREA_SHARED);
}

static struct page *object_page(const struct area *area, u64 addr, int *err)
{
	const u64 index = (area->offset + addr - area->start) >> PAGE_SHIFT;

	return area->object->ops->page(area->object, index, err);
}

/* The page for 4 KiB of the area, with a reference that its entry will hold. */
static struct page *small_page(const struct space *space, const struct area *area, u64 addr,
			       int *err)
{
	struct page *page, *source;

	*err = -ENOMEM;
	if (is_shared(area))
		return object_page(area, addr, err);
	page = alloc(space, area, addr, 0);
	if (!page)
		return NULL;
	if (!has_contents(area)) {
		clear_pages(page_address(page), 1);
		return page;
	}
	source = object_page(area, addr, err);
	if (!source) {
		page_free(page);
		return NULL;
	}
	memcpy(page_address(page), page_address(source), PAGE_SIZE);
	page_put(source);
	return page;
}

static void drop_small(const struct area *area, struct page *page)
{
	if (is_shared(area))
		page_put(page);
	else
		page_free(page);
}

static int bring_small(const struct space *space, const struct area *area, pte_t *entry, u64 addr)
{
	int err;
	struct page *page = small_page(space, area, ALIGN_DOWN(addr, PAGE_SIZE), &err);
	pte_t pte;

	if (!page)
		return err;
	pte = entry_make(space, page_pfn(page), PT_PAGE, area->rights);
	if (is_shared(area))
		pte |= PTE_FILE;
	fence_store();
	if (put_entry(entry, ALIGN_DOWN(addr, PAGE_SIZE), PT_PAGE, pte))
		count_page(space, PT_PAGE);
	else
		drop_small(area, page); /* another CPU was first */
	return 0;
}

/* Put a table below an entry that was absent, unless another CPU does. False: no memory. */
static bool bring_table(const struct space *space, pte_t *entry, u64 addr, enum pt_level level)
{
	struct page *page = table_frame(PAGE_ZERO);

	if (!page)
		return false;
	fence_store(); /* the table is zero before any entry points to it */
	if (!put_entry(entry, ALIGN_DOWN(addr, pt_level_size(level)), level,
		       entry_make_table(space, page_pfn(page))))
		page_free(page);
	else if (level == PT_PGD && !space->user)
		atomic_add_relaxed(&pages_tables_kept, 1);
	return true;
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

int pages_touch(const struct space *space, const struct area *area, u64 addr, bool near)
{
	enum pt_level want = pages_level(space, area, addr), level;
	pte_t *entry = &root_table()[pt_index(addr, PT_PGD)];

	if (is_beyond(area, addr))
		return -ENXIO;
	/* the tables that are there, as for most touches */
	for (level = PT_PGD; level > PT_PAGE; level--) {
		const pte_t pte = pte_load(entry);

		if (!pte_is_table(pte))
			break;
		entry = &pte_table(pte)[pt_index(addr, level - 1)];
	}
	for (;;) {
		const pte_t pte = unclaimed(entry);

		if (level != PT_PGD && entry_is_leaf(pte, level))
			return 0;
		if (pte_present(pte)) {
			level--;
			entry = &pte_table(pte)[pt_index(addr, level)];
			continue;
		}
		if (level == PT_PAGE)
			return bring_small(space, area, entry, addr);
		if (level <= want) {
			if (bring_huge(space, area, entry, addr, level, near))
				continue;
			if (!falls_back(area))
				return -ENOMEM;
			want = level - 1;
		}
		if (!bring_table(space, entry, addr, level))
			return -ENOMEM;
	}
}

/* ---- visits ---- */

struct visit {
	const struct space *space;
	u64 start, end;
	const struct hull *hull; /* tables that serve only this are taken; NULL: none */
	u64 move_by;
	u8 rights;
	bool takes; /* pages go, and tables of their pieces with them */
	bool join;  /* pieces of a page that lies in the range whole become one entry */
	void (*leaf)(struct visit *v, pte_t *entry, pte_t pte, u64 virt, enum pt_level level);
	struct taken *taken; /* NULL: the visit only looks, and splits no leaf */
	struct pages_count *count;
	const struct page_mover *mover;
	pages_fn *fn;
	void *arg;
	int err;
};

/*
 * A large leaf of which only a part lies in the range becomes a table of pieces. The translation
 * stays the same, so nothing is flushed before the call's own round. That round flushes everything,
 * because INVLPG need not drop all translations of a page whose size has changed (SDM vol. 3A,
 * 4.10.2.3).
 *
 * Two calls may cut one leaf at different places at the same time, and each owns only its range.
 * The one that claims the entry splits the leaf.
 */
static void split_leaf(pte_t *entry, u64 virt, enum pt_level level, struct taken *taken)
{
	const u64 frames = pt_level_size(level - 1) >> PAGE_SHIFT;
	const struct space *space = taken->space;
	struct page *frame, *head;
	pte_t *table, pte;

	taken->sizes_changed = true;
	do {
		pte = unclaimed(entry);
		if (!entry_is_leaf(pte, level))
			return;
	} while (!pte_claim(entry, pte));
	head = page_head(pfn_to_page(pte_pfn(pte)));
	frame = space->user ? (struct page *)head->private[PAGE_TABLE]
			    : page_chain_pop(&taken->spare);
	table = page_address(frame);
	if (pte & PTE_PIECE)
		atomic_fetch_add(&head->private[PAGE_PIECES], PTRS_PER_TABLE - 1);
	else
		atomic_store_relaxed(&head->private[PAGE_PIECES],
				     PTRS_PER_TABLE | (pte & PTE_PROMISED ? PIECES_PROMISED : 0));
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++)
		atomic_store_relaxed(&table[i], entry_make(space, pte_pfn(pte) + i * frames,
							   level - 1, entry_rights(space, pte)) |
							PTE_PIECE);
	fence_store();
	pte_store(entry, virt, level,
		  entry_make_table(space, page_pfn(frame)) | (space->user ? 0 : PTE_PIECE));
	if (!space->user)
		return; /* it counts pages, also in pieces */
	pages_count_leaves(space, level, -1ULL);
	pages_count_leaves(space, level - 1, PTRS_PER_TABLE);
}

/* The first piece of a table of pieces, whose tables are taken. */
static pte_t join_pieces(struct taken *taken, pte_t pte, enum pt_level level)
{
	const pte_t *table = pte_table(pte);
	pte_t first = 0;

	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		pte_t piece = pte_load(&table[i]);

		if (level > PT_PMD && !entry_is_leaf(piece, level - 1))
			piece = join_pieces(taken, piece, level - 1);
		if (i == 0)
			first = piece;
	}
	taken->sizes_changed = true;
	taken_add_table(taken, pfn_to_page(pte_pfn(pte)));
	return first;
}

/* One entry for what was in pieces, with the rights of the visit: a page, or a part of it. */
static void join_leaf(struct visit *v, pte_t *entry, pte_t pte, u64 virt, enum pt_level level)
{
	const pfn_t pfn = pte_pfn(join_pieces(v->taken, pte, level));
	struct page *head = page_head(pfn_to_page(pfn));
	pte_t joined = entry_make(v->space, pfn, level, v->rights);

	if (pt_level_size(level) < PAGE_SIZE << page_order(head)) {
		joined |= PTE_PIECE;
		atomic_fetch_sub(&head->private[PAGE_PIECES], PTRS_PER_TABLE - 1);
	} else if (head->private[PAGE_PIECES] & PIECES_PROMISED) {
		joined |= PTE_PROMISED;
	}
	pte_store(entry, virt, level, joined);
}

/*
 * Take the empty tables below a table that is about to be taken. Two areas that shared a table and
 * were unmapped at the same time have left it: each call found the other's claim there.
 */
static void take_empty_tables(struct taken *taken, const pte_t *table, enum pt_level level)
{
	if (level == PT_PAGE)
		return;
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		const pte_t pte = pte_load(&table[i]);

		if (!pte_present(pte))
			continue;
		ASSERT(!pte_is_leaf(pte, level), "a page is left in a free range");
		take_empty_tables(taken, pte_table(pte), level - 1);
		taken_add_table(taken, pfn_to_page(pte_pfn(pte)));
	}
}

static void visit_table(struct visit *v, pte_t *table, enum pt_level level, u64 base)
{
	const u64 size = pt_level_size(level);
	const u64 first = MAX(v->start, base);
	const u64 last = MIN(v->end - 1, base + (PTRS_PER_TABLE * size - 1));

	for (u64 virt = ALIGN_DOWN(first, size); virt <= last; virt += size) {
		pte_t *entry = &table[pt_index(virt, level)];
		pte_t pte = pte_load(entry);
		bool whole;

		if (pte_claimed(pte))
			pte = unclaimed(entry);
		if (pte == 0)
			continue;
		whole = virt >= v->start && virt + size <= v->end;
		if (level != PT_PGD && entry_is_leaf(pte, level)) {
			if (!v->taken || whole) {
				v->leaf(v, entry, pte, virt, level);
				continue;
			}
			split_leaf(entry, virt, level, v->taken);
			pte = pte_load(entry);
		} else if (v->join && whole && (pte & PTE_PIECE)) {
			join_leaf(v, entry, pte, virt, level);
			continue;
		}
		visit_table(v, pte_table(pte), level - 1, virt);
		if (v->takes && whole && (pte & PTE_PIECE)) { /* of a page that is gone */
			pte_store(entry, virt, level, 0);
			taken_add_table(v->taken, pfn_to_page(pte_pfn(pte)));
			continue;
		}
		if (v->hull && virt >= v->hull->start && virt + size <= v->hull->end &&
		    (level != PT_PGD || v->space->user)) {
			take_empty_tables(v->taken, pte_table(pte), level - 1);
			pte_store(entry, virt, level, 0);
			taken_add_table(v->taken, pfn_to_page(pte_pfn(pte)));
		}
	}
}

static int visit(struct visit *v)
{
	ASSERT(space_has(v->space, v->start, v->end), "no pages of the space are in %llx to %llx",
	       v->start, v->end);
	visit_table(v, root_table(), PT_PGD,
		    ALIGN_DOWN(v->start, PTRS_PER_TABLE * pt_level_size(PT_PGD)));
	return v->err;
}

static void take_leaf(struct visit *v, pte_t *entry, pte_t pte, u64 virt, enum pt_level level)
{
	pte_store(entry, virt, level, 0);
	if (pte_present(pte))
		shootdown_batch_add(&v->taken->batch, virt, 1);
	taken_add_page(v->taken, pte);
	v->taken->leaves[level] += v->space->user || !(pte & PTE_PIECE);
}

void pages_take(u64 start, u64 end, const struct hull *hull, struct taken *taken)
{
	struct visit v = {.space = taken->space,
			  .start = start,
			  .end = end,
			  .hull = hull,
			  .takes = true,
			  .leaf = take_leaf,
			  .taken = taken};

	visit(&v);
}

/* A leaf may lie in several areas, of which each counts its part. */
static void count_leaf(struct visit *v, pte_t *entry, pte_t pte, u64 virt, enum pt_level level)
{
	const u64 start = MAX(virt, v->start), end = MIN(virt + pt_level_size(level), v->end);

	if (end - start == pt_level_size(level))
		v->count->leaves[level]++;
	else
		v->count->leaves[PT_PAGE] += (end - start) / PAGE_SIZE;
}

void pages_count_range(const struct space *space, u64 start, u64 end, struct pages_count *count)
{
	struct visit v = {
		.space = space, .start = start, .end = end, .leaf = count_leaf, .count = count};

	visit(&v);
}

static void show_leaf(struct visit *v, pte_t *entry, pte_t pte, u64 virt, enum pt_level level)
{
	struct page *head = page_head(pfn_to_page(pte_pfn(pte)));

	if (!(pte & PTE_PIECE))
		v->fn(v->arg, pte, virt, level);
	else if (page_pfn(head) == pte_pfn(pte))
		v->fn(v->arg, pte, virt, taken_level_of(head));
}

void pages_visit(const struct space *space, pages_fn *fn, void *arg)
{
	struct visit v = {.space = space,
			  .start = space->range.start,
			  .end = space->range.end,
			  .leaf = show_leaf,
			  .fn = fn,
			  .arg = arg};

	visit(&v);
}

static void make_movable(struct visit *v, pte_t *entry, pte_t pte, u64 virt, enum pt_level level)
{
	struct page *page = pfn_to_page(pte_pfn(pte));

	if (level == PT_PUD || (pte & (PTE_PIECE | PTE_FILE)))
		return;
	atomic_store_relaxed(&page->private[PAGE_VIRT], virt);
	if (!(page_kind(page).flags & PAGE_MOVABLE))
		page_set_movable(page, v->mover);
}

void pages_make_movable(const struct space *space, u64 start, u64 end,
			const struct page_mover *mover)
{
	struct visit v = {
		.space = space, .start = start, .end = end, .leaf = make_movable, .mover = mover};

	visit(&v);
}

static void clear_leaf(struct visit *v, pte_t *entry, pte_t pte, u64 virt, enum pt_level level)
{
	const struct clear_how how = clear_how_selected();

	if (v->space->ended && v->space->ended())
		v->err = -EINTR;
	if (v->err)
		return;
	clear_huge(&how, phys_to_virt(pte_pfn(pte) << PAGE_SHIFT), pt_level_size(level), 0,
		   this_cpu()->node);
	fence_store();
}

int pages_clear(const struct space *space, u64 start, u64 end)
{
	struct visit v = {.space = space, .start = start, .end = end, .leaf = clear_leaf};

	return visit(&v);
}

static void protect_leaf(struct visit *v, pte_t *entry, pte_t pte, u64 virt, enum pt_level level)
{
	const pte_t kept = pte & (PTE_PIECE | PTE_FILE);

	pte_store(entry, virt, level, entry_make(v->space, pte_pfn(pte), level, v->rights) | kept);
	if (entry_rights(v->space, pte) & ~(unsigned)v->rights)
		shootdown_batch_add(&v->taken->batch, virt, 1);
}

void pages_protect(u64 start, u64 end, u8 rights, struct taken *taken)
{
	struct visit v = {.space = taken->space,
			  .start = start,
			  .end = end,
			  .rights = rights,
			  .leaf = protect_leaf,
			  .join = !taken->space->user,
			  .taken = taken};

	visit(&v);
}

/* ---- moving ---- */

/* The entry of `level` for `addr`, with the tables above it. NULL: no memory. */
static pte_t *entry_for(const struct space *space, u64 addr, enum pt_level want)
{
	enum pt_level level = PT_PGD;
	pte_t *entry = root_entry(space, addr);

	while (level > want) {
		const pte_t pte = pte_load(entry);

		if (!pte_present(pte)) {
			if (!bring_table(space, entry, addr, level))
				return NULL;
			continue;
		}
		level--;
		entry = &pte_table(pte)[pt_index(addr, level)];
	}
	return entry;
}

static void move_leaf(struct visit *v, pte_t *entry, pte_t pte, u64 virt, enum pt_level level)
{
	pte_t *to = entry_for(v->space, virt + v->move_by, level);

	ASSERT(to && pte_load(to) == 0, "moving a page to %llx, where there is one",
	       virt + v->move_by);
	pte_store(entry, virt, level, 0);
	shootdown_batch_add(&v->taken->batch, virt, 1);
	pte_store(to, virt + v->move_by, level, pte);
}

/* Can a 2 MiB leaf stand at this address? Not where an empty table has been left. */
static bool leaf_fits(const struct space *space, u64 addr)
{
	const pte_t *entry = pages_entry(space, addr, PT_PMD);

	return IS_ALIGNED(addr, MIB(2)) && (!entry || pte_load(entry) == 0);
}

/* A leaf that fits at its new place moves whole; all others are split first. */
static void split_for_move(struct visit *v, pte_t *entry, pte_t pte, u64 virt, enum pt_level level)
{
	if (level == PT_PMD && !leaf_fits(v->space, virt + v->move_by))
		split_leaf(entry, virt, level, v->taken);
}

/* The tables that a leaf needs at its new place. Where nothing is mapped, none are made. */
static void prepare_move(struct visit *v, pte_t *entry, pte_t pte, u64 virt, enum pt_level level)
{
	if (v->err == 0 && !entry_for(v->space, virt + v->move_by, level))
		v->err = -ENOMEM;
}

int pages_move(u64 from, u64 to, u64 size, struct taken *taken)
{
	struct visit v = {.space = taken->space,
			  .start = from,
			  .end = from + size,
			  .move_by = to - from,
			  .leaf = split_for_move,
			  .taken = taken};

	visit(&v);
	v.leaf = prepare_move;
	if (visit(&v) < 0)
		return -ENOMEM;
	v.leaf = move_leaf;
	return visit(&v);
}
