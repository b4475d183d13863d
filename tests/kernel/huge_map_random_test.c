/*
 * Random operations on huge mappings, compared with the reference of a space (space_model.h). No
 * page may be brought twice, and none may be lost.
 *
 * Each CPU has mappings of its own and knows the state of each 4 KiB page. All CPUs share one more
 * mapping, where each has its own word in every page and releases pages that others use. The word
 * is therefore zero or what the CPU wrote. `make test WHAT=soak` does a million operations.
 *
 * A CPU that is alone chooses from more operations: promised pages, populating, the rights of
 * whole mappings, and failures of each of these and of changes of parts. It then compares whole
 * mappings, counts rounds and promises, and may be led by a fuzzer (tests/fuzz/ops_fuzz.c).
 */
#include "mm/hugetlb/pool.h"
#include "tests/kernel/huge_check.h"
#include "tests/kernel/random.h"
#include "tests/kernel/rounds.h"
#include "tests/kernel/space_look.h"
#include "tests/kernel/test.h"

enum { MINE = 4, SHARED_PAGES = 4, WORKERS_MAX = 64, POOL_PAGES = 4 };
#ifdef ASHLAR_HOSTED
enum { ALONE_OPS = 500 };
#else
enum { ALONE_OPS = 100 }; /* emulated */
#endif

enum { R = USER_RIGHT_READ, RW = USER_RIGHT_READ | USER_RIGHT_WRITE };

static u64 soak_ops = 600;
OPTION_U64(test.soak_ops, soak_ops, 1, 1ULL << 40,
	   "operations of mm.huge_map.random_operations, by all CPUs together");

struct mapping {
	char *addr;
	u64 unit, pages;     /* in 4 KiB pages: the size of its pages, and of all */
	u8 rights;           /* of all of it, at its last change as a whole */
	struct page *memory; /* of the model */
	struct space_model model;
};

struct worker {
	struct mapping mine[MINE];
	struct random_source random;
	bool alone;
	u64 touched;
};

static struct {
	char *shared;
	u64 ops;
	u32 workers;
	struct worker worker[WORKERS_MAX];
} soak;

static u64 pick(struct worker *w, u64 below)
{
	return random_below(&w->random, below);
}

/* A range of whole pages of `unit`. Returns its size. */
static u64 pick_range(struct worker *w, const struct mapping *m, u64 unit, u64 *first)
{
	*first = ALIGN_DOWN(pick(w, m->pages), unit);
	return ALIGN_UP(1 + pick(w, m->pages - *first), unit);
}

static char *addr_of(const struct mapping *m, u64 page)
{
	return m->addr + page * PAGE_SIZE;
}

static volatile u64 *word_of(const struct mapping *m, u64 page, u64 index)
{
	return word_at(addr_of(m, page), index * sizeof(u64));
}

static bool is_there(const struct mapping *m, u64 page)
{
	return space_leaf(&huge_space, (virt_t)addr_of(m, page));
}

/* ---- looking ---- */

static void look_at(const struct mapping *m, u64 page)
{
	const struct space_page *p = &m->model.page[page];
	const virt_t at = (virt_t)addr_of(m, page);
	const char *wrong = space_page_wrong(&huge_space, at, p);

	if (wrong)
		test_fail(__FILE__, __LINE__, "page %llu has %s", page, wrong);
	EXPECT_EQ(is_there(m, page), p->touched && p->rights);
	for (u64 i = 0; p->touched && p->rights && i < 512; i += 73)
		EXPECT_EQ(*word_of(m, page, i), space_model_word(p->word, i));
}

/* Of a large mapping, every 61st page from another one each time. */
static void look(const struct mapping *m, u64 time)
{
	const u64 step = m->unit == 1 ? 1 : 61;

	for (u64 i = time % step; i < m->pages; i += step)
		look_at(m, i);
	EXPECT_EQ(huge_map_at((virt_t)m->addr)->object.bytes, m->pages * PAGE_SIZE);
}

/* Promises to this worker that no page has used yet. */
static u64 promised_to(const struct worker *w)
{
	u64 promised = 0;

	for (const struct mapping *m = w->mine; m < w->mine + MINE; m++)
		for (u64 i = 0; m->addr && i < m->pages; i += m->unit)
			promised += m->model.page[i].promised && !m->model.page[i].touched;
	return promised;
}

/* ---- operations ---- */

