/*
 * Demand faults over a large region of huge pages: S2's own test (Arora, "mm/clear_huge_page: use multi-page
 * clearing", 2023-04: mmap(MAP_HUGETLB) of 64 GiB, touched page by page), with 1, 2, 4 ... all CPUs.
 *
 * The pool is grown before the clock starts, as hugetlb's is, and once before everything so that the host has backed
 * it. A leg that does not bring each page exactly once, or needs more than one round to unmap them all, fails.
 *
 *   besides   what a fault takes besides clearing: the leg's time less that of clearing as many pages of the pool, alone.
 *             With one CPU and -icount shift=0 a nanosecond is an instruction: `make bench-icount`
 */
#include <arch/clock.h>
#include <arch/cpu.h>

#include "kernel/bench.h"
#include "kernel/cmdline.h"
#include "kernel/input.h"
#include "kernel/padata.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "kernel/shootdown.h"
#include "mm/account.h"
#include "mm/clear.h"
#include "mm/pool.h"
#include "mm/section.h"

static u64 fault_bytes = GIB(1);
OPTION_U64(fault_bytes, fault_bytes, MIB(2), TIB(16), "region of the fault benchmark, as far as it fits (64G in the original)");

enum { RECORDS_MAX = 64 };

struct leg {
	const struct clear_mode *mode;
	u64 page, pages;
	unsigned cpus;
	u64 faults, ns, clear_ns, unmap_ns, unmap_rounds;
};

static struct leg legs[RECORDS_MAX];
static unsigned leg_count;

static struct pool *pool_for(u64 page)
{
	return page == GIB(1) ? &pool_1g : &pool_2m;
}

/* ---- what is timed ---- */

struct region {
	char *addr; /* the mapping, or NULL: the pages themselves are cleared */
	struct page **page;
	u64 bytes; /* of a page */
	struct clear_how how;
};

static void touch(u64 first, u64 last, void *arg)
{
	const struct region *r = arg;

	for (u64 i = first; i < last; i++)
		*(volatile char *)(r->addr + i * r->bytes) = 1;
}

static void clear_only(u64 first, u64 last, void *arg)
{
	const struct region *r = arg;

	for (u64 i = first; i < last; i++)
		clear_huge(&r->how, page_address(r->page[i]), r->bytes, 0, NODE_NONE);
}

static u64 timed(void (*fn)(u64, u64, void *), struct region *r, u64 pages, unsigned cpus)
{
	struct padata_mt_job job = {
		.thread_fn = fn, .arg = r, .size = pages, .min_chunk = 1, .max_threads = cpus, .node = NODE_NONE};
	const u64 start = clock_ns();

	padata_run(&job);
	return clock_ns() - start;
}

/* As many pages of the pool, cleared and nothing else. */
static bool time_clear(struct leg *leg, struct clear_how how)
{
	static struct page *pages[2048];
	struct region r = {.page = pages, .bytes = leg->page, .how = how};
	u64 count = 0;

	while (count < MIN(leg->pages, ARRAY_LEN(pages)) &&
	       (pages[count] = pool_page_take(pool_for(leg->page), NODE_NONE, POOL_ANY)))
		count++;
	if (count == 0)
		return false;
	leg->clear_ns = timed(clear_only, &r, count, leg->cpus) * leg->pages / count;
	while (count > 0)
		pool_page_give(pool_for(leg->page), pages[--count]);
	return true;
}

static bool run_leg(struct leg *leg)
{
	struct clear_how how = clear_how_selected();
	struct region r = {.bytes = leg->page};
	struct shootdown_stats rounds[2];
	struct huge_usage usage[2];
	const unsigned size = leg->page == GIB(1) ? 2 : 1;
	u64 start;

	how.mode = leg->mode;
	how.threads = leg->mode->parallel ? leg->cpus : 1;
	if (!time_clear(leg, how) || !(r.addr = huge_map(leg->pages * leg->page, leg->page, HUGE_RESERVE)))
		return false;
	clear_how_force(&how);
	huge_usage(&usage[0]);
	leg->ns = timed(touch, &r, leg->pages, leg->cpus);
	huge_usage(&usage[1]);
	clear_how_force(NULL);
	leg->faults = usage[1].faults[size] - usage[0].faults[size];

	shootdown_stats_read(&rounds[0]);
	start = clock_ns();
	huge_unmap(r.addr);
	leg->unmap_ns = clock_ns() - start;
	shootdown_stats_read(&rounds[1]);
	leg->unmap_rounds = rounds[1].flushes - rounds[0].flushes;
	return leg->faults == leg->pages && leg->unmap_rounds == 1;
}

