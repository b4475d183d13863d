/*
 * Random operations on huge mappings, by several CPUs at once. No page may be brought twice, and
 * none may be lost.
 *
 * Each CPU has mappings of its own and knows the state of each page: a first touch shows zero, and
 * a later touch shows what was written. All CPUs share one mapping, where each has its own word in
 * every page and releases pages that others use. The word is therefore zero or what the CPU wrote.
 * `make test WHAT=soak` does a million operations.
 *
 * A fuzzer (tests/fuzz/ops_fuzz.c) chooses from more operations: mappings with promised pages,
 * growing them, making them read-only for a while, and failures of every call that may be refused.
 */
#include <arch/atomic.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/percpu.h"
#include "kernel/run/test.h"
#include "mm/hugetlb/pool.h"
#include "mm/memmap/page.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/random.h"
#include "tests/kernel/modes.h"

enum {
	MINE = 4,
	MINE_PAGES = 16,
	SHARED_PAGES = 4,
	WORKERS_MAX = 64,
	PAGES_MAX = 24,
	POOL_PAGES = 4
};

static u64 soak_ops = 600;
OPTION_U64(test.soak_ops, soak_ops, 1, 1ULL << 40,
	   "operations of mm.huge_map.random_operations, by all CPUs together");

struct mapping {
	char *addr;
	u64 page, pages;
	u32 written; /* a bit for each page */
	bool read_only;
};

struct worker {
	struct mapping mine[MINE];
	struct random_source random;
	u64 touched;
};

static struct {
	char *shared;
	u64 ops, wrong, refused, brought;
	u32 workers;
	struct worker worker[WORKERS_MAX];
} soak;

static u64 pick(struct worker *w, u64 below)
{
	return random_below(&w->random, below);
}

static volatile u64 *word_of(const char *addr, u64 page, u64 number, u64 word)
{
	return (volatile u64 *)(addr + number * page) + 8 * word;
}

static void expect_word(volatile u64 *word, u64 value)
{
	if (*word != value)
		atomic_fetch_add(&soak.wrong, 1);
}

/* Use mostly small pages, which test the same code and take less time to clear. */
static void map_mine(struct worker *w, struct mapping *m)
{
	const u64 page = pick(w, 8) ? PAGE_SIZE : MIB(2),
		  pages = page == PAGE_SIZE ? MINE_PAGES : 2;
	struct huge_request request = {.size = pages * page, .page = page};

	if (w->random.data) {
		/* With HUGE_POOL alone there may be no page. */
		request.flags = page > PAGE_SIZE && pick(w, 2) ? HUGE_RESERVE : 0;
		request.room = pick(w, 2) * PAGES_MAX * page;
	} else if (pick(w, 2)) {
		request.flags = HUGE_LOW;
	}
	*m = (struct mapping){.addr = huge_map_with(&request), .page = page, .pages = pages};
	if (!m->addr)
		atomic_fetch_add(&soak.refused, 1); /* no addresses are left, where there are few */
}

static void touch_mine(struct worker *w, struct mapping *m)
{
	const u64 number = pick(w, m->pages);
	volatile u64 *word = word_of(m->addr, m->page, number, pick(w, 64));
	volatile u64 *tag = word_of(m->addr, m->page, number, 3);
	const u32 bit = 1U << number;

	expect_word(tag, m->written & bit ? number + 1 : 0);
	if (!(m->written & bit) && word != tag)
		expect_word(word, 0);
	w->touched += !(m->written & bit);
	if (m->read_only)
		return;
	m->written |= bit;
	*tag = number + 1;
}

static void release_mine(struct worker *w, struct mapping *m)
{
	const u64 first = pick(w, m->pages), count = 1 + pick(w, m->pages - first);

	if (huge_release(m->addr + first * m->page, count * m->page) < 0)
		atomic_fetch_add(&soak.wrong, 1);
	for (u64 i = first; i < first + count; i++)
		m->written &= ~(1U << i);
}

/*
 * Grow or populate the mapping, or change its rights; any of these may be refused. Pages keep what
 * was written, and others are zero.
 */
