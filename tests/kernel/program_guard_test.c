/*
 * Guards of a program's memory (madvise(2), MADV_GUARD_INSTALL): whole pages that nobody may touch,
 * which take no area of their own.
 */
#include "tests/kernel/brim.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/program_memory.h"
#include "tests/kernel/space_look.h"

FIXTURE(program_guard, program_box_begin, program_box_end);

#define AT GIB(16)

enum { PAGES = 8, FIRST = 2, END = 5 }; /* pages, and those with guards */
enum { POPULATE_READ = 22, POPULATE_WRITE = 23 };

#define PAGE(i) (AT + (i)*PAGE_SIZE)

static s64 advise(u64 first, u64 end, u64 advice)
{
	return program_call("madvise", PAGE(first), (end - first) * PAGE_SIZE, advice);
}

/* Do the pages of [first, end), which lie at `base`, and no others refuse a touch? */
static void expect_guards(u64 base, u64 first, u64 end)
{
	for (u64 i = 0; i < PAGES; i++) {
		const u64 at = base + i * PAGE_SIZE;
		const bool guard = i >= first && i < end;

		EXPECT_EQ(get(at), guard ? ~0ULL : i + 1);
		EXPECT_EQ(space_touch(&program_space, at, USER_READ),
			  guard ? TOUCH_GUARD : TOUCH_DONE);
		EXPECT_EQ(put(at, i + 1), guard ? -EFAULT : 0);
		EXPECT(!guard || !space_leaf(&program_space, at));
	}
}

/* Memory at AT whose words say where they are, with guards. */
static void map_with_guards(void)
{
	EXPECT_EQ(map_at(AT, PAGES * PAGE_SIZE, RW, FIXED), AT);
	for (u64 i = 0; i < PAGES; i++)
		EXPECT_EQ(put(PAGE(i), i + 1), 0);
	EXPECT_EQ(advise(FIRST, END, GUARD_INSTALL), 0);
}

TEST(program_guard, no_touch_gets_through_and_what_was_there_is_gone)
{
	const u64 areas = program_space.tree.count;

	map_with_guards();
	EXPECT_EQ(advise(0, PAGES, GUARD_INSTALL - 1), -EINVAL);
	EXPECT_EQ(advise(0, PAGES, GUARD_REMOVE + 1), -EINVAL);
	EXPECT_EQ(program_space.tree.count, areas + 1);
	expect_guards(AT, FIRST, END);
	EXPECT_EQ(program_call("mincore", PAGE(FIRST), PAGE_SIZE, RESULTS), 0);
	EXPECT_EQ(get(RESULTS) & 0xff, 0);
	EXPECT_EQ(advise(FIRST - 1, END - 1, GUARD_INSTALL), 0);
	expect_guards(AT, FIRST - 1, END);
	EXPECT_EQ(advise(0, PAGES, GUARD_REMOVE), 0);
	for (u64 i = 0; i < PAGES; i++)
		EXPECT_EQ(get(PAGE(i)), i >= FIRST - 1 && i < END ? 0 : i + 1);
	EXPECT_EQ(advise(0, PAGES, GUARD_REMOVE), 0);
	EXPECT_EQ(put(PAGE(FIRST), 9), 0);
	EXPECT_EQ(get(PAGE(FIRST)), 9);
	EXPECT_EQ(program_space.tree.count, areas + 1);
}

TEST(program_guard, guards_stay_until_they_are_removed)
{
	map_with_guards();
	EXPECT_EQ(program_call("mprotect", AT, PAGES * PAGE_SIZE, R), 0);
	EXPECT_EQ(space_touch(&program_space, PAGE(FIRST), USER_WRITE), TOUCH_NO_RIGHT);
	EXPECT_EQ(program_call("mprotect", AT, PAGES * PAGE_SIZE, RW), 0);
	expect_guards(AT, FIRST, END);
	EXPECT_EQ(advise(FIRST, END, DONTNEED), 0);
	EXPECT_EQ(advise(FIRST, END, 8 /* FREE */), 0);
	expect_guards(AT, FIRST, END);
	EXPECT_EQ(advise(0, PAGES, POPULATE_READ), -EFAULT);
	EXPECT_EQ(advise(0, PAGES, POPULATE_WRITE), -EFAULT);
	EXPECT_EQ(advise(0, FIRST, POPULATE_WRITE), 0);
	EXPECT_EQ(advise(PAGES, PAGES + 1, POPULATE_READ), -ENOMEM); /* nothing is mapped there */
	EXPECT_EQ(program_call("mlock", AT, PAGES * PAGE_SIZE), -ENOMEM);
	EXPECT_EQ(program_call("mlock", PROGRAM_BOX_MEMORY, KIB(8)), 0);
	EXPECT_EQ(program_call("mlock2", PROGRAM_BOX_MEMORY, KIB(8), 2), -EINVAL);
	expect_guards(AT, FIRST, END);
}