/* Use mostly small pages, which test the same code and take less time to clear. */
static void map_mine(struct worker *w, struct mapping *m)
{
	const bool large = w->alone ? m < w->mine + MINE / 2 : pick(w, 8) == 0;
	const u64 page = large ? MIB(2) : PAGE_SIZE, most = large ? 3 : 18;
	struct huge_request request = {.size = most * page, .page = page};
	struct space_page first = {.rights = RW};

	if (w->alone) {
		/* With HUGE_POOL alone there may be no page. */
		request.flags = large && pick(w, 2) ? HUGE_RESERVE : 0;
	}
	m->memory = page_alloc(large ? 4 : 0, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);
	m->addr = m->memory ? huge_map_with(&request) : NULL;
	if (!m->addr) { /* no addresses or promises are left, where there are few */
		if (m->memory)
			page_free(m->memory);
		return;
	}
	first.promised = request.flags & HUGE_RESERVE;
	m->rights = RW;
	m->unit = page / PAGE_SIZE;
	m->pages = most * m->unit;
	m->model = (struct space_model){page_address(m->memory), .pages = m->pages};
	space_model_map(&m->model, 0, m->pages, &first, SPACE_REPLACE);
}

static void unmap_mine(struct mapping *m)
{
	if (!m->addr)
		return;
	huge_unmap(m->addr);
	page_free(m->memory);
	m->addr = NULL;
}

/* A touch brings a whole page, whatever may be accessed of it. */
static void bring(struct mapping *m, u64 page)
{
	for (u64 i = 0; i < m->unit; i++)
		space_model_touch(&m->model, ALIGN_DOWN(page, m->unit) + i);
}

static void touch_mine(struct worker *w, struct mapping *m)
{
	const u64 page = pick(w, m->pages), end = pick(w, 2);
	volatile u64 *there = word_of(m, page, end * SPACE_LAST_WORD);
	u64 *word = &m->model.page[page].word[end];

	if (!space_model_may(&m->model, page, USER_READ))
		return;
	w->touched += !m->model.page[page].touched;
	bring(m, page);
	EXPECT_EQ(*there, *word);
	if (space_model_may(&m->model, page, USER_WRITE) && pick(w, 4))
		*there = *word = page + 1;
}

static void release_mine(struct worker *w, struct mapping *m)
{
	u64 first;
	const u64 count = pick_range(w, m, m->unit, &first);

	EXPECT_EQ(huge_release(addr_of(m, first), count * PAGE_SIZE), 0);
	space_model_discard(&m->model, first, count);
}

static void populate_mine(struct worker *w, struct mapping *m)
{
	const int err = huge_populate(m->addr, m->pages * PAGE_SIZE);

	EXPECT(err == 0 || err == -ENOMEM);
	for (u64 i = 0; i < m->pages; i++)
		if (is_there(m, i))
			bring(m, i);
	for (u64 i = 0; err == 0 && i < m->pages; i++)
		EXPECT(m->model.page[i].touched || !m->model.page[i].rights);
}

/* A round if pages that are there lose a right, and none where no page is there. */
static void expect_rounds(const struct worker *w, const struct mapping *m, u64 rounds)
{
	EXPECT(!w->alone || (rounds <= m->model.there && rounds >= m->model.lost));
}

static void protect_mine(struct worker *w, struct mapping *m)
{
	const u64 before = rounds_so_far();

	m->rights = m->rights == RW ? R : RW;
	EXPECT_EQ(huge_protect(m->addr, m->pages * PAGE_SIZE,
			       m->rights == RW ? HUGE_READ_WRITE : HUGE_READ_ONLY),
		  0);
	space_model_protect(&m->model, 0, m->pages, m->rights);
	expect_rounds(w, m, rounds_so_far() - before);
}

/* A page of which all parts get the same rights is in one piece again. */
static void change_part(struct worker *w, struct mapping *m)
{
	static const u8 rights_of[] = {
		[HUGE_READ_WRITE] = RW, [HUGE_READ_ONLY] = R, [HUGE_NONE] = 0};
	const enum huge_access access = (enum huge_access)pick(w, ARRAY_LEN(rights_of));
	const u64 before = rounds_so_far();
	u64 first;
	const u64 count = pick_range(w, m, pick(w, 2) ? m->unit : 1, &first);
	const int err = huge_protect(addr_of(m, first), count * PAGE_SIZE, access);
	enum pt_level level;

	EXPECT(err == 0 || (err == -ENOMEM && w->alone));
	if (err)
		return;
	for (u64 i = ALIGN_UP(first, m->unit); i + m->unit <= first + count; i += m->unit)
		EXPECT(!huge_leaf(addr_of(m, i), &level) ||
		       pt_level_size(level) == m->unit * PAGE_SIZE);
	space_model_protect(&m->model, first, count, rights_of[access]);
	expect_rounds(w, m, rounds_so_far() - before);
}

