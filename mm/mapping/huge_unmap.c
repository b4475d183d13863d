/*
 * Taking pages of huge mappings away, or rights to them: first all entries change, then comes one
 * round, then the pages are freed. See huge_map.h.
 *
 * The round comes between the last entry and the first page freed (the generation rule of
 * kernel/core/shootdown.h, kept by waiting). It flushes single pages by their addresses and many by
 * a full flush. If page tables are freed too, all CPUs take part, sleeping ones included.
 */
#include <arch/barrier.h>
#include <arch/check.h>

#include "kernel/core/context.h"
#include "kernel/core/reason_set.h"
#include "mm/pools.h"
#include "mm/mapping/huge_entry.h"
#include "mm/mapping/huge_fault.h"
#include "mm/mapping/huge_map.h"
#include "mm/memmap/page.h"

struct visit {
	virt_t start, end;
	huge_leaf_fn *leaf;
	struct huge_taken *tables; /* takes the tables that are left empty; NULL: they stay */
	void *arg;
};

/* Take the tables of rights below an entry whose page was taken. */
static void chain_split(struct huge_taken *taken, pte_t pte, enum pt_level level)
{
	if (!entry_is_split(pte, level))
		return;
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++)
		chain_split(taken, pte_load(&pte_table(pte)[i]), level - 1);
	page_chain_push(&taken->tables, pfn_to_page(pte_pfn(pte)));
}

/*
 * Visit the entries of a table that lie in the range. `base` is the address that its first entry
 * translates.
 */
static void visit_table(const struct visit *v, pte_t *table, enum pt_level level, virt_t base)
{
	const u64 size = pt_level_size(level);

	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		const virt_t virt = base + i * size;
		pte_t pte;

		if (virt + size <= v->start || virt >= v->end)
			continue;
		pte = huge_unclaimed(&table[i]);
		if (level == PT_PGD ? pte_present(pte) : entry_is_table(pte, level)) {
			visit_table(v, pte_table(pte), level - 1, virt);
			if (v->tables && level != PT_PGD) {
				pte_store(&table[i], virt, level, 0);
				page_chain_push(&v->tables->tables, pfn_to_page(pte_pfn(pte)));
			}
			continue;
		}
		if (level == PT_PGD)
			continue;
		if (entry_has_page(pte, level) || entry_is_split(pte, level))
			v->leaf(v->arg, &table[i], virt, level);
		if (v->tables && pte_load(&table[i])) { /* rights for pages to come */
			chain_split(v->tables, pte_load(&table[i]), level);
			pte_store(&table[i], virt, level, 0);
		}
	}
}

static void visit(const struct visit *v)
{
	const u64 upper = pt_level_size(PT_PGD) * PTRS_PER_TABLE;

	visit_table(v, phys_to_virt(pgtable_root() << PAGE_SHIFT), PT_PGD,
		    ALIGN_DOWN(v->start, upper));
}

void huge_visit(huge_leaf_fn *leaf, void *arg)
{
	visit(&(struct visit){.start = HUGE_LOW_BASE,
			      .end = HUGE_LOW_BASE + HUGE_LOW_SIZE,
			      .leaf = leaf,
			      .arg = arg});
	visit(&(struct visit){.start = HUGE_MAP_BASE,
			      .end = HUGE_MAP_BASE + HUGE_MAP_SIZE,
			      .leaf = leaf,
			      .arg = arg});
}

/* ---- taking pages away ---- */

/* Claim the leaf or the split entry, unless another CPU took it in between. */
static pte_t claim_leaf(pte_t *entry, enum pt_level level)
{
	pte_t pte;

	do {
		pte = huge_unclaimed(entry);
		if (!entry_has_page(pte, level) && !entry_is_split(pte, level))
			return 0;
	} while (!pte_claim(entry, pte));
	return pte;
}

/*
 * Take the page out of a table of pieces that the caller owns; the rights stay. Returns the rights
 * if all pieces have the same, and then the table is no longer needed; else ~0.
 */
static pte_t take_pieces(struct huge_taken *taken, pte_t *table, enum pt_level level, virt_t base)
{
	pte_t all = 0;

	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		const virt_t virt = base + i * pt_level_size(level);
		pte_t pte = pte_load(&table[i]), rights = pte & ENTRY_ACCESS;

		if (entry_is_split(pte, level)) {
			rights = take_pieces(taken, pte_table(pte), level - 1, virt);
			if (rights == ~0ULL) {
				all = ~0ULL;
				continue;
			}
			page_chain_push(&taken->tables, pfn_to_page(pte_pfn(pte)));
		} else if (pte_is_leaf(pte, level)) {
			shootdown_batch_add(&taken->batch, virt, 1);
		}
		pte_store(&table[i], virt, level, rights);
		if (i == 0)
			all = rights;
		else if (rights != all)
			all = ~0ULL;
	}
	return all;
}

/* Value for a split entry whose page was taken: its rights, or the table of them. */
static pte_t take_split(struct huge_taken *taken, pte_t pte, enum pt_level level, virt_t virt)
{
	const pte_t rights = take_pieces(taken, pte_table(pte), level - 1, virt);

	if (rights == ~0ULL)
		return pte;
	page_chain_push(&taken->tables, pfn_to_page(pte_pfn(pte)));
	return rights;
}

