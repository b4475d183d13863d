/*
 * will-it-scale's page_fault1 as a program. The test knows nothing of the kernel (testcase.c). This
 * file runs it on 1, 2, 4 ... all CPUs and gives it memory, a huge mapping of 4 KiB pages.
 *
 *	make run PAYLOAD=tests/payload/page_fault1
 *	make run PAYLOAD=tests/payload/page_fault1 CMDLINE='page_fault1_ms=1000 pcp.type_cache=on'
 *
 * The figure is pages per second of all CPUs together. Each CPU has a region of its own, as each
 * process has in will-it-scale. bench=page_fault1 compares the settings of pcp.type_cache=, which
 * take turns there.
 */
#include <ashlar.h>

#include "testcase.h"

static u64 page_fault1_ms = 1000;
OPTION_U64(page_fault1_ms, page_fault1_ms, 1, 600000, "milliseconds of each row");

static u64 deadline;

void *map_anonymous(unsigned long bytes)
{
	return huge_map(bytes, PAGE_BYTES, 0);
}

void unmap(void *memory, unsigned long bytes)
{
	(void)bytes; /* huge_unmap() unmaps all of it */
	huge_unmap(memory);
}

bool stop_asked(void)
{
	return clock_ns() >= deadline;
}

struct row {
	unsigned long long iterations; /* atomic */
	u32 failed;                    /* number of CPUs; atomic */
};

static void one_cpu(u64 first, u64 last, void *arg)
{
	struct row *row = arg;
	unsigned long long iterations = 0;

	for (u64 i = first; i < last; i++)
		if (!testcase(&iterations))
			__atomic_fetch_add(&row->failed, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&row->iterations, iterations, __ATOMIC_SEQ_CST);
}

static bool run_on(unsigned cpus)
{
	struct row row = {.failed = 0};
	struct padata_mt_job job = {.thread_fn = one_cpu,
				    .arg = &row,
				    .size = cpus,
				    .min_chunk = 1,
				    .max_threads = cpus,
				    .node = NODE_NONE};
	const u64 start = clock_ns();
	u64 ns;

	deadline = start + page_fault1_ms * NS_PER_MS;
	padata_run(&job);
	ns = clock_ns() - start;
	ashlar_print("  %4u %14llu %12llu%s\n", cpus, row.iterations,
		     row.iterations * 1000 / MAX(ns / NS_PER_MS, 1),
		     row.failed ? "  no memory" : "");
	ashlar_result("will_it_scale", "cpus=%u touched=%llu ns=%llu", cpus, row.iterations, ns);
	return row.failed == 0 && row.iterations % (MEMSIZE / PAGE_BYTES) == 0 &&
	       row.iterations > 0;
}

void payload_run(void)
{
	const unsigned all = cpus_started();

	ashlar_print("\nwill-it-scale page_fault1, regions of %u MiB\n\n  %4s %14s %12s\n",
		     MEMSIZE >> 20, "CPUs", "pages", "a second");
	for (unsigned cpus = 1;; cpus = MIN(cpus * 2, all)) {
		const bool ok = run_on(cpus);

		verdict_count(ok, !ok, 0);
		if (cpus == all)
			return;
	}
}
