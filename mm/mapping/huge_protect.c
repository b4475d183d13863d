/*
 * Rights of a range inside a huge mapping: huge_protect_range() of mm.h.
 *
 * Every entry in the range is claimed, changed and released, so a touch sees it as it was or as it
 * is. An entry that lies in the range only in part becomes a table first: of smaller entries if no
 * page could be there yet, else of the pieces of its page (huge_entry.h). A split entry that lies
 * in the range as a whole becomes one entry again. The flush follows all changes: by address, or
 * full and on all CPUs if an entry became a table or the other way round.
 *
 *   before   |  2 MiB, writable  |  2 MiB, writable  |  2 MiB, writable  |
 *   range             [-------------- read-only -----------------)
 *   after    | 512 pieces: w | r |  2 MiB, read-only | 512 pieces: r | w |
 *
 * Only the two ends of the range need tables, at most three each. They are allocated before
 * anything changes, so nothing fails half-way.
 */
#include <arch/barrier.h>

#include "kernel/core/context.h"
#include "kernel/core/reason_set.h"
#include "mm/mapping/huge_entry.h"
#include "mm/mapping/huge_fault.h"
#include "mm/mapping/huge_map.h"
#include "mm/memmap/page.h"

enum { TABLES_MAX = 6 };

struct change {
	const struct huge_map *map;
	virt_t start, end;
	enum huge_access access;
	struct page *table[TABLES_MAX]; /* allocated for the change and not yet used */
	size_t tables;
	struct shootdown_batch batch; /* rights that were taken away */
	struct page *unused;          /* tables that were taken out, chained through private[0] */
	bool resized;                 /* a page that is present is mapped by other sizes now */
};

static void change_table(struct change *c, pte_t *table, enum pt_level level, virt_t base);
static pte_t changed(struct change *c, pte_t old, enum pt_level level, virt_t virt);

static bool is_whole(const struct change *c, enum pt_level level, virt_t virt)
{
	return virt >= c->start && virt + pt_level_size(level) <= c->end;
}

/* ---- splitting and joining ---- */

static pte_t take_table(struct change *c)
{
	return pte_make_table(page_to_pfn(c->table[--c->tables]));
}

/* The entry of a table with the pieces of what `old` maps, or will. */
static pte_t split(struct change *c, pte_t old, enum pt_level level)
{
	const pte_t made = take_table(c) | PTE_PIECE;
	const bool hidden = entry_is_hidden(old);
	const enum huge_access access = hidden              ? HUGE_NONE
					: pte_writable(old) ? HUGE_READ_WRITE
							    : HUGE_READ_ONLY;
	const u64 frames = pt_level_size(level - 1) >> PAGE_SHIFT;
	pte_t *table = pte_table(made);

	for (unsigned i = 0; i < PTRS_PER_TABLE; i++)
		table[i] = entry_has_page(old, level)
				   ? entry_make(pte_pfn(old) + i * frames, level - 1, access,
						(old & (ENTRY_ACCESS | PTE_PIECE)) |
							(i > 0 ? PTE_PIECE : 0))
				   : old & ENTRY_ACCESS;
	c->resized |= pte_present(old);
	fence_store(); /* the table is complete before an entry points to it */
	return made;
}

/* Take out the tables below a split entry. Returns its first piece, which stands for the page. */
static pte_t join(struct change *c, pte_t old, enum pt_level level)
{
	const pte_t *table = pte_table(old);
	struct page *page = pfn_to_page(pte_pfn(old));
	pte_t first = 0;

	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		pte_t piece = pte_load(&table[i]);

		if (entry_is_split(piece, level - 1))
			piece = join(c, piece, level - 1);
		if (i == 0)
			first = piece;
	}
	page_chain_push(&c->unused, page);
	c->resized = true; /* a walk of the processor may have the table itself */
	return first;
}

/* ---- changing entries ---- */

/* The new value of an entry that was `old` and lies in the range as a whole. */
static pte_t changed_whole(struct change *c, pte_t old, enum pt_level level, virt_t virt)
{
	const pte_t record = entry_recorded(c->access);
	const bool was_split = entry_is_split(old, level);
	const pte_t page = was_split ? join(c, old, level) : old;

	if (!was_split && pte_present(old) &&
	    (c->access == HUGE_NONE || (c->access == HUGE_READ_ONLY && pte_writable(old))))
		shootdown_batch_add(&c->batch, virt, 1);
	if (!pte_present(page) && !entry_is_hidden(page))
		return record;
	return entry_make(pte_pfn(page), level, c->access, record | (page & PTE_PIECE));
}