static void take_leaf(void *arg, pte_t *entry, virt_t virt, enum pt_level level)
{
	const pte_t pte = claim_leaf(entry, level);
	struct huge_taken *taken = arg;
	pte_t left = pte & ENTRY_ACCESS, page;

	if (!pte)
		return;
	page = pte_load(entry_first_piece(entry, level));
	if (entry_is_split(pte, level))
		left = take_split(taken, pte, level, virt);
	else if (pte_is_leaf(pte, level))
		shootdown_batch_add(&taken->batch, virt, 1);
	pte_store(entry, virt, level, left);
	if (pte_pfn(page) == 0 || (!pte_present(page) && !entry_is_hidden(page)))
		return;
	page_chain_push(&taken->pages, pfn_to_page(pte_pfn(page)));
	atomic_add_relaxed(&huge_counts.mapped[level], -1ULL);
}

void huge_take_range(virt_t start, u64 size, enum huge_tables tables, struct huge_taken *taken)
{
	const struct visit v = {.start = start,
				.end = start + size,
				.leaf = take_leaf,
				.tables = tables == HUGE_TAKE_TABLES ? taken : NULL,
				.arg = taken};

	visit(&v);
}

/* Single pages are freed many at once. */
enum { SINGLES_MAX = 64 };

struct singles {
	size_t count;
	struct page *page[SINGLES_MAX];
};

static void give_singles(struct singles *singles)
{
	page_free_bulk(singles->page, singles->count);
	singles->count = 0;
}

static void give_page(struct page *page, struct huge_taken *taken, struct singles *singles)
{
	check_frames_reused(page_to_pfn(page), 1);
	if (!(page->flags & PAGE_HUGETLB)) {
		singles->page[singles->count++] = page;
		if (singles->count == SINGLES_MAX)
			give_singles(singles);
		return;
	}
	taken->pool_pages[page_order(page) == GIGA_ORDER ? PT_PUD : PT_PMD]++;
	pool_page_give(page_order(page) == GIGA_ORDER ? &pool_1g : &pool_2m, page);
}

void huge_flush_and_give(struct huge_taken *taken)
{
	struct singles singles = {.count = 0};

	if (taken->tables)
		shootdown_full(SHOOTDOWN_ALL_CPUS);
	else
		shootdown_batch_flush(&taken->batch, SHOOTDOWN_SKIP_IDLE);
	while (taken->pages)
		give_page(page_chain_pop(&taken->pages), taken, &singles);
	give_singles(&singles);
	while (taken->tables)
		page_free(page_chain_pop(&taken->tables));
}

/* ---- calls ---- */

int huge_release(void *addr, u64 size)
{
	const struct huge_pin pin = huge_pin_range(addr, size);
	struct huge_taken taken = {.pages = NULL};
	int err;

	context_assert(CONTEXT_ORDINARY);
	if (!pin.map || size == 0) {
		huge_unpin(pin);
		return reason_error(size == 0 ? REASON_BAD_SIZE : REASON_BAD_ADDRESS, -EINVAL);
	}
	huge_take_range((virt_t)addr, size, HUGE_KEEP_TABLES, &taken);
	huge_flush_and_give(&taken);
	err = huge_promise(pin.map, taken.pool_pages[pin.map->level]);
	huge_unpin(pin);
	return err;
}

struct rights {
	const struct huge_map *map;
	struct shootdown_batch batch; /* pages that can no longer be written */
};

/* Give an entry that the caller has claimed, and that was `old`, the rights that count for it. */
static void set_claimed(struct rights *rights, pte_t *entry, virt_t virt, enum pt_level level,
			pte_t old)
{
	const enum huge_access access = entry_access(rights->map, old);

	if (!entry_is_split(old, level)) {
		pte_store(entry, virt, level,
			  entry_has_page(old, level) ? entry_make(pte_pfn(old), level, access, old)
						     : old & ~PTE_CLAIMED);
		if (access == HUGE_READ_ONLY && pte_writable(old))
			shootdown_batch_add(&rights->batch, virt, 1);
		return;
	}
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		pte_t *piece = &pte_table(old)[i];

		set_claimed(rights, piece, virt + i * pt_level_size(level - 1), level - 1,
			    pte_load(piece));
	}
	pte_store(entry, virt, level, old);
}

static void set_rights(void *arg, pte_t *entry, virt_t virt, enum pt_level level)
{
	const pte_t pte = claim_leaf(entry, level);

	if (pte)
		set_claimed(arg, entry, virt, level, pte);
}

/*
 * A CPU that brings a page or changes an entry reads the rights after it has claimed the entry. The
 * CPU that runs this call writes the rights before it looks at the entries. One of the two
 * therefore sees the other. If two calls run at once, the rights of one stay recorded, and every
 * entry ends up as recorded, whichever call visits it last.
 */
int huge_protect(void *addr, enum huge_access access)
{
	const struct huge_pin pin = huge_pin_range(addr, 0);
	struct rights rights = {.map = pin.map};

	context_assert(CONTEXT_ORDINARY);
	if (!pin.map || pin.map->start != (virt_t)addr || access > HUGE_READ_ONLY) {
		huge_unpin(pin);
		return reason_error(REASON_BAD_ADDRESS, -EINVAL);
	}
	atomic_store_relaxed(&pin.map->read_only, access == HUGE_READ_ONLY);
	fence_full();
	visit(&(struct visit){.start = pin.map->start,
			      .end = pin.map->start + atomic_load_relaxed(&pin.map->size),
			      .leaf = set_rights,
			      .arg = &rights});
	shootdown_batch_flush(&rights.batch, SHOOTDOWN_SKIP_IDLE);
	huge_unpin(pin);
	return 0;
}
