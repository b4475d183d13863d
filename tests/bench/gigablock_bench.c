/*
 * The table of gigablock=off|on: the same trace (gigablock_age.c) with each, and then
 *
 *   tainted     GiB that hold memory which nobody can move, counted page by page, beside the least
 *               number of GiB that could hold as much
 *   in 100      tries to take one of the clean GiB, one after the other; each is given back
 *   at once     1 GiB pages taken until there are no more, and then up to 256 pages of 2 MiB
 *
 * All after the trace is counted when the pool has shrunk to nothing and half of the page cache was
 * dropped at random, because in memory that is 98% full no GiB can be had however it lies.
 */
#include <arch/clock.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/core/verdict.h"
#include "kernel/run/bench.h"
#include "mm/contig/evacuate.h"
#include "mm/debug/account.h"
#include "mm/hugetlb/pool.h"
#include "mm/mm.h"
#include "mm/zone/gigablock.h"
#include "mm/zone/migratetype.h"
#include "mm/zone/section_close.h"
#include "tests/bench/gigablock_age.h"
#include "tests/bench/sort.h"
#include "tests/kernel/chain.h"

enum { TRIES = 100, RELEASED = 50, GIBS_LEAST = 4, HUGE_MOST = 256 };

static u64 gigablock_ops = 1000000;
OPTION_U64(bench.gigablock.ops, gigablock_ops, 1000, 1000000000,
	   "operations of the trace that ages memory");

static u64 gigablock_seed = 21;
OPTION_U64(bench.gigablock.seed, gigablock_seed, 1, ~0ULL, "seed of that trace");

struct leg {
	const char *name;
	struct age_stats age;
	u64 ns, moved_aging, evacuations, chunks;
	u64 tainted_before;              /* GiB, when the trace begins */
	u64 stuck, tainted, clean;       /* frames; GiB; whole GiB that are not tainted */
	u64 giga_free, huge_free;        /* pages to be had without moving any */
	u64 giga, huge;                  /* pages to be had with moving, at once */
	u64 giga_moved, huge_moved;      /* frames moved for them */
	u64 tries, got, moved, p50, p99; /* ns of a try */
	bool ok;
};

/* ---- the state of memory, page by page ---- */

static u64 stuck_in_pages(u32 index)
{
	const struct page *pages = block_page(&mm_kernel, index);
	u64 stuck = 0, step;

	for (u64 i = 0; i < BLOCK_FRAMES; i += step) {
		const struct page_kind kind = page_kind(&pages[i]);

		step = kind.flags & (PAGE_BUDDY | PAGE_COMPOUND) ? order_pages(kind.order) : 1;
		if (kind.flags & (PAGE_RESERVED | PAGE_BAD))
			stuck += step;
		else if (!(kind.flags & (PAGE_BUDDY | PAGE_PCP | PAGE_MOVABLE)) &&
			 pages[i].refcount > 0)
			stuck += step;
	}
	return stuck;
}

/* Frames of the block that are neither free nor movable. Nobody else allocates meanwhile. */
static u64 stuck_in(u32 index)
{
	const struct block *block = block_at(&mm_kernel, index);
	struct block_word head, word;

	if (!block)
		return 0;
	block_run_head(&mm_kernel, index, &head);
	word = block_look(block);
	if (head.flags & BLOCK_FREE)
		return 0;
	switch (word.state) {
	case BLOCK_META:
		return BLOCK_FRAMES;
	case BLOCK_HUGE:
		return (word.flags & BLOCK_POOL) ||
				       (page_kind(block_page(&mm_kernel, index)).flags &
					PAGE_MOVABLE)
			       ? 0
			       : BLOCK_FRAMES;
	case BLOCK_FULL:
	case BLOCK_RESERVED:
		return word.flags & BLOCK_POOL ? 0 : stuck_in_pages(index);
	default:
		return 0;
	}
}

static u64 stuck_in_gib(u64 number)
{
	u64 stuck = 0;

	for (u32 index = (u32)number * GIB_BLOCKS; index < (number + 1) * GIB_BLOCKS; index++)
		stuck += stuck_in(index);
	return stuck;
}

static bool is_clean(u64 number)
{
	return mm_kernel.gib[number - mm_kernel.first_gib].whole && stuck_in_gib(number) == 0;
}

