/* Files of huge pages: memfd_create(MFD_HUGETLB), and their mappings. */
#include "tests/kernel/brim.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/program_memory.h"
#include "tests/kernel/space_look.h"

#define AT  GIB(8)
#define FAR GIB(12)

enum { PAGES = 4, MFD_HUGETLB = 4, SHARE = 0x11, COPY = 0x12, MAP_NORESERVE = 0x4000 };
enum { KEEP_SIZE = 1, PUNCH = 3, MADV_REMOVE = 9 };

static struct pool_usage before;
static u64 file; /* its descriptor, while the pool has lent its pages */

static bool pool_is(s64 in_use, s64 reserved)
{
	struct pool_usage now;

	pool_usage(&pool_2m, &now);
	return (s64)(now.in_use - before.in_use) == in_use &&
	       (s64)(now.reserved - before.reserved) == reserved;
}

/* PAGES free pages, and a file of that size with huge pages. */
static bool begin(void)
{
	file = 0;
	if (!program_box_begin() || !pool_borrow(&pool_2m, PAGES))
		return false;
	pool_usage(&pool_2m, &before);
	EXPECT_EQ(put(ARGUMENTS, 'h'), 0);
	file = (u64)program_call("memfd_create", ARGUMENTS, MFD_HUGETLB);
	EXPECT_EQ(program_call("ftruncate", file, PAGES * MIB(2)), 0);
	return true;
}

/* The file goes, and all pages are the pool's again. */
static void end(void)
{
	if (file) {
		EXPECT_EQ(program_call("close", file), 0);
		EXPECT(pool_is(0, 0));
		pool_return(&pool_2m, PAGES);
	}
	program_box_end();
}

FIXTURE(program_pool, begin, end);

static s64 map_file(u64 at, u64 size, u64 flags, u64 fd, u64 offset)
{
	return program_call("mmap", at, size, RW, flags, fd, offset);
}

/* The number at a place of the file. */
static u64 read_at(u64 fd, u64 at)
{
	EXPECT_EQ(program_call("pread64", fd, RESULTS, 8, at), 8);
	return get(RESULTS);
}

static enum pt_level level_at(u64 at)
{
	enum pt_level level;
	pte_t pte;

	return pages_find(&program_space, at, &pte, &level) ? level : PT_PGD;
}

TEST(program_pool, shared_mappings_show_the_pages_of_a_file)
{
	EXPECT_EQ(map_file(AT, MIB(6), SHARE, file, 0), AT);
	EXPECT(pool_is(0, 3)); /* promised to the file */
	EXPECT_EQ(map_file(FAR, MIB(4), SHARE, file, MIB(2)), FAR);
	EXPECT(pool_is(0, 3));
	EXPECT_EQ(put(AT + MIB(3), 7), 0);
	EXPECT(pool_is(1, 2));
	EXPECT_EQ(level_at(AT + MIB(2)), PT_PMD);
	EXPECT_EQ(get(FAR + MIB(1)), 7);
	EXPECT_EQ(space_leaf(&program_space, AT + MIB(2)), space_leaf(&program_space, FAR));
	EXPECT_EQ(read_at(file, MIB(3)), 7);
	EXPECT_EQ(read_at(file, MIB(1)), 0);
	EXPECT(pool_is(1, 2)); /* reading brings no page */
	EXPECT_EQ(unmap(AT, MIB(6)), 0);
	EXPECT_EQ(unmap(FAR, MIB(2)), 0);
	EXPECT(pool_is(1, 2)); /* the file has them */
	EXPECT_EQ(get(FAR + MIB(2)), 0);
	EXPECT(pool_is(2, 1));
	EXPECT_EQ(program_call("mprotect", FAR + MIB(2), MIB(2), R), 0);
	EXPECT_EQ(unmap(FAR + MIB(2), MIB(2)), 0);
}

