/*
 * The pages of a space: its part of the page tables.
 *
 * An entry is absent, a table, a leaf, a guard, or claimed (the CPU that claimed it brings a huge
 * page). Leaves of 2 MiB and 1 GiB stand where an area has pages from a pool; leaves of 2 MiB
 * also where an anonymous area has room for one and space->huge allows it. A 2 MiB leaf that a call
 * covers in part becomes 512 entries of the same page. Each of these pieces is counted in the
 * page, and the page is freed with its last piece.
 *
 * Concurrency: a touch works under its CPU's pin, and puts an entry in place by
 * compare-and-swap. All other functions belong to a call that has made the range busy (space.h).
 *
 * Pages belong to the space from the touch that brings them to the call that takes them; tables
 * to the first touch below them, until a claim covers all that they serve.
 */
#pragma once

#include <arch/pgtable.h>
#include <arch/user.h>

#include "kernel/lib/types.h"
#include "mm/pools.h"
#include "mm/vm/space.h"
#include "mm/vm/pages_count.h"
#include "mm/vm/taken.h"

struct page;

/* The pool of pages of a size, PT_PMD or PT_PUD. */
static inline struct pool *pages_pool(enum pt_level level)
{
	return level == PT_PUD ? &pool_1g : &pool_2m;
}

/*
 * The entry of `level` for `addr`, or NULL where a table above it is missing or a larger leaf
 * stands. The caller holds a pin or the busy range.
 */
pte_t *pages_entry(const struct space *space, u64 addr, enum pt_level level);

/*
 * Make the pages of [start, end) movable that belong to nobody else: neither an object's, nor a
 * pool's, nor pieces. The word PAGE_VIRT of each then says where it is mapped. The range is busy.
 */
enum { PAGE_VIRT = 1 };

struct page_mover;
void pages_make_movable(const struct space *space, u64 start, u64 end,
			const struct page_mover *mover);

/* The leaf that maps `addr`. False if there is none. The caller holds a pin or the busy range. */
bool pages_find(const struct space *space, u64 addr, pte_t *pte, enum pt_level *level);

/*
 * Unmap [start, end), and take the tables that serve only `hull`, and guards. With NULL tables and
 * guards stay.
 */
void pages_take(u64 start, u64 end, const struct hull *hull, struct taken *taken);

/*
 * Make each page of a program's [start, end) a guard, where no page is left: a touch fails until
 * pages_unguard(). The guards move with the range. Returns 0; -ENOMEM for lack of tables or -EINTR
 * if the work must end, and then only a prefix has guards. pages_unguard() needs no memory.
 */
int pages_guard(const struct space *space, u64 start, u64 end);
void pages_unguard(const struct space *space, u64 start, u64 end);

/*
 * Fill the leaves of [start, end) with zeros. Returns 0, or -EINTR if the work must end; the rest
 * is then as it was.
 */
int pages_clear(const struct space *space, u64 start, u64 end);

/* Give the leaves of [start, end) these rights. */
void pages_protect(u64 start, u64 end, u8 rights, struct taken *taken);

/*
 * Count the leaves of [start, end); added to *count. Parts of large leaves count as 4 KiB pages.
 * The caller holds the busy range or a pin of all of it.
 */
void pages_count_range(const struct space *space, u64 start, u64 end, struct pages_count *count);

/*
 * Move the leaves of [from, from + size) to [to, to + size). Both ranges are busy, and nothing is
 * mapped at `to`. Returns 0, or -ENOMEM with nothing moved.
 */
int pages_move(u64 from, u64 to, u64 size, struct taken *taken);

/*
 * Call `fn` for each page of the space while nobody works in it: with its leaf, or with the first
 * of its pieces, and with the level of the page.
 */
typedef void pages_fn(void *arg, pte_t pte, u64 virt, enum pt_level level);
void pages_visit(const struct space *space, pages_fn *fn, void *arg);

/*
 * Frames that are not the space's: map those from `pfn` on at [start, end), with leaves of `level`,
 * to be read and written, where nothing is mapped; and take all tables of [start, end), which is
 * busy, in whole GiBs, and has no other pages. pages_map() returns 0, or -ENOMEM with a prefix
 * mapped.
 */
int pages_map(const struct space *space, u64 start, u64 end, pfn_t pfn, enum pt_level level);
void pages_unmap(u64 start, u64 end, struct taken *taken);