static void look(struct leg *leg)
{
	const u64 first = mm_kernel.first_gib;

	for (u64 number = first; number < first + mm_kernel.gibs; number++) {
		const struct gib *gib = &mm_kernel.gib[number - first];
		const u64 stuck = stuck_in_gib(number);

		leg->stuck += stuck;
		leg->tainted += stuck > 0;
		leg->clean += gib->whole && stuck == 0;
		leg->giga_free += gib->whole && gib->free == order_pages(GIGA_ORDER);
	}
	for (unsigned z = 0; z < mm_kernel.zones; z++)
		for (unsigned class = 0; class < FREE_CLASSES; class ++)
			leg->huge_free += mm_kernel.zone[z].free_class[class] / BLOCK_FRAMES;
}

/* ---- what can be had ---- */

static void try_clean_gibs(struct leg *leg)
{
	const u64 first = mm_kernel.first_gib, moved = age_moved();
	u64 ns[TRIES];

	for (u64 n = 0; leg->clean > 0 && leg->tries < TRIES; n = (n + 1) % mm_kernel.gibs) {
		const pfn_t pfn = (first + n) << GIGA_ORDER;
		u64 start;

		if (!is_clean(first + n))
			continue;
		start = clock_ns();
		if (contig_alloc_range(pfn, order_pages(GIGA_ORDER)) == 0) {
			ns[leg->got++] = clock_ns() - start;
			contig_free_range(pfn, order_pages(GIGA_ORDER));
		}
		leg->tries++;
	}
	leg->moved = age_moved() - moved;
	leg->p50 = median_u64(ns, leg->got);
	leg->p99 = leg->got ? ns[(leg->got * 99 - 1) / 100] : 0;
}

static void take_all(struct leg *leg)
{
	struct page *chain = NULL, *page;
	u64 moved = age_moved();

	leg->giga = pool_grow(&pool_1g, hvo_mode_selected(), mm_kernel.gibs);
	leg->giga_moved = age_moved() - moved;
	pool_shrink(&pool_1g, hvo_mode_selected(), leg->giga);
	moved = age_moved();
	while (leg->huge < HUGE_MOST && (page = contig_alloc(BLOCK_ORDER, NODE_NONE))) {
		page_chain_push(&chain, page);
		leg->huge++;
	}
	leg->huge_moved = age_moved() - moved;
	chain_give(&chain, &mm_kernel);
}

/* Forget which GiB are tainted, and make their free blocks movable. */
static void place_anywhere(struct mm *mm)
{
	mm->gigablock = false;
	for (u64 gib = 0; gib < mm->gibs; gib++)
		mm->gib[gib].tainted = false;
	for (unsigned z = 0; z < mm->zones; z++)
		migratetype_retype_free(&mm->zone[z], (u32)mm->first_gib * GIB_BLOCKS,
					(u32)mm->gibs * GIB_BLOCKS, MIGRATE_UNMOVABLE,
					MIGRATE_MOVABLE);
}

static void run_leg(struct leg *leg, bool on)
{
	const struct evacuated before = evacuated;
	const u64 start = clock_ns();

	sections_close_all(&mm_kernel);
	if (on)
		leg->ok = gigablock_begin(&mm_kernel);
	else
		place_anywhere(&mm_kernel);
	if (on && !leg->ok)
		return;
	for (u64 n = mm_kernel.first_gib; n < mm_kernel.first_gib + mm_kernel.gibs; n++)
		leg->tainted_before += stuck_in_gib(n) > 0;
	leg->ok = age_begin(gigablock_ops, gigablock_seed, &leg->age);
	leg->ns = clock_ns() - start;
	leg->moved_aging = age_moved();
	leg->evacuations = evacuated.blocks - before.blocks;
	leg->chunks = evacuated.chunks - before.chunks;
	age_release(RELEASED);
	look(leg);
	try_clean_gibs(leg);
	take_all(leg);
	leg->ok &= age_verify();
	age_end();
	place_anywhere(&mm_kernel);
	leg->ok &= account_machine();
}

/* ---- printing ---- */

static u64 least(const struct leg *leg)
{
	return DIV_ROUND_UP(leg->stuck, order_pages(GIGA_ORDER));
}

static void print_row(const char *name, u64 off, u64 on)
{
	print("  %-44s %12llu %12llu\n", name, off, on);
}