/* Any of these may be refused. Pages keep what was written, and others are zero. */
static void change_mine(struct worker *w, struct mapping *m)
{
	static void (*const changes[])(struct worker *, struct mapping *) = {
		populate_mine, protect_mine, change_part};

	fail_arm(&mm_kernel.fail, (enum fail_site)pick(w, FAIL_ANY + 1), 1 + (u32)pick(w, 8),
		 FAIL_ONCE);
	changes[pick(w, ARRAY_LEN(changes))](w, m);
	fail_disarm(&mm_kernel.fail);
}

static void touch_shared(struct worker *w)
{
	volatile u64 *word = word_at(soak.shared, pick(w, SHARED_PAGES) * PAGE_SIZE +
							  64 * (u64)(w - soak.worker));
	const u64 was = *word; /* read once, because the page may be another one the next moment */

	EXPECT(was == 0 || was == (virt_t)w);
	*word = (virt_t)w;
}

static void one_operation(struct worker *w)
{
	struct mapping *m = &w->mine[pick(w, MINE)];
	const u64 what = pick(w, 32);

	if (!m->addr)
		map_mine(w, m);
	else if (what == 0 || (what == 31 && w->alone))
		unmap_mine(m);
	else if (what == 1)
		release_mine(w, m);
	else if (what == 2)
		huge_release(soak.shared + pick(w, SHARED_PAGES) * PAGE_SIZE, PAGE_SIZE);
	else if (what == 3)
		change_part(w, m);
	else if (what < 20 && w->alone)
		change_mine(w, m);
	else if (what < 12)
		touch_shared(w);
	else
		touch_mine(w, m);
}

static void unmap_all(struct worker *w)
{
	for (unsigned i = 0; i < MINE; i++)
		unmap_mine(&w->mine[i]);
}

static void work(void *arg)
{
	const u32 number = atomic_fetch_add(&soak.workers, 1);
	struct worker *w = &soak.worker[number % WORKERS_MAX];

	w->random = (struct random_source){.state = 0x9e3779b97f4a7c15ULL * (number + 1)};
	while (atomic_fetch_add(&soak.ops, 1) < soak_ops)
		one_operation(w);
	unmap_all(w);
}

static void work_alone(const struct random_source *random)
{
	struct worker *w = &soak.worker[0];
	const u64 before = pool_2m.reserved;
	u64 grown;

	w->random = *random;
	w->alone = true;
	grown = pool_grow(&pool_2m, hvo_mode_selected(), pick(w, 2) * POOL_PAGES);
	for (u64 i = 0; random->data ? !random_is_used_up(&w->random) : i < ALONE_OPS; i++) {
		struct mapping *m = &w->mine[i % MINE];

		one_operation(w);
		if (m->addr && !test_failed())
			look(m, i);
		EXPECT_EQ(pool_2m.reserved - before, promised_to(w));
	}
	unmap_all(w);
	EXPECT_EQ(pool_shrink(&pool_2m, hvo_mode_selected(), grown), grown);
}

/* By all CPUs, or alone. Afterwards as much is mapped as before. */
static void soak_run(const struct random_source *alone)
{
	struct huge_usage before, after;
	u64 touched = 0;

	__builtin_memset(&soak, 0, sizeof(soak));
	huge_usage(&before);
	soak.shared = huge_map(SHARED_PAGES * PAGE_SIZE, PAGE_SIZE, 0);
	REQUIRE(soak.shared);
	if (alone)
		work_alone(alone);
	else
		cpus_run_together(work, NULL);
	huge_unmap(soak.shared);
	huge_usage(&after);
	for (unsigned i = 0; i < WORKERS_MAX; i++)
		touched += soak.worker[i].touched;
	EXPECT(after.faults[0] + after.faults[1] - before.faults[0] - before.faults[1] >= touched);
	for (unsigned i = 0; i < ARRAY_LEN(after.mapped); i++)
		EXPECT_EQ(after.mapped[i], before.mapped[i]);
	EXPECT(alone || after.exhausted == before.exhausted); /* alone, calls fail */
}

void random_mappings(const u8 *data, size_t len)
{
	soak_run(&(struct random_source){.data = data, .len = len});
}

TEST(mm_huge_map, random_operations)
{
	soak_run(NULL);
}

TEST(mm_huge_map, random_rights_and_promises_agree_with_a_model)
{
	for (u64 seed = 2; seed <= 3; seed++) /* with a pool and without */
		soak_run(&(struct random_source){.state = seed * 0x9e3779b97f4a7c15ULL});
}
