/*
 * What a machine can still do after days of work: pages of 1 GiB and of 2 MiB that can be had, from
 * the fresh machine and after each of ten days, in each mode. At the end of a day all of its memory
 * has been given back.
 *
 * A day: pages of 1 GiB, as many as there are; pages of 2 MiB over most of memory; small movable
 * pages over a quarter of it. tests/report/linux/init does the same with Linux, through sysfs and a
 * file in memory.
 */
#include "kernel/console/input.h"
#include "kernel/run/bench.h"
#include "tests/bench/work.h"
#include "tests/kernel/mm_test.h"

enum { DAYS = 10, MANY = 1 << 26, SHARE = 4 };

static const char *const modes[] = {"off", "unbatched", "batched", "on"};

static u64 frames_of_ram(void)
{
	u64 frames = 0;

	for (unsigned z = 0; z < mm_kernel.zones; z++)
		frames += mm_kernel.zone[z].ram;
	return frames;
}

/* All pages that can be had, and back. */
static u64 most(struct pool *pool, const struct hvo_mode *mode)
{
	const u64 pages = pool_grow(pool, mode, MANY);

	pool_shrink(pool, mode, pages);
	return pages;
}

static void small_pages(u64 frames)
{
	struct page *chain = NULL;

	chain_take(&chain, &mm_kernel, frames, 0, 0, NODE_NONE);
	chain_give(&chain, &mm_kernel);
}

/* The machine at the end of a day: a line of the table. False if someone kept a page. */
static bool show_day(const struct hvo_mode *mode, unsigned day, u64 busy_ns, struct leg_work *work)
{
	u64 start, ns, large, small;

	leg_work_begin(work);
	start = clock_ns();
	large = most(&pool_1g, mode);
	ns = clock_ns() - start;
	leg_work_end(work);
	small = most(&pool_2m, mode);

	print("  %-9s %3u %9llu %9llu %12llu %12llu\n", mode->name, day, large, small,
	      ns / NS_PER_US, busy_ns / NS_PER_US);
	print("BENCH history mode=%s day=%u ns=%llu day_ns=%llu large=%llu small=%llu", mode->name,
	      day, ns, busy_ns, large, small);
	leg_work_print(work);
	print("\n");
	return pool_1g.pages + pool_2m.pages == 0;
}

static void busy_day(const struct hvo_mode *mode, u64 frames)
{
	most(&pool_1g, mode);
	pool_grow(&pool_2m, mode, frames / BLOCK_FRAMES * (SHARE - 1) / SHARE);
	pool_shrink(&pool_2m, mode, pool_2m.pages);
	small_pages(frames / SHARE);
}

static bool run_mode(const struct hvo_mode *mode)
{
	const u64 frames = frames_of_ram();
	u64 had = 0; /* no page was made in this mode */
	bool ok = true;

	for (unsigned day = 0; day <= DAYS && ok && !input_stop_asked(); day++) {
		const u64 start = clock_ns();
		struct leg_work work = {0};

		leg_work_prepare(&work);
		if (day == 0)
			sections_close_all(&mm_kernel);
		else
			busy_day(mode, frames);
		leg_work_warm(&work, &had, frames);
		ok = show_day(mode, day, clock_ns() - start, &work);
	}
	return ok;
}

static bool bench_history(void)
{
	bool ok = pool_1g.pages + pool_2m.pages == 0;

	print("Pages that can be had after days of work, all of which was given back\n\n"
	      "  hvo=      day     1 GiB     2 MiB   1 GiB us    day us\n");
	if (!ok)
		print("  the pools must be empty\n");
	for (unsigned i = 0; i < ARRAY_LEN(modes) && ok && !input_stop_asked(); i++)
		ok = run_mode(hvo_mode_find(modes[i]));
	sections_close_all(&mm_kernel);
	return ok;
}

BENCH(history, "pages of both sizes that can be had after each of ten days of work", bench_history);