TEST(program_pool, sizes_and_places_are_whole_pages_and_nothing_is_written)
{
	EXPECT_EQ(program_call("pwrite64", file, ARGUMENTS, 8, 0), -EINVAL);
	EXPECT_EQ(map_file(AT + PAGE_SIZE, MIB(2), SHARE, file, 0), -EINVAL);
	/* the end of a mapping is that of a page, and what may be written is the file's */
	EXPECT_EQ(map_file(AT, PAGE_SIZE, SHARE | 0x40000, file, PAGES * MIB(2)), AT);
	EXPECT_EQ(put(AT + MIB(2) - 8, 5), 0);
	EXPECT_EQ(read_at(file, (PAGES + 1) * MIB(2) - 8), 5);
	EXPECT_EQ(unmap(AT + PAGE_SIZE, MIB(2) - PAGE_SIZE), -EINVAL);
	EXPECT_EQ(program_call("mremap", AT, 0, MIB(2), MAYMOVE), -EINVAL);
	EXPECT_EQ(program_call("mremap", AT, MIB(2), MIB(4), MAYMOVE), -EINVAL);
	EXPECT_EQ(unmap(AT, MIB(2)), 0);
}

TEST(program_pool, a_private_mapping_has_promises_and_copies_of_its_own)
{
	EXPECT_EQ(map_file(FAR, MIB(2), SHARE, file, 0), FAR);
	EXPECT_EQ(put(FAR, 7), 0);
	EXPECT_EQ(map_file(AT, MIB(6), COPY, file, 0), AT);
	EXPECT(pool_is(1, 3));
	EXPECT_EQ(get(AT), 7);
	EXPECT_EQ(put(AT, 8), 0);
	EXPECT_EQ(put(AT + MIB(2), 9), 0);
	EXPECT(pool_is(3, 1)); /* a hole of the file stays one */
	EXPECT_EQ(get(FAR), 7);
	EXPECT_EQ(read_at(file, MIB(2)), 0);
	/* without its copies, the mapping shows the file again, and has its promises back */
	EXPECT_EQ(program_call("madvise", AT, MIB(4), DONTNEED), 0);
	EXPECT(pool_is(1, 3));
	EXPECT_EQ(get(AT), 7);
	EXPECT_EQ(get(AT + MIB(2)), 0);
	EXPECT_EQ(unmap(AT, MIB(6)), 0);
	EXPECT(pool_is(1, 0));
	EXPECT_EQ(unmap(FAR, MIB(2)), 0);
}

TEST(program_pool, what_the_pool_cannot_promise_is_refused)
{
	struct pool_usage now;
	u64 size;

	pool_usage(&pool_2m, &now);
	size = (now.free - now.reserved + 1) * MIB(2);
	EXPECT_EQ(map_file(AT, size, SHARE, file, 0), -ENOMEM);
	EXPECT_EQ(map_file(AT, size, COPY, file, 0), -ENOMEM);
	EXPECT_EQ(map_file(AT, GIB(1024) * 64, SHARE, file, 0), -ENOMEM); /* at once */
	EXPECT(pool_is(0, 0));
	/* the pool promises all it has to the first mapping, and nothing to another */
	EXPECT_EQ(map_file(AT, size - MIB(2), SHARE, file, 0), AT);
	EXPECT_EQ(map_file(FAR, size, SHARE, file, 0), -ENOMEM);
	/* without a promise a touch finds no page */
	EXPECT_EQ(map_file(FAR, MIB(2), SHARE | MAP_NORESERVE, file, size), FAR);
	EXPECT_EQ(put(FAR, 1), -EFAULT);
	EXPECT_EQ(program_call("fallocate", file, KEEP_SIZE, size, MIB(2)), -ENOSPC);
	EXPECT_EQ(put(AT, 1), 0);
	EXPECT_EQ(unmap(AT, size - MIB(2)), 0);
	EXPECT_EQ(unmap(FAR, MIB(2)), 0);
	pool_set_overcommit(&pool_2m, ~0ULL); /* no sum with it wraps around */
	EXPECT_EQ(map_file(AT, size - MIB(2), SHARE, file, 0), AT);
	EXPECT_EQ(unmap(AT, size - MIB(2)), 0);
	pool_set_overcommit(&pool_2m, before.overcommit);
}

