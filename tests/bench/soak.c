/*
 * Everything at once, for a long time. Each CPU does random operations on the machine's own memory.
 * Once a minute all stop, every frame is accounted for by counters and by walking, and a summary of
 * the round is printed. `make test WHAT=soak N=n` runs it on 64 CPUs and on 2.
 *
 *   pages      of orders 0 to 9 and ranges of orders 10 to 12, marked at both ends and held for a
 *              while; a changed mark reveals a foreign write
 *   mappings   of 4 KiB and 2 MiB, populated, checked to be zero, written
 *   pools      grown, shrunk, their pages taken and given back
 *   stalls     a CPU takes no interrupt for up to 20 ms
 *
 * Rounds differ. Every second one starts with memory nearly full, and rounds take turns at the site
 * that fails at each 50th pass (kernel/core/fail.h). Each finding is logged and fails the run.
 * BENCH soak: one record for each round.
 */
#include <arch/cpu.h>

#include "mm/hugetlb/pool.h"
#include "tests/bench/measure.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/random.h"

enum {
	HELD = 96,
	RANGE_ORDER = 10,
	FAIL_EACH = 50,
	KEPT_SHARE = 16,
	POOL_STEP = 8,
	STALL_MAX_US = 20000,
	ROUND_SECONDS = 60 /* between two audits */
};

static u64 soak_seconds = 60;
OPTION_U64(bench.soak.seconds, soak_seconds, 1, 1ULL << 32, "seconds that it works");

enum held_as { HELD_PAGE, HELD_RANGE, HELD_POOL };

struct held {
	struct page *page;
	u8 order, as;
};

/* Each occupies one page. */
struct worker {
	u64 random, number;
	u64 done, refused, wrong;
	struct held held[HELD];
};

_Static_assert(sizeof(struct worker) <= PAGE_SIZE, "a worker is one page");

static struct {
	struct worker **worker; /* [cpu] */
	struct page *list;      /* the page that holds the array `worker` */
	struct page *ballast;   /* a chain */
	u64 ballast_pages, until;
} soak;

static u64 draw(struct worker *w, u64 below)
{
	return next_random(&w->random) % below;
}

/* ---- pages ---- */

static u64 mark_of(const struct worker *w, const struct held *h)
{
	return (w->number + 1) * 0x9e3779b97f4a7c15ULL ^ (virt_t)h->page;
}

/* The first or the last word. */
static volatile u64 *end_of(const struct held *h, unsigned which)
{
	volatile u64 *words = page_address(h->page);

	return which ? words + order_pages(h->order) * PAGE_SIZE / sizeof(u64) - 1 : words;
}

static void hold(struct worker *w, struct held *h, struct page *page, unsigned order,
		 enum held_as as)
{
	*h = (struct held){.page = page, .order = (u8)order, .as = (u8)as};
	if (!page) {
		w->refused++;
		return;
	}
	for (unsigned i = 0; i < 2; i++)
		*end_of(h, i) = mark_of(w, h);
}

static void give(struct worker *w, struct held *h)
{
	for (unsigned i = 0; i < 2; i++) {
		if (*end_of(h, i) == mark_of(w, h))
			continue;
		w->wrong++;
		pr_err("soak: frame %llx, order %u: %llx where CPU %llu had written %llx",
		       page_pfn(h->page), h->order, *end_of(h, i), w->number, mark_of(w, h));
	}
	if (h->as == HELD_POOL)
		pool_page_give(&pool_2m, h->page);
	else if (h->as == HELD_RANGE)
		contig_free_range(page_pfn(h->page), order_pages(h->order));
	else
		page_free(h->page);
	h->page = NULL;
}

/* Take a page, mostly a small one. */
static void take_page(struct worker *w, struct held *h)
{
	const unsigned order =
		draw(w, 4) ? (unsigned)draw(w, 4) : (unsigned)draw(w, BLOCK_ORDER + 1);
	const enum page_use use = (enum page_use)draw(w, USE_RECLAIMABLE + 1);

	hold(w, h, page_alloc(order, use, draw(w, 8) ? 0 : PAGE_ZERO, NODE_NONE), order, HELD_PAGE);
}

static void take_range(struct worker *w, struct held *h)
{
	const unsigned order = RANGE_ORDER + (unsigned)draw(w, 3);

	hold(w, h, contig_alloc(order, NODE_NONE), order, HELD_RANGE);
}

static void take_pool_page(struct worker *w, struct held *h)
{
	hold(w, h, pool_page_take(&pool_2m, this_cpu()->node, POOL_ANY), BLOCK_ORDER, HELD_POOL);
}

/* ---- other operations ---- */

static void resize_pool(struct worker *w)
{
	const u64 count = 1 + draw(w, POOL_STEP);

	if (draw(w, 2))
		w->refused += pool_grow(&pool_2m, hvo_mode_selected(), count) < count;
	else
		pool_shrink(&pool_2m, hvo_mode_selected(), count);
}

static void map(struct worker *w)
{
	const u64 page = draw(w, 4) ? PAGE_SIZE : MIB(2),
		  pages = 1 + draw(w, page == PAGE_SIZE ? 32 : 2);
	volatile u64 *words = huge_map(page * pages, page, HUGE_POPULATE);

	if (!words) {
		w->refused++;
		return;
	}
	for (u64 i = 0; i < page * pages / sizeof(u64); i += PAGE_SIZE / sizeof(u64)) {
		if (words[i] != 0) {
			pr_err("soak: word %llu of a new mapping is %llx", i, words[i]);
			w->wrong++;
		}
		words[i] = w->number;
	}
	huge_unmap((void *)words);
}

