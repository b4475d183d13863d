/*
 * Placement by GiB (mm/zone/gigablock.h): the same trace (gigablock_age.c) without it and with it,
 * and then 1 GiB pages, until there are no more, and up to 256 of 2 MiB.
 *
 *   tainted   GiB that hold memory which nobody can move, counted page by page, beside the least
 *             number of GiB that could hold as much
 *   moved     frames copied to make the pages, beside the movable frames of those GiB that had
 *             the fewest
 *
 * All after the trace is counted when the pool has shrunk to nothing and half of the page cache was
 * dropped at random, because in memory that is 98% full no GiB can be had however it lies.
 *
 * Memory is filled and emptied once before both, so that the host has backed it. While the trace
 * runs, GiB are counted after each of POINTS parts, untimed: records gigablock_time.
 */
#include <arch/clock.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/core/verdict.h"
#include "kernel/lib/string.h"
#include "kernel/run/bench.h"
#include "mm/contig/evacuate.h"
#include "mm/debug/account.h"
#include "mm/hugetlb/pool.h"
#include "mm/zone/gigablock.h"
#include "mm/zone/migratetype.h"
#include "mm/zone/section_close.h"
#include "tests/bench/gigablock_age.h"
#include "tests/bench/sort.h"
#include "tests/bench/work.h"
#include "tests/kernel/chain.h"

enum { POINTS = 25, RELEASED = 50, GIBS_LEAST = 4, GIBS_MOST = 1024, HUGE_MOST = 256 };

static u64 gigablock_ops = 1000000;
OPTION_U64(bench.gigablock.ops, gigablock_ops, 1000, 1000000000,
	   "operations of the trace that ages memory");

static u64 gigablock_seed = 21;
OPTION_U64(bench.gigablock.seed, gigablock_seed, 1, ~0ULL, "seed of that trace");

/* Memory at one time. */
struct state {
	u64 stuck, tainted, clean; /* frames; GiB; whole GiB that are not tainted */
	u64 giga_free, huge_free;  /* pages to be had without moving any */
};

struct leg {
	const char *name;
	struct age_stats age;
	u64 ns, moved_aging, chunks;
	u64 tainted_before;                  /* GiB, before memory is filled */
	struct state point[POINTS + 1], end; /* while the trace runs; after it */
	struct leg_work work;
	u64 giga, huge;                         /* pages to be had with moving, at once */
	u64 giga_moved, huge_moved, giga_least; /* frames moved for them; the least possible */
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

static struct state look(void)
{
	const u64 first = mm_kernel.first_gib;
	struct state now = {0};