TEST(program_pool, holes_are_whole_pages_and_zeros_in_mappings)
{
	EXPECT_EQ(program_call("fallocate", file, 0, PAGE_SIZE, MIB(4)), 0);
	EXPECT(pool_is(3, 0));
	EXPECT_EQ(map_file(AT, MIB(8), SHARE, file, 0), AT);
	EXPECT(pool_is(3, 1));
	for (u64 at = 0; at < MIB(8); at += MIB(1))
		EXPECT_EQ(put(AT + at, 7), 0);
	EXPECT(pool_is(4, 0));
	EXPECT_EQ(program_call("fallocate", file, PUNCH, MIB(1), MIB(4)), 0);
	EXPECT(pool_is(3, 0));
	EXPECT(level_at(AT) == PT_PMD && level_at(AT + MIB(2)) == PT_PGD);
	EXPECT(get(AT) == 7 && get(AT + MIB(1)) == 0);
	EXPECT(get(AT + MIB(4)) == 0 && get(AT + MIB(5)) == 7);
	EXPECT_EQ(program_call("madvise", AT + MIB(4), MIB(2), MADV_REMOVE), 0);
	EXPECT(pool_is(2, 0));
	EXPECT(get(AT + MIB(5)) == 0 && get(AT + MIB(6)) == 7);
	EXPECT(pool_is(3, 0));
	EXPECT_EQ(unmap(AT, MIB(8)), 0);
}

static void expect_cut(u64 flags, s64 in_use, s64 reserved)
{
	EXPECT_EQ(map_file(AT, MIB(6), flags, file, 0), AT);
	EXPECT(put(AT, 1) == 0 && put(AT + MIB(2), 2) == 0);
	EXPECT_EQ(program_call("ftruncate", file, MIB(2)), 0);
	EXPECT(pool_is(in_use, reserved));
	EXPECT(get(AT) == 1 && get(AT + MIB(2)) == ~0ULL);
	EXPECT(pool_is(in_use, reserved));
	EXPECT_EQ(program_call("ftruncate", file, PAGES * MIB(2)), 0);
	EXPECT_EQ(get(AT + MIB(2)), 0);
	EXPECT_EQ(unmap(AT, MIB(6)), 0);
}

TEST(program_pool, a_touch_behind_the_end_fails_and_takes_no_page)
{
	expect_cut(COPY, 1, 2); /* the area's promises stay */
	EXPECT(pool_is(0, 0));
	expect_cut(SHARE, 1, 0);
}

/* What may only be read does not make the file longer: pages and promises lie behind its end. */
TEST(program_pool, a_new_size_ends_what_lies_behind_it)
{
	static const u64 sizes[] = {0, 1, 1, 2, 3, 1};

	EXPECT_EQ(program_call("ftruncate", file, 0), 0);
	for (unsigned i = 0; i < ARRAY_LEN(sizes); i++) {
		EXPECT_EQ(program_call("mmap", AT, MIB(6), R, SHARE, file, 0), AT);
		EXPECT(pool_is(0, 3));
		EXPECT_EQ(program_call("fallocate", file, KEEP_SIZE, MIB(6), MIB(2)), 0);
		EXPECT(pool_is(1, 3));
		EXPECT_EQ(program_call("ftruncate", file, sizes[i] * MIB(2)), 0);
		EXPECT(pool_is(0, (s64)sizes[i]));
		EXPECT_EQ(get(AT + MIB(4)), i == 4 ? 0 : ~0ULL);
		EXPECT_EQ(program_call("fallocate", file, PUNCH, 0, MIB(8)), 0);
	}
	EXPECT_EQ(unmap(AT, MIB(6)), 0);
}

/* The area has the promises of its copies back; the file's promises stay, too. */
TEST(program_pool, a_hole_takes_private_copies_and_no_promise)
{
	EXPECT_EQ(map_file(FAR, MIB(4), SHARE, file, 0), FAR);
	EXPECT_EQ(map_file(AT, MIB(4), COPY, file, 0), AT);
	EXPECT(put(AT, 8) == 0 && put(AT + MIB(2), 9) == 0);
	EXPECT(pool_is(2, 2));
	EXPECT_EQ(program_call("fallocate", file, PUNCH, 0, MIB(3)), 0);
	EXPECT(pool_is(1, 3));
	EXPECT(get(AT) == 0 && get(AT + MIB(2)) == 9);
	EXPECT(unmap(AT, MIB(4)) == 0 && unmap(FAR, MIB(4)) == 0);
	EXPECT(pool_is(0, 2));
}

