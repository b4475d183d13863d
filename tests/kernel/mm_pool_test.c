/* The pool: no page is lost, whichever CPU grows or shrinks it. */
#include "mm/hugetlb/pool.h"

#include "kernel/run/test.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/zone/section.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/modes.h"

struct race {
	struct arena *a;
	const struct hvo_mode *mode;
	u64 grown, shrunk;
	u32 mixed_up;
};

enum { RACE_TURNS = 6, RACE_PAGES = 4 };

static void grow_and_shrink(void *arg)
{
	struct race *r = arg;

	for (unsigned turn = 0; turn < RACE_TURNS; turn++) {
		struct page *page;

		atomic_fetch_add(&r->grown, pool_grow(&r->a->pool, r->mode, RACE_PAGES));
		page = pool_page_take(&r->a->pool, 0, POOL_ANY);
		if (page) {
			page->private[0] = (u64)(virt_t)&page;
			for (unsigned i = 1; i < BLOCK_FRAMES; i++)
				if (page_head(&page[i]) != page)
					atomic_fetch_add(&r->mixed_up, 1);
			if (page->private[0] != (u64)(virt_t)&page)
				atomic_fetch_add(&r->mixed_up, 1);
			pool_page_give(&r->a->pool, page);
		}
		atomic_fetch_add(&r->shrunk, pool_shrink(&r->a->pool, r->mode, RACE_PAGES));
	}
}

static void check_race(const char *name, struct arena *a)
{
	struct race r = {.a = a, .mode = hvo_mode_find(name)};

	if (!a)
		return;
	cpus_run_together(grow_and_shrink, &r);
	EXPECT(r.grown > 0);
	EXPECT_EQ(r.mixed_up, 0);
	EXPECT_EQ(a->pool.pages, r.grown - r.shrunk);
	EXPECT_EQ(a->pool.free, a->pool.pages);
	EXPECT(arena_accounted(a));
	pool_shrink(&a->pool, r.mode, a->pool.pages);
	EXPECT_EQ(a->pool.pages, 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_pool, all_cpus_resize_it_with_hvo_on)
{
	check_race("on", arena_borrow(MIB(16), .phantom = GIB(1)));
}

TEST(mm_pool, all_cpus_resize_it_batched)
{
	check_race("batched", arena_borrow(MIB(256)));
}