	for (u64 number = first; number < first + mm_kernel.gibs; number++) {
		const struct gib *gib = &mm_kernel.gib[number - first];
		const u64 stuck = stuck_in_gib(number);

		now.stuck += stuck;
		now.tainted += stuck > 0;
		now.clean += gib->whole && stuck == 0;
		now.giga_free += gib->whole && gib->free == order_pages(GIGA_ORDER);
	}
	for (unsigned z = 0; z < mm_kernel.zones; z++)
		for (unsigned class = 0; class < FREE_CLASSES; class ++)
			now.huge_free += mm_kernel.zone[z].free_class[class] / BLOCK_FRAMES;
	return now;
}

/* ---- what can be had ---- */

static u64 movable[GIBS_MOST]; /* frames in whole GiB without such memory, ascending */

static void sort_movable(void)
{
	u64 count = 0;

	memset(movable, 0, sizeof(movable));
	for (u64 gib = 0; gib < mm_kernel.gibs && count < GIBS_MOST; gib++)
		if (mm_kernel.gib[gib].whole && stuck_in_gib(mm_kernel.first_gib + gib) == 0)
			movable[count++] = mm_kernel.gib[gib].movable;
	sort_u64(movable, count);
}

static void take_all(struct leg *leg)
{
	struct page *chain = NULL, *page;
	u64 moved = age_moved();

	sort_movable();
	leg->giga = pool_grow(&pool_1g, hvo_mode_selected(), MIN(mm_kernel.gibs, (u64)GIBS_MOST));
	leg->giga_moved = age_moved() - moved;
	for (u64 i = 0; i < leg->giga; i++)
		leg->giga_least += movable[i];
	pool_shrink(&pool_1g, hvo_mode_selected(), leg->giga);
	moved = age_moved();
	while (leg->huge < HUGE_MOST && (page = contig_alloc(BLOCK_ORDER, NODE_NONE))) {
		page_chain_push(&chain, page);
		leg->huge++;
	}
	leg->huge_moved = age_moved() - moved;
	chain_give(&chain, &mm_kernel);
}

/* Mark the GiB that hold such memory, or none, and give their free blocks the type that follows. */
static void place_by_gib(bool on)
{
	struct mm *mm = &mm_kernel;
	const enum migratetype from = on ? MIGRATE_MOVABLE : MIGRATE_UNMOVABLE,
			       to = on ? MIGRATE_UNMOVABLE : MIGRATE_MOVABLE;

	mm->gigablock = on;
	for (unsigned z = 0; z < mm->zones; z++)
		for (u64 number = zone_first_gib(&mm->zone[z]); number < zone_end_gib(&mm->zone[z]);
		     number++) {
			struct gib *gib = &mm->gib[number - mm->first_gib];

			gib->tainted = on && (!gib->whole || stuck_in_gib(number) > 0);
			if (gib->tainted == on)
				migratetype_retype_free(&mm->zone[z], (u32)number * GIB_BLOCKS,
							GIB_BLOCKS, from, to);
		}
}

static u64 filled; /* GiB that were full once */

static bool fill_once(void)
{
	struct age_stats stats;
	const bool ok = age_begin(gigablock_seed, &stats);

	age_end();
	filled = mm_kernel.gibs;
	return ok;
}

static u64 op_of(unsigned point)
{
	return gigablock_ops * point / POINTS;
}

static void run_trace(struct leg *leg)
{
	u64 start = clock_ns();

	leg->ok = age_begin(gigablock_seed, &leg->age);
	leg->ns = clock_ns() - start;
	for (unsigned i = 0; i <= POINTS && leg->ok; i++) {
		start = clock_ns();
		age_go_on(op_of(i), gigablock_ops, &leg->age);
		leg->ns += clock_ns() - start;
		leg->point[i] = look();
	}
}

static void run_leg(struct leg *leg, bool on)
{
	const bool was_on = mm_kernel.gigablock;
	const u64 chunks = evacuated_chunks;

	leg_work_prepare(&leg->work);
	sections_close_all(&mm_kernel);
	place_by_gib(on);
	leg->tainted_before = look().tainted;
	leg_work_warm(&leg->work, &filled, mm_kernel.gibs);
	leg_work_begin(&leg->work);
	run_trace(leg);
	leg_work_end(&leg->work);
	leg->moved_aging = age_moved();
	leg->chunks = evacuated_chunks - chunks;
	age_release(RELEASED);
	leg->end = look();
	take_all(leg);
	leg->ok &= age_verify();
	age_end();
	place_by_gib(was_on);
	leg->ok &= account_machine();
}

/* ---- printing ---- */

static u64 least(const struct leg *leg)
{
	return DIV_ROUND_UP(leg->end.stuck, order_pages(GIGA_ORDER));
}

static void print_row(const char *name, u64 off, u64 on)
{
	print("  %-44s %12llu %12llu\n", name, off, on);
}

static void print_table(const struct leg *off, const struct leg *on)
{
	print("\n  %-44s %12s %12s\n", "placement", off->name, on->name);
	print_row("GiB tainted when the trace begins", off->tainted_before, on->tainted_before);
	print_row("requests of the trace", off->age.requests, on->age.requests);
	print_row("  that found no memory", off->age.failed, on->age.failed);
	print_row("  ms", off->ns / NS_PER_MS, on->ns / NS_PER_MS);
	print_row("  chunks evacuated", off->chunks, on->chunks);
	print_row("  frames moved", off->moved_aging, on->moved_aging);
	print_row("frames that cannot move, then", off->end.stuck, on->end.stuck);
	print_row("  GiB, the least that could hold them", least(off), least(on));
	print_row("  GiB tainted", off->end.tainted, on->end.tainted);
	print_row("  GiB clean", off->end.clean, on->end.clean);
	print_row("1 GiB pages without moving", off->end.giga_free, on->end.giga_free);
	print_row("2 MiB pages without moving", off->end.huge_free, on->end.huge_free);
	print_row("1 GiB pages at once, with moving", off->giga, on->giga);
	print_row("  frames moved", off->giga_moved, on->giga_moved);
	print_row("  frames, the least", off->giga_least, on->giga_least);
	print_row("2 MiB pages at once, with moving, of 256", off->huge, on->huge);
	print_row("  frames moved", off->huge_moved, on->huge_moved);
	print("\n");
}

static void record(const struct leg *leg)
{
	print("BENCH gigablock placement=%s ops=%llu seed=%llu age_ns=%llu requests=%llu "
	      "failed=%llu chunks=%llu age_moved=%llu before=%llu stuck_pages=%llu least=%llu "
	      "tainted=%llu clean=%llu giga_free=%llu huge_free=%llu giga=%llu giga_moved=%llu "
	      "giga_least=%llu huge=%llu huge_moved=%llu",
	      leg->name, gigablock_ops, gigablock_seed, leg->ns, leg->age.requests, leg->age.failed,
	      leg->chunks, leg->moved_aging, leg->tainted_before, leg->end.stuck, least(leg),
	      leg->end.tainted, leg->end.clean, leg->end.giga_free, leg->end.huge_free, leg->giga,
	      leg->giga_moved, leg->giga_least, leg->huge, leg->huge_moved);
	leg_work_print(&leg->work);
	print("\n");
	for (unsigned i = 0; i <= POINTS; i++)
		print("BENCH gigablock_time placement=%s ops=%llu seed=%llu run=1 op=%llu "
		      "stuck_pages=%llu tainted=%llu clean=%llu\n",
		      leg->name, gigablock_ops, gigablock_seed, op_of(i), leg->point[i].stuck,
		      leg->point[i].tainted, leg->point[i].clean);
}

static u64 whole_gibs(void)
{
	u64 count = 0;

	for (u64 gib = 0; gib < mm_kernel.gibs; gib++)
		count += mm_kernel.gib[gib].whole;
	return count;
}

/* The goal: one GiB more than the least, or those that had such memory before the trace. */
static bool reaches_goal(const struct leg *on)
{
	return on->end.tainted <= MAX(least(on) + 1, on->tainted_before);
}

static bool bench_gigablock(void)
{
	static struct leg off, on;

	if (whole_gibs() < GIBS_LEAST) {
		print("  # skipped: this machine has fewer than %u whole GiB\n", GIBS_LEAST);
		verdict_count(0, 0, 1);
		return true;
	}
	off = (struct leg){.name = "by-block"};
	on = (struct leg){.name = "by-GiB"};
	if (!fill_once())
		return false;
	print("Contiguity that lasts (van Riel, \"1GB superpageblock memory allocation\" RFC, "
	      "2026)\n"
	      "%llu operations on %llu whole GiB, then half of the page cache dropped\n",
	      gigablock_ops, whole_gibs());
	run_leg(&off, false);
	run_leg(&on, true);
	print_table(&off, &on);
	if (off.tainted_before != on.tainted_before) {
		pr_err("gigablock: memory is not the same at the start of both");
		return false;
	}
	if (!reaches_goal(&on))
		print("  # by-GiB misses its goal here: at most one GiB tainted beyond the least, "
		      "or "
		      "none beyond those at the start\n");
	record(&off);
	record(&on);
	return off.ok && on.ok;
}

BENCH(gigablock, "GiB that stay contiguous under a long trace of requests, by block and by GiB",
      bench_gigablock);