/* The promise is back at once, its page with the last reference. */
TEST(program_pool, a_copy_that_somebody_holds_is_promised_again)
{
	struct page *page;

	EXPECT_EQ(map_file(AT, PAGES * MIB(2), COPY, file, 0), AT);
	REQUIRE(put(AT, 8) == 0);
	page = pfn_to_page(pte_pfn(space_leaf(&program_space, AT)));
	page_get(page);
	EXPECT_EQ(program_call("madvise", AT, MIB(2), DONTNEED), 0);
	EXPECT(pool_is(1, PAGES));
	EXPECT(account_machine());
	page_put(page);
	EXPECT(pool_is(0, PAGES));
	EXPECT_EQ(unmap(AT, PAGES * MIB(2)), 0);
}

static bool is_movable(u64 at)
{
	struct page page;
	pte_t pte;
	enum pt_level level;

	return pages_find(&program_space, at, &pte, &level) && page_peek(pte_pfn(pte), &page) &&
	       (page.flags & PAGE_MOVABLE);
}

/* A page that cannot move, by itself in its area. */
static void map_in_the_way(void)
{
	EXPECT_EQ(program_call("mmap", FAR, PAGE_SIZE, RW, 0x32, 0, 0), FAR);
	EXPECT_EQ(put(FAR, 1), 0);
	EXPECT(!is_movable(FAR));
}

/* More than the pool has and may make. */
static void expect_refused(u64 flags, u64 fd, bool moves)
{
	struct pool_usage now;

	map_in_the_way();
	pool_usage(&pool_2m, &now);
	EXPECT_EQ(map_file(AT, (now.free - now.reserved + 2) * MIB(2), flags, fd, 0), -ENOMEM);
	EXPECT_EQ(is_movable(FAR), moves);
	EXPECT_EQ(unmap(FAR, PAGE_SIZE), 0);
}

TEST(program_pool, pages_in_the_way_of_one_that_a_pool_makes_may_move)
{
	expect_refused(SHARE, file, false);
	pool_set_overcommit(&pool_2m, before.surplus + 1);
	expect_refused(SHARE, file, true);
	expect_refused(COPY, file, true);
	expect_refused(COPY | 0x40020, 0, true); /* MAP_ANONYMOUS, MAP_HUGETLB */
	/* a mapping that succeeds at once is made once, and no page moves for it */
	map_in_the_way();
	EXPECT_EQ(map_file(AT, MIB(2), 0x40022, 0, 0), AT);
	EXPECT(pool_is(0, 1) && !is_movable(FAR));
	EXPECT(unmap(AT, MIB(2)) == 0 && unmap(FAR, PAGE_SIZE) == 0);
	/* what fails for once is tried again */
	map_in_the_way();
	brim_begin(FAIL_ALLOC, 1, FAIL_ONCE);
	EXPECT_EQ(map_file(AT, MIB(2), SHARE, file, GIB(100)), AT);
	EXPECT(brim_end() && is_movable(FAR));
	EXPECT(unmap(AT, MIB(2)) == 0 && unmap(FAR, PAGE_SIZE) == 0);
	pool_set_overcommit(&pool_2m, before.overcommit);
}

/* The pages of the pool are full of old bytes. */
TEST(program_pool, a_private_page_is_zero_behind_the_end_of_its_file)
{
	EXPECT_EQ(map_file(AT, MIB(8), SHARE, file, 0), AT);
	for (u64 at = AT; at < AT + MIB(8); at += PAGE_SIZE)
		EXPECT_EQ(put(at, ~0ULL), 0);
	EXPECT_EQ(unmap(AT, MIB(8)), 0);
	EXPECT_EQ(program_call("ftruncate", file, 0), 0);
	EXPECT_EQ(program_call("fallocate", file, 0, 0, PAGE_SIZE), 0);
	EXPECT_EQ(map_file(FAR, MIB(2), SHARE, file, 0), FAR);
	EXPECT_EQ(put(FAR, 7), 0);
	EXPECT_EQ(program_call("ftruncate", file, 0), 0);
	EXPECT_EQ(program_call("fallocate", file, 0, 0, PAGE_SIZE), 0);
	EXPECT_EQ(program_call("mmap", AT, MIB(2), R, COPY, file, 0), AT);
	for (u64 at = AT; at < AT + MIB(2); at += PAGE_SIZE)
		EXPECT_EQ(get(at), 0);
	EXPECT(unmap(AT, MIB(2)) == 0 && unmap(FAR, MIB(2)) == 0);
}

