/* A space's part of the page tables: see pages.h. */
#include "mm/vm/pages.h"

#include <arch/atomic.h>
#include <arch/barrier.h>

#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "mm/vm/pages_count.h"
#include "mm/clear/clear.h"
#include "mm/memmap/page.h"
#include "mm/memmap/zone.h"
#include "mm/mm.h"
#include "mm/vm/entry.h"

/* ---- tables ---- */

/* Other entries of the root table are others', and their tables, too. */
static void assert_has(const struct space *space, u64 addr)
{
	ASSERT(space_has(space, addr, addr + 1), "no page of the space is at %llx", addr);
}

bool pages_find(const struct space *space, u64 addr, pte_t *pte, enum pt_level *level)
{
	assert_has(space, addr);
	*pte = pte_load(entry_walk(space, addr, PT_PAGE, level));
	return *level != PT_PGD && pte_is_leaf(*pte, *level);
}

pte_t *pages_entry(const struct space *space, u64 addr, enum pt_level want)
{
	enum pt_level level;
	pte_t *entry;

	assert_has(space, addr);
	entry = entry_walk(space, addr, want, &level);
	return level == want ? entry : NULL;
}

/* ---- visits ---- */

struct visit {
	const struct space *space;
	u64 start, end;
	const struct hull *hull; /* tables that serve only this are taken; NULL: none */
	u64 move_by;
	u8 rights;
	bool takes;  /* pages go, and tables of their pieces with them */
	bool guards; /* leaf() is called for guards, too */
	bool join;   /* pieces of a page that lies in the range whole become one entry */
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
		pte = entry_unclaimed(entry);
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

enum { AT_A_GLANCE = 8 }; /* entries, a line of the cache */

static bool all_absent(const pte_t *entry)
{
	pte_t any = 0;

#pragma GCC unroll 8
	for (unsigned i = 0; i < AT_A_GLANCE; i++)
		any |= pte_load(&entry[i]);
	return any == 0;
}

/* Take the tables below a table that is about to be taken, which have leaves only if `drop`. */
static void take_tables(struct taken *taken, const pte_t *table, enum pt_level level, bool drop)
{
	if (level == PT_PAGE)
		return;
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		pte_t pte;

		if (i % AT_A_GLANCE == 0 && all_absent(&table[i])) {
			i += AT_A_GLANCE - 1;
			continue;
		}
		pte = pte_load(&table[i]);
		if (!pte_present(pte))
			continue;
		ASSERT(drop || !pte_is_leaf(pte, level), "a page is left in a free range");
		if (pte_is_leaf(pte, level))
			continue;
		take_tables(taken, pte_table(pte), level - 1, drop);
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

		if (pt_index(virt, level) % AT_A_GLANCE == 0 && all_absent(entry)) {
			virt += (AT_A_GLANCE - 1) * size;
			continue;
		}
		if (pte_claimed(pte))
			pte = entry_unclaimed(entry);
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
		} else if (pte == ENTRY_GUARD) {
			if (v->guards)
				v->leaf(v, entry, pte, virt, level);
			continue;
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
			/* Two areas that shared a table and were unmapped at the same time
			   have left it: each call found the other's claim there. */
			take_tables(v->taken, pte_table(pte), level - 1, false);
			pte_store(entry, virt, level, 0);
			taken_add_table(v->taken, pfn_to_page(pte_pfn(pte)));
		}
	}
}

static int visit(struct visit *v)
{
	ASSERT(space_has(v->space, v->start, v->end), "no pages of the space are in %llx to %llx",
	       v->start, v->end);
	visit_table(v, v->space->root, PT_PGD,
		    ALIGN_DOWN(v->start, PTRS_PER_TABLE * pt_level_size(PT_PGD)));
	return v->err;
}

