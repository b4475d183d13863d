/*
 * Fault injection for huge mappings: every frame, page and table that a call or a touch asks for
 * fails once, one at a time.
 *
 * A step is repeated with the first, second, third ... request failing, until a run meets no
 * failure. After each run every frame must have one owner, the counted usage must match the page
 * tables, and promises must be exact. The same step must then succeed when it is repeated, and all
 * pages must be usable. After unmapping, only the upper tables that are kept may remain.
 *
 * 1 GiB pages are cleared in samples only, because these cases check who owns the pages.
 * hvo_fault_test.c covers pools and the memmap.
 */
#include "mm/clear/clear.h"
#include "tests/kernel/huge_check.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/space_look.h"

enum { FAULTS_MAX = 200, LEVELS = PT_PUD + 1 };
#define SIZE MIB(2)

struct mapping {
	const struct step *step;
	/* NULL: not mapped. Volatile, because a touch happens between two instructions */
	char *volatile addr;
	u64 pages;          /* number of pages now, of the mapping's own size */
	volatile u64 asked; /* how often a touch found no page */
	u64 kept;           /* pages that hold a mark */
};

struct step {
	const char *name;
	u64 page, pages;
	unsigned flags;
	u64 pool;                           /* pages of this size in the pool */
	bool (*prepare)(struct mapping *m); /* NULL: nothing is mapped before the step */
	bool (*run)(struct mapping *m);
	u32 least; /* places that must have failed */
};

/* ---- steps ---- */

/* Nothing has to be freed, because the injected failure happens only once. */
static bool ask_again(void *ctx, void *addr)
{
	struct mapping *m = ctx;

	return m->asked++ < FAULTS_MAX;
}

static bool map_with(struct mapping *m, unsigned flags)
{
	const struct huge_request request = {.size = m->step->page * m->step->pages,
					     .page = m->step->page,
					     .flags = m->step->flags | flags,
					     .exhausted = ask_again,
					     .ctx = m};

	m->addr = huge_map_with(&request);
	m->pages = m->addr ? m->step->pages : 0;
	return m->addr;
}

static bool map_only(struct mapping *m)
{
	return map_with(m, 0);
}

static bool map_populated(struct mapping *m)
{
	return map_with(m, HUGE_POPULATE);
}

static bool populate(struct mapping *m)
{
	return huge_populate(m->addr, m->pages * m->step->page) == 0;
}

/* The mapping is made in this step and not in `prepare`, so that its own requests can fail, too. */
static bool touch_all(struct mapping *m)
{
	if (!m->addr && !map_only(m))
		return false;
	for (u64 i = m->kept; i < m->pages; i++)
		if (*word_at(m->addr, i * m->step->page + m->step->page / 2) != 0)
			test_fail(__FILE__, __LINE__, "page %llu comes with something in it", i);
	return true;
}

static bool mark_all(struct mapping *m)
{
	if (!map_populated(m))
		return false;
	for (m->kept = 0; m->kept < m->pages; m->kept++)
		*word_at(m->addr, m->kept * m->step->page + m->step->page / 2) = m->kept + 1;
	return true;
}

static bool release(struct mapping *m)
{
	if (huge_release(m->addr, m->pages * m->step->page) < 0)
		return false;
	m->kept = 0;
	return populate(m);
}

/* Pages that a touch brings while the mapping is read-only must be read-only. */
static bool protect(struct mapping *m)
{
	if (huge_protect(m->addr, m->pages * m->step->page, HUGE_READ_ONLY) < 0 || !touch_all(m))
		return false;
	for (u64 i = 0; i < m->pages; i++)
		if (huge_writable(m->addr + i * m->step->page + m->step->page / 2))
			test_fail(__FILE__, __LINE__, "page %llu can be written to", i);
	return huge_protect(m->addr, m->pages * m->step->page, HUGE_READ_WRITE) == 0;
}

/* ---- the state after each step ---- */