TEST(program_pool, a_file_has_pages_of_1_gib)
{
	const u64 giga = 30ULL << 26;
	const bool there = cpu_has_1g_mappings();
	s64 fd;

	EXPECT_EQ(put(ARGUMENTS, 'h'), 0);
	fd = program_call("memfd_create", ARGUMENTS, MFD_HUGETLB | giga);
	EXPECT(there ? fd > 0 : fd == -ENODEV);
	if (!there || !pool_borrow(&pool_1g, 1))
		return;
	EXPECT_EQ(map_file(AT, GIB(1), SHARE, (u64)fd, 0), AT);
	EXPECT_EQ(put(AT + GIB(1) - 8, 7), 0);
	EXPECT_EQ(level_at(AT), PT_PUD);
	EXPECT_EQ(read_at((u64)fd, GIB(1) - 8), 7);
	EXPECT_EQ(unmap(AT, GIB(1)), 0);
	EXPECT_EQ(program_call("close", fd), 0);
	pool_return(&pool_1g, 1);
}

TEST(program_pool, the_end_of_a_program_gives_everything_back)
{
	EXPECT_EQ(map_file(AT, MIB(4), SHARE, file, 0), AT);
	EXPECT_EQ(map_file(FAR, MIB(4), COPY, file, 0), FAR);
	EXPECT(put(AT, 1) == 0 && put(FAR, 2) == 0);
	EXPECT(pool_is(2, 2));
	brim_begin(FAIL_ALLOC, 1, FAIL_AGAIN);
	program_box_end();
	brim_end();
	REQUIRE(program_box_begin());
	EXPECT(pool_is(0, 0));
	pool_return(&pool_2m, PAGES);
	file = 0;
}

/* Each allocation fails once: nothing is promised or taken, or the call is done. */
TEST(program_pool, a_mapping_without_memory_leaves_no_promise)
{
	const u64 far = GIB(100);
	bool failed = true;

	for (u32 n = 1; failed && n < 50; n++) {
		s64 start;

		brim_begin(FAIL_ALLOC, n, FAIL_ONCE);
		start = map_file(AT, MIB(4), SHARE, file, far + n * GIB(100));
		failed = brim_end();
		EXPECT(start == (s64)AT || (start == -ENOMEM && pool_is(0, 0)));
		if (start == (s64)AT)
			EXPECT(pool_is(0, 2) && unmap(AT, MIB(4)) == 0);
		EXPECT_EQ(program_call("ftruncate", file, MIB(2)), 0);
		EXPECT(pool_is(0, 0));
	}
}

static void touch_once(void *roles)
{
	const u32 role = atomic_fetch_add((u32 *)roles, 1);

	if (role < 2)
		EXPECT_EQ(put((role ? FAR : AT) + 8 * role, role + 1), 0);
}

/* The page is promised once, so the CPU that comes second must not take another. */
TEST(program_pool, two_cpus_bring_one_page_of_a_file)
{
	u32 roles = 0;

	EXPECT_EQ(map_file(AT, MIB(2), SHARE, file, 0), AT);
	EXPECT_EQ(map_file(FAR, MIB(2), SHARE, file, 0), FAR);
	cpus_run_together(touch_once, &roles);
	EXPECT(pool_is(1, 0));
	EXPECT_EQ(get(FAR), 1);
	if (roles > 1)
		EXPECT_EQ(get(AT + 8), 2);
	EXPECT(unmap(AT, MIB(2)) == 0 && unmap(FAR, MIB(2)) == 0);
}