/* The pages beside them keep the page table, in which nothing may be left. */
TEST(program_guard, guards_move_with_their_mapping_and_end_with_it)
{
	const u64 to = GIB(24) + KIB(8), part = (END - FIRST) * PAGE_SIZE;

	map_with_guards();
	EXPECT_EQ(program_call("mremap", AT, PAGES * PAGE_SIZE, PAGES * PAGE_SIZE, MOVE_FIXED, to),
		  to);
	expect_guards(to, FIRST, END);
	EXPECT_EQ(program_call("mremap", to, PAGES * PAGE_SIZE, PAGES * PAGE_SIZE, MOVE_FIXED, AT),
		  AT);
	expect_guards(AT, FIRST, END);
	EXPECT_EQ(map_at(to, PAGES * PAGE_SIZE, RW, FIXED), to);
	EXPECT_EQ(get(to + FIRST * PAGE_SIZE), 0);
	EXPECT_EQ(unmap(PAGE(FIRST), part), 0);
	EXPECT_EQ(map_at(PAGE(FIRST), part, RW, FIXED), PAGE(FIRST));
	EXPECT_EQ(get(PAGE(FIRST)), 0);
	EXPECT_EQ(advise(FIRST, END, GUARD_INSTALL), 0);
	EXPECT_EQ(map_at(PAGE(FIRST), part, RW, FIXED), PAGE(FIRST));
	EXPECT_EQ(get(PAGE(FIRST)), 0);
}

TEST(program_guard, a_huge_page_is_cut_for_guards_and_comes_back_after_them)
{
	const u64 guard = AT + MIB(1);

	EXPECT_EQ(map_at(AT, MIB(4), RW, FIXED), AT);
	EXPECT_EQ(program_call("madvise", AT, MIB(4), HUGEPAGE), 0);
	for (u64 at = AT; at < AT + MIB(4); at += PAGE_SIZE)
		EXPECT_EQ(put(at, at), 0);
	EXPECT_EQ(program_call("madvise", guard, PAGE_SIZE, GUARD_INSTALL), 0);
	EXPECT_EQ(get(guard), ~0ULL);
	for (u64 at = AT; at < AT + MIB(4); at += PAGE_SIZE)
		EXPECT(at == guard || get(at) == at);
	EXPECT(program_call("madvise", AT, MIB(2), COLLAPSE) < 0);
	EXPECT_EQ(get(guard), ~0ULL);
	EXPECT_EQ(program_call("madvise", guard, PAGE_SIZE, GUARD_REMOVE), 0);
	program_call("madvise", AT, MIB(2), COLLAPSE); /* if there is a huge page */
	EXPECT_EQ(get(guard), 0);
	/* whole huge pages, and those of an empty range */
	EXPECT_EQ(program_call("madvise", AT, MIB(4), GUARD_INSTALL), 0);
	for (u64 at = AT; at < AT + MIB(4); at += PAGE_SIZE)
		EXPECT_EQ(get(at), ~0ULL);
	EXPECT_EQ(program_call("madvise", AT, MIB(4), GUARD_REMOVE), 0);
	EXPECT(get(AT) == 0 && get(AT + MIB(4) - 8) == 0);
}

TEST(program_guard, pages_of_a_pool_have_none)
{
	if (!pool_borrow(&pool_2m, 1))
		return;
	EXPECT_EQ(map_at(AT, MIB(2), RW, HUGETLB | 0x10), AT);
	EXPECT_EQ(put(AT, 5), 0);
	EXPECT_EQ(program_call("madvise", AT, MIB(2), GUARD_INSTALL), -EINVAL);
	EXPECT_EQ(program_call("madvise", AT, PAGE_SIZE, GUARD_INSTALL), -EINVAL);
	EXPECT_EQ(get(AT), 5);
	REQUIRE(program_box_again());
	pool_return(&pool_2m, 1);
}

TEST(program_guard, without_page_tables_some_guards_are_made_or_none)
{
	EXPECT_EQ(map_at(AT, MIB(8), RW, FIXED), AT);
	brim_begin(FAIL_PTE, 3, FAIL_ONCE);
	EXPECT_EQ(program_call("madvise", AT, MIB(8), GUARD_INSTALL), -ENOMEM);
	EXPECT(brim_end());
	EXPECT_EQ(program_call("madvise", AT, MIB(8), GUARD_REMOVE), 0);
	EXPECT_EQ(put(AT, 5), 0);
	EXPECT_EQ(get(AT + MIB(8) - 8), 0);
}

TEST(program_guard, a_touch_ends_the_program_and_the_report_names_the_guard)
{
	struct trap_frame regs = {.rip = AT};

	map_with_guards();
	said_begin();
	signal_raise_fault(&regs, SIGSEGV, SEGV_MAPERR, PAGE(FIRST) + 8);
	said_end();
	EXPECT(said_says("*a guard of madvise()*"));
	EXPECT_EQ(program_box_died(), SIGSEGV);
}

/* ---- while another thread touches the page ---- */

/* A write that succeeds either lands before the guard, and is dropped, or after it has gone. */
static void guard_or_write(void *arg)
{
	s64 *written = arg;

	if (cpu_id() == 0)
		EXPECT_EQ(advise(0, 1, GUARD_INSTALL), 0);
	else if (cpu_id() == 1)
		*written = put(AT, 5);
}

TEST(program_guard, a_guard_is_there_for_all_threads_when_the_call_returns)
{
	s64 written = 0;

	SKIP_ON_ONE_CPU();
	REQUIRE(program_box_second());
	EXPECT_EQ(map_at(AT, 2 * PAGE_SIZE, RW, FIXED), AT);
	EXPECT_EQ(put(PAGE(1), 1), 0);
	cpus_run_together(guard_or_write, &written);
	EXPECT(written == 0 || written == -EFAULT);
	EXPECT_EQ(put(AT, 6), -EFAULT);
	EXPECT(!space_leaf(&program_space, AT));
	EXPECT_EQ(advise(0, 1, GUARD_REMOVE), 0);
	EXPECT(get(AT) == 0 && get(PAGE(1)) == 1);
}