/* After success every page, or smaller ones in its place, must be mapped. */
static void expect_all_there(const struct mapping *m)
{
	for (u64 i = 0; i < m->pages; i++) {
		const char *page = m->addr + i * m->step->page;
		enum pt_level level;

		EXPECT(huge_leaf(page, &level) || huge_leaf(page + m->step->page / 2, &level));
	}
}

static struct pool *pool_of(const struct step *step)
{
	return step->page == GIB(1) ? &pool_1g : &pool_2m;
}

/* `before` is the usage when the case had mapped nothing. */
static void expect_sound(const struct mapping *m, const struct huge_usage *before)
{
	const struct step *step = m->step;
	const virt_t at = (virt_t)m->addr;
	struct huge_usage now;
	u64 leaves[LEVELS] = {0}, where;

	EXPECT(!at ||
	       !space_leaves_wrong(&huge_space, at, at + m->pages * step->page, leaves, &where));
	huge_usage(&now);
	for (unsigned level = 0; level < LEVELS; level++)
		EXPECT_EQ(now.mapped[level] - before->mapped[level], leaves[level]);
	if (step->flags & HUGE_RESERVE)
		EXPECT_EQ(pool_of(step)->reserved,
			  m->addr ? m->pages - leaves[step->page == GIB(1) ? PT_PUD : PT_PMD] : 0);
	EXPECT_EQ(now.exhausted - before->exhausted >= m->asked, true);
	EXPECT(account_machine());
}

/* Touch and write every page. Pages that were kept must still have their marks. */
static void expect_usable(struct mapping *m)
{
	const u64 half = m->step->page / 2;

	EXPECT(touch_all(m));
	for (u64 i = 0; i < m->pages; i++) {
		EXPECT_EQ(*word_at(m->addr, i * m->step->page + half), i < m->kept ? i + 1 : 0);
		*word_at(m->addr, i * m->step->page + half) = ~0ULL;
	}
}

/* Run the step once with one failure. Returns true if the failure was met. */
static bool run_with_fault(const struct step *step, u32 fault)
{
	struct mapping m = {.step = step};
	struct huge_usage usage, after;
	struct mm_usage owners, owners_after;
	bool met, done;

	huge_usage(&usage);
	mm_usage(&owners);
	EXPECT(!step->prepare || step->prepare(&m));
	fail_arm(&mm_kernel.fail, FAIL_ANY, fault, FAIL_ONCE);
	done = step->run(&m);
	met = fail_disarm(&mm_kernel.fail);
	EXPECT(done || met);
	EXPECT(m.asked <= met);
	expect_sound(&m, &usage);
	if (test_failed())
		return false; /* a touch might wait for ever */
	if (!done && !step->run(&m)) {
		test_fail(__FILE__, __LINE__, "%s: not even after failure %u", step->name, fault);
		return false;
	}
	expect_all_there(&m);
	expect_usable(&m);
	expect_sound(&m, &usage);
	huge_unmap(m.addr);
	m.addr = NULL;
	expect_sound(&m, &usage);
	huge_usage(&after);
	mm_usage(&owners_after);
	EXPECT_EQ(owners_after.in_use, owners.in_use + after.tables_kept - usage.tables_kept);
	return met;
}

/* If too few places failed, the sweep missed its target. */
static void sweep(const struct step *step)
{
	u32 fault = 1;

	if (step->pool > 0 && !pool_borrow(pool_of(step), step->pool))
		return;
	while (fault < FAULTS_MAX && run_with_fault(step, fault) && !test_failed())
		fault++;
	if (test_failed())
		pr_err("%s: failure %u", step->name, fault);
	else if (fault - 1 < step->least || fault == FAULTS_MAX)
		test_fail(__FILE__, __LINE__, "%s met %u failures", step->name, fault - 1);
	else
		print("  # %s: %u places failed, one at a time\n", step->name, fault - 1);
	if (step->pool > 0)
		pool_return(pool_of(step), step->pool);
}

static void sweep_all(const struct step *steps, size_t count)
{
	for (size_t i = 0; i < count && !test_failed(); i++)
		sweep(&steps[i]);
}