/* Change the pieces below a split entry, which the caller owns. */
static void change_pieces(struct change *c, pte_t *table, enum pt_level level, virt_t base)
{
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		const virt_t virt = base + i * pt_level_size(level);

		if (virt + pt_level_size(level) > c->start && virt < c->end)
			pte_store(&table[i], virt, level,
				  changed(c, pte_load(&table[i]), level, virt));
	}
}

/* The new value of an entry that the caller owns and that was `old`. It is no table of pages. */
static pte_t changed(struct change *c, pte_t old, enum pt_level level, virt_t virt)
{
	if (is_whole(c, level, virt))
		return changed_whole(c, old, level, virt);
	if (entry_is_split(old, level)) {
		change_pieces(c, pte_table(old), level - 1, virt);
		return old;
	}
	old = split(c, old, level);
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) { /* not linked yet: plain words */
		pte_t *piece = &pte_table(old)[i];
		const virt_t at = virt + i * pt_level_size(level - 1);

		if (at + pt_level_size(level - 1) > c->start && at < c->end)
			*piece = changed(c, *piece, level - 1, at);
	}
	return old;
}

/* Is an absent entry above the size of the mapping's pages? Then pages below need a table. */
static bool is_above_pages(const struct change *c, pte_t pte, enum pt_level level)
{
	return level > c->map->level && pte_pfn(pte) == 0;
}

/* Make a table of smaller entries under an entry that the caller has claimed and that was `old`. */
static void store_lower_table(struct change *c, pte_t *entry, pte_t old, enum pt_level level,
			      virt_t virt)
{
	const pte_t made = take_table(c);

	if (level == PT_PGD)
		atomic_add_relaxed(&huge_counts.tables_kept, 1);
	huge_fill_table(pte_table(made), old & ENTRY_ACCESS);
	fence_store();
	pte_store(entry, virt, level, made);
}

static void change_entry(struct change *c, pte_t *entry, enum pt_level level, virt_t virt)
{
	for (;;) {
		const pte_t pte = huge_unclaimed(entry);

		if (level == PT_PGD ? pte_present(pte) : entry_is_table(pte, level)) {
			change_table(c, pte_table(pte), level - 1, virt);
			return;
		}
		if (!pte_claim(entry, pte))
			continue;
		if (level == PT_PGD ||
		    (is_above_pages(c, pte, level) && !is_whole(c, level, virt))) {
			store_lower_table(c, entry, pte, level, virt);
			continue;
		}
		pte_store(entry, virt, level, changed(c, pte, level, virt));
		return;
	}
}

static void change_table(struct change *c, pte_t *table, enum pt_level level, virt_t base)
{
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		const virt_t virt = base + i * pt_level_size(level);

		if (virt + pt_level_size(level) > c->start && virt < c->end)
			change_entry(c, &table[i], level, virt);
	}
}

/* ---- the call ---- */

static void flush_and_free(struct change *c)
{
	if (c->resized)
		shootdown_full(SHOOTDOWN_ALL_CPUS);
	else
		shootdown_batch_flush(&c->batch, SHOOTDOWN_SKIP_IDLE);
	while (c->unused)
		page_free(page_chain_pop(&c->unused));
}

int huge_protect_range(void *addr, u64 size, enum huge_access access)
{
	struct change c = {.start = (virt_t)addr, .end = (virt_t)addr + size, .access = access};
	struct huge_pin pin;
	int err = -EINVAL;

	context_assert(CONTEXT_ORDINARY);
	if (!huge_map_covers(c.start) || size == 0 || access > HUGE_NONE ||
	    !IS_ALIGNED(c.start | size, PAGE_SIZE)) {
		reason_set(size == 0 ? REASON_BAD_SIZE : REASON_BAD_ADDRESS);
		return -EINVAL;
	}
	/* before the pin, because programs may be asked for memory */
	c.tables = page_alloc_bulk(USE_UNMOVABLE, PAGE_ZERO, NODE_NONE, c.table, TABLES_MAX);
	pin = huge_pin(c.start);
	c.map = pin.map;
	if (pin.map && huge_map_has(pin.map, c.start, size))
		err = c.tables == TABLES_MAX ? 0 : -ENOMEM;
	if (err == 0)
		change_table(&c, phys_to_virt(pgtable_root() << PAGE_SHIFT), PT_PGD,
			     ALIGN_DOWN(c.start, pt_level_size(PT_PGD) * PTRS_PER_TABLE));
	flush_and_free(&c);
	if (err < 0)
		reason_set(err == -ENOMEM ? REASON_NO_MEMORY : REASON_BAD_ADDRESS);
	huge_unpin(pin);
	page_free_bulk(c.table, c.tables);
	return err;
}