/* ---- output ---- */

static void print_fixed(const char *what, u64 thousandths)
{
	print("%s%llu.%03llu", what, (unsigned long long)(thousandths / 1000), (unsigned long long)(thousandths % 1000));
}

static u64 besides(const struct leg *leg)
{
	return leg->ns > leg->clear_ns ? (leg->ns - leg->clear_ns) * leg->cpus / leg->pages : 0;
}

static void print_leg(const struct leg *leg)
{
	print("  %s   %-6s %5u %7llu", leg->page == GIB(1) ? "1G" : "2M", leg->mode->name, leg->cpus,
	      (unsigned long long)leg->pages);
	print_fixed("   ", leg->pages * leg->page * 1000 / MAX(leg->ns, 1));
	print_fixed(" GB/s  ", leg->ns / leg->pages);
	print(" us/fault, besides %llu ns", (unsigned long long)besides(leg));
	print_fixed("   unmap ", leg->unmap_ns / 1000);
	print(" ms, %llu round\n", (unsigned long long)leg->unmap_rounds);
}

static void record(const struct leg *leg)
{
	print("BENCH fault mode=%s size=%s cpus=%u pages=%llu faults=%llu instructions=none ns=%llu clear_ns=%llu besides_ns=%llu"
	      " unmap_ns=%llu unmap_rounds=%llu\n",
	      leg->mode->name, leg->page == GIB(1) ? "1G" : "2M", leg->cpus, (unsigned long long)leg->pages,
	      (unsigned long long)leg->faults, (unsigned long long)leg->ns, (unsigned long long)leg->clear_ns,
	      (unsigned long long)besides(leg), (unsigned long long)leg->unmap_ns, (unsigned long long)leg->unmap_rounds);
}

/* ---- legs ---- */

static bool run_cpus(u64 page, u64 pages, unsigned cpus)
{
	bool ok = true;

	for (const struct clear_mode *mode = clear_modes; mode->name && !input_stop_asked(); mode++) {
		struct leg *leg = &legs[MIN(leg_count, RECORDS_MAX - 1)];

		*leg = (struct leg){.mode = mode, .page = page, .pages = pages, .cpus = cpus};
		if (!run_leg(leg)) {
			pr_err("fault: %llu pages, %llu faults, %llu rounds to unmap", (unsigned long long)pages,
			       (unsigned long long)leg->faults, (unsigned long long)leg->unmap_rounds);
			ok = false;
		}
		print_leg(leg);
		leg_count += leg_count < RECORDS_MAX;
	}
	return ok;
}

static bool run_size(u64 page)
{
	const unsigned all = cpumask_weight(&cpus_online);
	const u64 grown = pool_grow(pool_for(page), hvo_mode_selected(), MAX(fault_bytes / page, 1));
	bool ok = true;
	void *once;

	if (grown == 0) {
		print("  %s   left out: no free memory for one page\n", page == GIB(1) ? "1G" : "2M");
		return true;
	}
	once = huge_map(grown * page, page, HUGE_RESERVE | HUGE_POPULATE); /* has the host back it */
	if (once)
		huge_unmap(once);
	for (unsigned cpus = 1; cpus < all && !input_stop_asked(); cpus *= 2)
		ok &= run_cpus(page, grown, cpus);
	ok &= run_cpus(page, grown, all);
	return pool_shrink(pool_for(page), hvo_mode_selected(), grown) == grown && ok;
}

static bool bench_fault(void)
{
	bool ok;

	leg_count = 0;
	print("Touching a region of huge pages (Arora, \"mm/clear_huge_page: use multi-page clearing\", 2023-04)\n\n"
	      "  size mode    cpus   pages   brought\n");
	ok = run_size(MIB(2));
	if (cpu_has_1g_mappings() && !input_stop_asked())
		ok &= run_size(GIB(1));
	ok &= mm_account(&mm_kernel, machine_pools);
	print("\n");
	for (unsigned i = 0; i < leg_count; i++)
		record(&legs[i]);
	return ok;
}

BENCH(fault, "touch a region of 2 MiB and 1 GiB pages with 1 to all CPUs (S2)", bench_fault);