static void take_leaf(struct visit *v, pte_t *entry, pte_t pte, u64 virt, enum pt_level level)
{
	pte_store(entry, virt, level, 0);
	if (pte_present(pte))
		shootdown_batch_add(&v->taken->batch, virt, 1);
	else if (pte == ENTRY_GUARD)
		return;
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
			  .guards = hull != NULL,
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
	if (v->space->ended && v->space->ended())
		v->err = -EINTR;
	if (v->err)
		return;
	clear_huge_as_selected(phys_to_virt(pte_pfn(pte) << PAGE_SHIFT), pt_level_size(level), 0,
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
	const pte_t kept = pte & (PTE_PIECE | PTE_FILE | PTE_PROMISED);

	pte_store(entry, virt, level, entry_make(v->space, pte_pfn(pte), level, v->rights) | kept);
	if (!(entry_rights(v->space, pte) & ~(unsigned)v->rights))
		return;
	shootdown_batch_add(&v->taken->batch, virt, 1);
	/* another call may have made the pieces, and not started its round yet (split_leaf()) */
	if ((pte & PTE_PIECE) && level > PT_PAGE)
		v->taken->sizes_changed = true;
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

/* The entry of level `want` for `addr`, with the tables above it. NULL: no memory. */
static pte_t *entry_for(const struct space *space, u64 addr, enum pt_level want)
{
	enum pt_level level;
	pte_t *entry;

	for (entry = entry_walk(space, addr, want, &level); level > want;
	     entry = entry_walk(space, addr, want, &level))
		if (!entry_bring_table(space, entry, addr, level))
			return NULL;
	return entry;
}

int pages_guard(const struct space *space, u64 start, u64 end)
{
	for (u64 virt = start; virt < end; virt += PAGE_SIZE) {
		pte_t *entry = entry_for(space, virt, PT_PAGE);

		if (!entry)
			return -ENOMEM;
		if (space->ended())
			return -EINTR;
		pte_store(entry, virt, PT_PAGE, ENTRY_GUARD);
	}
	return 0;
}

static void drop_guard(struct visit *v, pte_t *entry, pte_t pte, u64 virt, enum pt_level level)
{
	if (pte == ENTRY_GUARD)
		pte_store(entry, virt, level, 0);
}

void pages_unguard(const struct space *space, u64 start, u64 end)
{
	struct visit v = {
		.space = space, .start = start, .end = end, .guards = true, .leaf = drop_guard};

	visit(&v);
}

int pages_map(const struct space *space, u64 start, u64 end, pfn_t pfn, enum pt_level level)
{
	const u64 size = pt_level_size(level);
	pte_t pte = pte_make(pfn, level, PT_RW); /* the frame's address in place */

	for (u64 virt = start, count; virt < end; virt += count * size, pte += count * size) {
		pte_t *entry = entry_for(space, virt, level);

		if (!entry)
			return -ENOMEM;
		count = MIN((end - virt) / size, PTRS_PER_TABLE - pt_index(virt, level));
#pragma GCC unroll 8
		for (u64 i = 0; i < count; i++)
			pte_store(&entry[i], virt + i * size, level, pte + i * size);
	}
	return 0;
}

void pages_unmap(u64 start, u64 end, struct taken *taken)
{
	for (u64 virt = start; virt < end; virt += GIB(1)) {
		pte_t *entry = pages_entry(taken->space, virt, PT_PUD);
		const pte_t pte = entry ? pte_load(entry) : 0;

		if (pte == 0)
			continue;
		pte_store(entry, virt, PT_PUD, 0);
		shootdown_batch_add(&taken->batch, virt, 1);
		if (pte_is_leaf(pte, PT_PUD))
			continue;
		take_tables(taken, pte_table(pte), PT_PMD, true);
		taken_add_table(taken, pfn_to_page(pte_pfn(pte)));
	}
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
			  .guards = true,
			  .leaf = split_for_move,
			  .taken = taken};

	visit(&v);
	v.leaf = prepare_move;
	if (visit(&v) < 0)
		return -ENOMEM;
	v.leaf = move_leaf;
	return visit(&v);
}