static void print_table(const struct leg *off, const struct leg *on)
{
	print("\n  %-44s %12s %12s\n", "gigablock=", "off", "on");
	print_row("GiB tainted when the trace begins", off->tainted_before, on->tainted_before);
	print_row("requests of the trace", off->age.requests, on->age.requests);
	print_row("  that found no memory", off->age.failed, on->age.failed);
	print_row("  ms", off->ns / NS_PER_MS, on->ns / NS_PER_MS);
	print_row("  blocks evacuated", off->evacuations, on->evacuations);
	print_row("  chunks evacuated", off->chunks, on->chunks);
	print_row("  frames moved", off->moved_aging, on->moved_aging);
	print_row("frames that cannot move, then", off->stuck, on->stuck);
	print_row("  GiB, the least that could hold them", least(off), least(on));
	print_row("  GiB tainted", off->tainted, on->tainted);
	print_row("  GiB clean", off->clean, on->clean);
	print_row("1 GiB pages without moving", off->giga_free, on->giga_free);
	print_row("2 MiB pages without moving", off->huge_free, on->huge_free);
	print_row("tries to take one clean GiB", off->tries, on->tries);
	print_row("  that got it", off->got, on->got);
	print_row("  frames moved", off->moved, on->moved);
	print_row("  us, median", off->p50 / NS_PER_US, on->p50 / NS_PER_US);
	print_row("  us, p99", off->p99 / NS_PER_US, on->p99 / NS_PER_US);
	print_row("1 GiB pages at once, with moving", off->giga, on->giga);
	print_row("  frames moved", off->giga_moved, on->giga_moved);
	print_row("2 MiB pages at once, with moving, of 256", off->huge, on->huge);
	print_row("  frames moved", off->huge_moved, on->huge_moved);
	print("\n");
}

static void record(const struct leg *leg)
{
	print("BENCH gigablock mode=%s ops=%llu seed=%llu failed=%llu age_ns=%llu evacuated=%llu "
	      "chunks=%llu "
	      "age_moved=%llu stuck_pages=%llu least=%llu tainted=%llu clean=%llu giga_free=%llu "
	      "huge_free=%llu tries=%llu got=%llu moved=%llu ns_p50=%llu ns_p99=%llu giga=%llu "
	      "giga_moved=%llu huge=%llu huge_moved=%llu\n",
	      leg->name, gigablock_ops, gigablock_seed, leg->age.failed, leg->ns, leg->evacuations,
	      leg->chunks, leg->moved_aging, leg->stuck, least(leg), leg->tainted, leg->clean,
	      leg->giga_free, leg->huge_free, leg->tries, leg->got, leg->moved, leg->p50, leg->p99,
	      leg->giga, leg->giga_moved, leg->huge, leg->huge_moved);
}

static u64 whole_gibs(void)
{
	u64 count = 0;

	for (u64 gib = 0; gib < mm_kernel.gibs; gib++)
		count += mm_kernel.gib[gib].whole;
	return count;
}

/*
 * The goal of on: one GiB more than the least, or those that had such memory before the trace, and
 * every clean one can be had.
 */
static bool reaches_goal(const struct leg *on)
{
	return on->tainted <= MAX(least(on) + 1, on->tainted_before) && on->got == on->tries &&
	       on->tries == TRIES;
}

static bool bench_gigablock(void)
{
	static struct leg off, on;

	if (whole_gibs() < GIBS_LEAST) {
		print("  # skipped: this machine has fewer than %u whole GiB\n", GIBS_LEAST);
		verdict_count(0, 0, 1);
		return true;
	}
	off = (struct leg){.name = "off"};
	on = (struct leg){.name = "on"};
	print("Contiguity that lasts (van Riel, \"1GB superpageblock memory allocation\" RFC, "
	      "2026)\n"
	      "%llu operations on %llu whole GiB, then half of the page cache dropped\n",
	      gigablock_ops, whole_gibs());
	run_leg(&off, false);
	run_leg(&on, true);
	print_table(&off, &on);
	if (!reaches_goal(&on))
		print("  # gigablock=on misses its goal here: at most one GiB tainted beyond the "
		      "least, or none beyond those at the start, and all tries succeed\n");
	record(&off);
	record(&on);
	return off.ok && on.ok;
}

BENCH(gigablock,
      "GiB that stay contiguous under a long trace of requests, with gigablock=off and on",
      bench_gigablock);