static void change_mine(struct worker *w, struct mapping *m)
{
	const u64 what = pick(w, 4), pages = MIN(m->pages + 1 + pick(w, 4), PAGES_MAX);
	int err = 0;

	fail_arm(&mm_kernel.fail, (enum fail_site)pick(w, FAIL_ANY + 1), 1 + (u32)pick(w, 8),
		 FAIL_ONCE);
	if (what == 0)
		err = huge_populate(m->addr, m->pages * m->page);
	else if (what == 1 && (m->page == PAGE_SIZE || pages <= POOL_PAGES))
		err = huge_grow(m->addr, pages * m->page);
	else if (what > 1)
		err = huge_protect(m->addr, m->read_only ? HUGE_READ_WRITE : HUGE_READ_ONLY);
	fail_disarm(&mm_kernel.fail);
	if (err && (what > 1 || (err != -ENOMEM && (what == 0 || pages > m->pages))))
		atomic_fetch_add(&soak.wrong, 1);
	if (!err && what == 1 && (m->page == PAGE_SIZE || pages <= POOL_PAGES))
		m->pages = pages;
	if (!err && what > 1)
		m->read_only = !m->read_only;
}

static void touch_shared(struct worker *w)
{
	volatile u64 *word =
		word_of(soak.shared, PAGE_SIZE, pick(w, SHARED_PAGES), (u64)(w - soak.worker));
	const u64 was = *word; /* read once, because the page may be another one the next moment */

	if (was != 0 && was != (virt_t)w)
		atomic_fetch_add(&soak.wrong, 1);
	*word = (virt_t)w;
}

static void one_operation(struct worker *w)
{
	struct mapping *m = &w->mine[pick(w, MINE)];
	const u64 what = pick(w, 32);

	if (!m->addr)
		map_mine(w, m);
	else if (what == 0) {
		huge_unmap(m->addr);
		m->addr = NULL;
	} else if (what == 1)
		release_mine(w, m);
	else if (what == 2)
		huge_release(soak.shared + pick(w, SHARED_PAGES) * PAGE_SIZE, PAGE_SIZE);
	else if (what < 6 && w->random.data)
		change_mine(w, m);
	else if (what < 12)
		touch_shared(w);
	else
		touch_mine(w, m);
}

static void unmap_mine(struct worker *w)
{
	for (unsigned i = 0; i < MINE; i++)
		if (w->mine[i].addr)
			huge_unmap(w->mine[i].addr);
}

static void work(void *arg)
{
	const u32 number = atomic_fetch_add(&soak.workers, 1);
	struct worker *w = &soak.worker[number % WORKERS_MAX];

	w->random = (struct random_source){.state = 0x9e3779b97f4a7c15ULL * (number + 1)};
	while (atomic_fetch_add(&soak.ops, 1) < soak_ops)
		one_operation(w);
	unmap_mine(w);
}

void random_mappings(const u8 *data, size_t len)
{
	struct worker *w = &soak.worker[0];
	struct huge_usage before, after;

	__builtin_memset(&soak, 0, sizeof(soak));
	w->random = (struct random_source){.data = data, .len = len};
	pool_resize(&pool_2m, hvo_mode_find("on"), pick(w, 2) * POOL_PAGES);
	huge_usage(&before);
	soak.shared = huge_map(SHARED_PAGES * PAGE_SIZE, PAGE_SIZE, 0);
	REQUIRE(soak.shared);
	while (!random_is_used_up(&w->random))
		one_operation(w);
	unmap_mine(w);
	huge_unmap(soak.shared);
	huge_usage(&after);
	EXPECT_EQ(soak.wrong, 0);
	EXPECT_EQ(pool_2m.reserved, 0);
	EXPECT_EQ(pool_resize(&pool_2m, hvo_mode_find("on"), 0), 0);
	for (unsigned i = 0; i < ARRAY_LEN(after.mapped); i++)
		EXPECT_EQ(after.mapped[i], before.mapped[i]);
}

TEST(mm_huge_map, random_operations)
{
	struct huge_usage before, after;
	u64 touched = 0;

	__builtin_memset(&soak, 0, sizeof(soak));
	soak.shared = huge_map(SHARED_PAGES * PAGE_SIZE, PAGE_SIZE, 0);
	REQUIRE(soak.shared);
	huge_usage(&before);
	cpus_run_together(work, NULL);
	huge_unmap(soak.shared);
	huge_usage(&after);
	EXPECT_EQ(soak.wrong, 0);
	for (unsigned i = 0; i < WORKERS_MAX; i++)
		touched += soak.worker[i].touched;
	EXPECT(after.faults[0] + after.faults[1] - before.faults[0] - before.faults[1] >= touched);
	for (unsigned i = 0; i < ARRAY_LEN(after.mapped); i++)
		EXPECT_EQ(after.mapped[i], before.mapped[i]);
	EXPECT_EQ(after.exhausted, before.exhausted);
}