static void cut_or_touch(void *arg)
{
	if (cpu_id() == 0) {
		EXPECT_EQ(program_call("ftruncate", file, MIB(2)), 0);
	} else if (cpu_id() == 1) {
		put(AT + MIB(2), 1);
		put(FAR + MIB(2), 1);
	}
}

/* Whichever comes first: no page, and no promise of the file, is left behind the end. */
TEST(program_pool, a_cut_meets_a_touch)
{
	if (cpu_count > 1)
		REQUIRE(program_box_second());
	EXPECT_EQ(map_file(AT, MIB(4), SHARE, file, 0), AT);
	EXPECT_EQ(map_file(FAR, MIB(4), COPY, file, 0), FAR);
	EXPECT(pool_is(0, 4));
	cpus_run_together(cut_or_touch, NULL);
	EXPECT(pool_is(0, 3));
	EXPECT(get(AT + MIB(2)) == ~0ULL && get(FAR + MIB(2)) == ~0ULL);
	EXPECT(unmap(AT, MIB(4)) == 0 && unmap(FAR, MIB(4)) == 0);
	EXPECT(pool_is(0, 1));
}

static void punch_or_map(void *arg)
{
	if (cpu_id() == 0) {
		EXPECT_EQ(program_call("fallocate", file, PUNCH, 0, MIB(2)), 0);
	} else if (cpu_id() == 1) {
		EXPECT_EQ(map_file(AT, MIB(2), SHARE, file, 0), AT);
	}
}

/* The page was there when absent ones were counted: a promise of it must be the pool's, too. */
TEST(program_pool, a_hole_meets_a_promise)
{
	struct pool_usage now;

	if (cpu_count > 1)
		REQUIRE(program_box_second());
	EXPECT_EQ(program_call("fallocate", file, 0, 0, MIB(2)), 0);
	cpus_run_together(punch_or_map, NULL);
	pool_usage(&pool_2m, &now);
	EXPECT(now.in_use == before.in_use && now.reserved - before.reserved <= 1);
	if (cpu_count > 1)
		EXPECT_EQ(unmap(AT, MIB(2)), 0);
}

static void cut_or_map(void *arg)
{
	if (cpu_id() == 0)
		EXPECT_EQ(program_call("ftruncate", file, MIB(2)), 0);
	else if (cpu_id() == 1)
		EXPECT_EQ(map_file(AT, MIB(4), SHARE, file, 0), AT);
}

/* The file is as long as the mapping, with promises for all of it, or has been cut since. */
TEST(program_pool, a_cut_meets_a_promise)
{
	if (cpu_count > 1)
		REQUIRE(program_box_second());
	EXPECT_EQ(program_call("ftruncate", file, 0), 0);
	cpus_run_together(cut_or_map, NULL);
	EXPECT_EQ(program_call("fstat", file, RESULTS), 0);
	if (cpu_count > 1) {
		EXPECT(pool_is(0, (s64)(get(RESULTS + 48) / MIB(2))));
		EXPECT_EQ(unmap(AT, MIB(4)), 0);
	}
}

TEST(program_pool, what_a_limit_refuses_leaves_a_file_as_it_was)
{
	static const u64 limit[2] = {MIB(2), ~0ULL};

	EXPECT_EQ(map_at(FAR, MIB(4), RW, FIXED), FAR);
	EXPECT_EQ(program_call("ftruncate", file, MIB(2)), 0);
	EXPECT_EQ(user_write(ARGUMENTS, limit, sizeof(limit)), 0);
	EXPECT_EQ(program_call("setrlimit", 9, ARGUMENTS), 0);
	/* without MAP_FIXED, at a place that is taken */
	EXPECT_EQ(map_file(FAR, MIB(4), SHARE & ~0x10, file, 0), -ENOMEM);
	EXPECT_EQ(map_file(AT, MIB(4), SHARE, file, 0), -ENOMEM);
	EXPECT_EQ(map_file(AT, MIB(4), COPY, file, 0), -ENOMEM);
	EXPECT(pool_is(0, 0));
	EXPECT_EQ(program_call("fstat", file, RESULTS), 0);
	EXPECT_EQ(get(RESULTS + 48), MIB(2));
}
