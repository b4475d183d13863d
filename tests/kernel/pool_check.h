/*
 * Conditions that hold for any pool and any huge page, whatever happened to it. For cases of pools
 * and HVO.
 */
#pragma once

#include "mm/debug/account_lists.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/rounds.h"

/*
 * Expect these counts, and those that follow from them. No other CPU may use the pool.
 */
void pool_expect_counts(struct pool *pool, u64 pages, u64 in_use, u64 surplus);

/*
 * For cases in which pages are made without naming a mode: by the pool, as surplus pages or as
 * replacements, or by page_alloc(). Such pages are made as hvo= says. The baselines open sections
 * mapped, which must not happen to phantom memory, and restore pages that are freed there. This
 * call sets hvo=on instead of a baseline. An arena with a phantom calls it itself.
 */
void pool_makes_on_demand(void);

/*
 * Give the machine's own pool `count` more pages until pool_return(), which expects all of them to
 * be free. Returns false if there is no such memory; the case is then skipped.
 */
bool pool_borrow(struct pool *pool, u64 count);
void pool_return(struct pool *pool, u64 count);

/*
 * For cases that make 1 GiB pages of the machine's own memory in empty pools, because no arena is
 * that large: can one be made? If not, the case is skipped. Free sections are closed afterwards.
 */
bool pool_giga_possible(void);

/*
 * Check the struct pages of a huge page of `order` whose head is block `index`: each must find its
 * head and say whether it is a tail. Every `step`th one is checked, and the first 64 of each block.
 */
bool huge_tails_right(const struct mm *mm, u32 index, unsigned order, u64 step);

/*
 * Check the PTEs of such a page: the head's frame is writable; all others map the shared tail page
 * of the zone and order, read-only and clean.
 */
bool huge_line_right(struct mm *mm, u32 index, unsigned order);

/*
 * Split and free `count` blocks of the phantom, so that they are full and free, each by itself on
 * its list. Returns false if that could not be done.
 */
bool full_blocks_make(struct arena *a, u64 count);

/*
 * On node 0, metadata memory has nothing to give and nothing to grow into, because its free blocks
 * and frames are held. `spare` frames of `kind` are left beside those that META_EMERGENCY keeps.
 */
struct famine {
	struct arena *a;
	u64 kept[META_KINDS];
	struct block_list blocks;
};
void famine_begin(struct famine *f, struct arena *a, enum meta_kind kind, u64 spare);
void famine_end(struct famine *f);

/*
 * The first `bytes` of a struct page must be those of `want`; otherwise the case fails and names
 * the byte. The first MEANT bytes are defined in every tail; where all WHOLE bytes are checked, the
 * rest is zero.
 */
enum { MEANT = 16, WHOLE = sizeof(struct page) };
bool struct_page_says(const struct page *page, struct page want, unsigned bytes);