static void stall(struct worker *w)
{
	const irq_flags_t flags = irq_save();

	clock_delay_ns(draw(w, STALL_MAX_US) * NS_PER_US);
	irq_restore(flags);
}

static void one_operation(struct worker *w)
{
	struct held *h = &w->held[draw(w, HELD)];
	const u64 what = draw(w, 1000);

	w->done++;
	if (what < 900 && h->page)
		give(w, h);
	else if (what < 860)
		take_page(w, h);
	else if (what < 890 && !h->page)
		take_pool_page(w, h);
	else if (what < 900)
		take_range(w, h);
	else if (what < 950)
		map(w);
	else if (what < 995)
		resize_pool(w);
	else
		stall(w);
}

static void work(void *arg)
{
	struct worker *w = arg;

	do
		one_operation(w);
	while (clock_ns() < soak.until);
}

/* ---- rounds ---- */

/*
 * Take pages of 2 MiB until a sixteenth of memory is left. They are not used and stay allocated for
 * the round.
 */
static void fill_memory(void)
{
	struct mm_usage usage;

	for (;; soak.ballast_pages++) {
		mm_usage(&usage);
		if (usage.free + usage.unopened < usage.ram / KEPT_SHARE ||
		    !chain_take(&soak.ballast, &mm_kernel, 1, BLOCK_ORDER, 0, NODE_NONE))
			return;
	}
}

static void run_workers(void)
{
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online) {
		if (cpu != cpu_id())
			work_start(cpu, work, soak.worker[cpu]);
	}
	work(soak.worker[cpu_id()]);
	cpumask_foreach(cpu, &cpus_online) {
		if (cpu != cpu_id())
			work_wait(cpu, WORK_ENDLESS);
	}
}

struct sums {
	u64 done, refused, wrong, held;
};

static struct sums sums_now(void)
{
	struct sums sums = {0};
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online) {
		const struct worker *w = soak.worker[cpu];

		sums.done += w->done;
		sums.refused += w->refused;
		sums.wrong += w->wrong;
		for (unsigned i = 0; i < HELD; i++)
			sums.held += w->held[i].page != NULL;
	}
	return sums;
}

/* One round and its audit. True if there was no finding. */
static bool run_round(u64 round, u64 end)
{
	/* FAIL_ANY: nothing fails */
	const enum fail_site site = (enum fail_site)(round % (FAIL_SITES + 1));
	const u64 failed_before = site == FAIL_ANY ? 0 : mm_kernel.fail.failed[site];
	bool sound;
	struct sums sums;

	if (round % 2)
		fill_memory();
	if (site != FAIL_ANY)
		fail_arm(&mm_kernel.fail, site, FAIL_EACH, FAIL_AGAIN);
	soak.until = MIN(clock_ns() + ROUND_SECONDS * NS_PER_S, end);
	run_workers();
	fail_disarm(&mm_kernel.fail);
	sums = sums_now();
	sound = cpus_wait_idle() && account_machine() && sums.wrong == 0;
	print("BENCH soak round=%llu cpus=%u ops=%llu refused=%llu held=%llu pool=%llu "
	      "ballast=%llu injected=%llu wrong=%llu seed=%llu sound=%d\n",
	      round, cpumask_weight(&cpus_online), sums.done, sums.refused, sums.held,
	      pool_2m.pages, soak.ballast_pages,
	      site == FAIL_ANY ? 0ULL : (mm_kernel.fail.failed[site] - failed_before), sums.wrong,
	      soak_seed, sound);
	soak.ballast_pages -= chain_give(&soak.ballast, &mm_kernel);
	return sound;
}

/* ---- beginning and end ---- */

static bool make_worker(cpu_t cpu)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, PAGE_ZERO, cpu_data(cpu)->node);

	soak.worker[cpu] = page ? page_address(page) : NULL;
	if (!page)
		return false;
	soak.worker[cpu]->number = cpu;
	soak.worker[cpu]->random = (0x9e3779b97f4a7c15ULL * (cpu + 1)) ^ soak_seed;
	return true;
}

static bool begin(void)
{
	unsigned order = 0;
	cpu_t cpu;

	while (order_pages(order) * PAGE_SIZE < cpu_count * sizeof(soak.worker[0]))
		order++;
	soak.list = page_alloc(order, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);
	if (!soak.list)
		return false;
	soak.worker = page_address(soak.list);
	cpumask_foreach(cpu, &cpus_online) {
		if (!make_worker(cpu))
			return false;
	}
	return true;
}

static void end_all(void)
{
	cpu_t cpu;

	for (cpu = 0; soak.list && cpu < cpu_count; cpu++) {
		struct worker *w = soak.worker[cpu];

		for (unsigned i = 0; w && i < HELD; i++)
			if (w->held[i].page)
				give(w, &w->held[i]);
		if (w)
			page_free(pfn_to_page(virt_to_phys(w) >> PAGE_SHIFT));
	}
	if (soak.list)
		page_free(soak.list);
	pool_shrink(&pool_2m, hvo_mode_selected(), pool_2m.pages - pool_2m.boot);
}

static bool run_soak(void)
{
	const u64 end = clock_ns() + soak_seconds * NS_PER_S;
	bool sound;

	memset(&soak, 0, sizeof(soak));
	sound = begin();
	if (!sound)
		pr_err("soak: no memory for its own records");
	for (u64 round = 0; sound && clock_ns() < end; round++)
		sound = run_round(round, end);
	end_all();
	return account_machine() && sound;
}

BENCH(soak,
      "random operations on pages, ranges, mappings and pools on all CPUs, audited (seconds=, "
      "seed=)",
      run_soak);