/* The touch asks the program, and is then tried again. */
TEST(mm_fault, touching)
{
	static const struct step steps[] = {
		{"populating 2M pages", SIZE, 2, 0, 0, NULL, map_populated, 2},
		{"touching 2M pages", SIZE, 3, 0, 0, NULL, touch_all, 3},
		{"touching 4K pages", PAGE_SIZE, 8, 0, 0, NULL, touch_all, 3},
	};

	sweep_all(steps, ARRAY_LEN(steps));
}

/*
 * The pages come from the pool, so only tables and the record of the mapping can fail. Promises are
 * made and withdrawn with the mapping.
 */
TEST(mm_fault, mapping_promised_pages)
{
	static const struct step steps[] = {
		{"populating promised pages", SIZE, 2, HUGE_RESERVE, 2, NULL, map_populated, 1},
		{"touching promised pages", SIZE, 2, HUGE_RESERVE, 2, NULL, touch_all, 1},
		{"releasing promised pages", SIZE, 2, HUGE_RESERVE, 2, mark_all, release, 0},
	};

	sweep_all(steps, ARRAY_LEN(steps));
}

/*
 * A missing page is no failure, because smaller pages take its place. Where only smaller pages are
 * left, a table and each page may fail.
 */
TEST(mm_fault, mapping_smaller_pages_where_there_is_none)
{
	enum { SMALLER = HUGE_POOL | HUGE_FALLBACK };
	static const struct step steps[] = {
		{"populating 2M, or less", SIZE, 2, HUGE_FALLBACK, 0, NULL, map_populated, 3},
		{"touching 2M, or less", SIZE, 2, HUGE_FALLBACK, 0, NULL, touch_all, 3},
		{"touching smaller pages", SIZE, 2, SMALLER, 0, NULL, touch_all, 3},
	};

	sweep_all(steps, ARRAY_LEN(steps));
}

TEST(mm_fault, releasing_and_protecting)
{
	static const struct step steps[] = {
		{"releasing 2M pages", SIZE, 2, 0, 0, mark_all, release, 0},
		{"releasing 4K pages", PAGE_SIZE, 8, 0, 0, mark_all, release, 0},
		{"protecting what is there", SIZE, 2, 0, 0, mark_all, protect, 0},
		{"protecting what comes", SIZE, 2, 0, 0, map_only, protect, 3},
	};

	sweep_all(steps, ARRAY_LEN(steps));
}

/* ---- 1 GiB ---- */

/*
 * Clearing a gigabyte of the host's memory would take seconds. Of each large extent, only the
 * beginning is cleared, where the case looks.
 */
static void clear_samples(void *addr, size_t bytes)
{
	memset(addr, 0, bytes < CLEAR_EXTENT ? bytes : 64);
}

TEST(mm_fault_giga, mapping_1g_pages_or_smaller)
{
	static const struct clear_insn samples = {.name = "samples", .clear = clear_samples};
	const struct clear_how how = {
		.mode = &clear_modes[1], .insn = {&samples, &samples, &samples}, .threads = 1};
	static const struct step steps[] = {
		{"a promised 1G page", GIB(1), 1, HUGE_RESERVE, 1, NULL, map_populated, 1},
		{"smaller pages", GIB(1), 1, HUGE_POOL | HUGE_FALLBACK, 0, NULL, touch_all, 5},
#ifdef ASHLAR_HOSTED /* this page allocation takes seconds where CPUs are emulated */
		{"touching 1G, or less", GIB(1), 1, HUGE_FALLBACK, 0, NULL, touch_all, 1},
#endif
	};

	if (!cpu_has_1g_mappings())
		SKIP("this CPU maps no 1 GiB pages");
	if (!pool_borrow(&pool_1g, 1))
		return;
	pool_return(&pool_1g, 1);
	clear_how_force(&how);
	sweep_all(steps, ARRAY_LEN(steps));
	clear_how_force(NULL);
}
