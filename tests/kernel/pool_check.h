/*
 * What must be true of any pool, and of any huge page, whatever happened to it. For cases of pools
 * and HVO.
 */
#pragma once

#include "mm/hugetlb/pool.h"
#include "tests/kernel/arena.h"

/*
 * Counts agree with each other, per node and in all, and with the lists; free pages are frozen,
 * marked and huge. No other CPU uses it. What is wrong fails the case, by name.
 */
void pool_expect_consistent(struct pool *pool);

/*
 * For cases where pages are made without a mode being named, by the pool (surplus ones, or such as
 * take another's place) or by page_alloc(): that is done as hvo= says. The baselines open sections
 * mapped, which phantom memory must not be, and restore what is freed there. It is "on" then,
 * whatever was chosen. An arena with a phantom calls this itself.
 */
void pool_makes_on_demand(void);

/*
 * The machine's own pool has `count` pages more until pool_return(), which expects them all to be
 * free. False: there is no such memory, and the case is skipped.
 */
bool pool_borrow(struct pool *pool, u64 count);
void pool_return(struct pool *pool, u64 count);

/* Every frame has one owner (mm_account), with a second pool beside the arena's own. */
bool arena_accounted_with(struct arena *a, const struct pool *other);

/*
 * Struct pages of a huge page of `order` whose head is block `index`: each finds its head, and says
 * tail or not. Every `step`th, and the first 64 of each block.
 */
bool huge_tails_right(const struct mm *mm, u32 index, unsigned order, u64 step);

/*
 * Its PTEs: head frame writable; all else read-only, clean, the shared tail page of its zone and
 * order.
 */
bool huge_line_right(struct mm *mm, u32 index, unsigned order);

/*
 * `count` blocks of the phantom are split and freed: full, one by one on their list. False if that
 * could not be done.
 */
bool full_blocks_make(struct arena *a, u64 count);

/* Shootdown rounds since boot. */
u64 rounds_so_far(void);

/*
 * META has nothing to give and nothing to grow into on node 0: its free blocks and frames are held.
 * `spare` frames of `kind` are left beside those that META_EMERGENCY keeps.
 */
struct famine {
	struct arena *a;
	u64 kept[META_KINDS];
	struct block_list blocks;
};
void famine_begin(struct famine *f, struct arena *a, enum meta_kind kind, u64 spare);
void famine_end(struct famine *f);

/*
 * The first `bytes` of a struct page are these, else the case fails by the byte: MEANT ones mean
 * something in every tail, of WHOLE ones the rest is zero.
 */
enum { MEANT = 16, WHOLE = sizeof(struct page) };
bool struct_page_says(const struct page *page, struct page want, unsigned bytes);
