/*
 * How much a program may map (kernel/program/commit.h), and what a shorter file, a hole and a seal
 * do to mappings (cut.h). Each answer of the manual pages: tests/programs/semantics.c.
 */
#include "kernel/program/commit.h"
#include "kernel/program/contents.h"
#include "kernel/program/cut.h"
#include "kernel/program/limits.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/program_memory.h"

static bool set_mode(const char *mode)
{
	return option_set(option_find("program.overcommit"), mode) == 0;
}

static void end(void)
{
	set_mode("0");
	option_set(option_find("program.overcommit_ratio"), "50");
	program_box_end();
}

FIXTURE(program_commit, program_box_begin, end);

#define AT GIB(16)
enum { SHARED = 1, SHARED_FIXED = 0x31, ALLOW_SEALING = 2, HOLE = 3 };

static u64 all_ram(void)
{
	struct mm_usage usage;

	mm_usage(&usage);
	return usage.ram * PAGE_SIZE;
}

static s64 map_fixed(u64 at, u64 size, u64 rights, u64 flags)
{
	return map_at(at, size, rights, FIXED | flags) == (s64)at ? 0 : -ENOMEM;
}

static s64 protect(u64 at, u64 size, u64 rights)
{
	return program_call("mprotect", at, size, rights);
}

/* ---- overcommit ---- */

TEST(program_commit, one_request_for_more_than_all_ram_is_refused)
{
	const u64 ram = all_ram(), more = ram + PAGE_SIZE;

	EXPECT(set_mode("0"));
	EXPECT_EQ(map_fixed(AT, more, RW, 0), -ENOMEM);
	EXPECT_EQ(map_fixed(AT, more, RW, NORESERVE), 0);
	EXPECT_EQ(map_fixed(AT, ram, RW, 0), 0);
	EXPECT_EQ(map_fixed(2 * AT + ram, ram, RW, 0), 0); /* each request by itself */
	EXPECT_EQ(map_fixed(AT, more, 0, 0), 0);
	EXPECT_EQ(protect(AT, more, R), 0);
	EXPECT_EQ(protect(AT, more, RW), -ENOMEM);
	EXPECT_EQ(put(AT, 1), -EFAULT); /* nothing was changed */
	EXPECT_EQ(protect(AT, ram, RW), 0);
	EXPECT(set_mode("1"));
	EXPECT_EQ(map_fixed(AT, 2 * more, RW, 0), 0);
	EXPECT_EQ(unmap(AT, 2 * AT + 2 * ram), 0);
}

/* The limit holds for the sum, which follows areas through cuts, moves and rights. */
TEST(program_commit, in_mode_2_all_requests_together_stay_below_the_limit)
{
	const u64 before = commit_now();
	u64 limit;

	EXPECT(set_mode("2"));
	limit = ALIGN_DOWN(commit_limit() - before, PAGE_SIZE);
	EXPECT_EQ(map_fixed(AT, limit + PAGE_SIZE, RW, 0), -ENOMEM);
	EXPECT_EQ(map_fixed(AT, limit, RW, 0), 0);
	EXPECT_EQ(commit_now(), before + limit);
	EXPECT_EQ(map_fixed(2 * AT + limit, PAGE_SIZE, RW, 0), -ENOMEM);
	EXPECT_EQ(map_fixed(2 * AT + limit, PAGE_SIZE, RW, NORESERVE & ~PRIVATE), -ENOMEM);
	EXPECT_EQ(map_fixed(2 * AT + limit, PAGE_SIZE, R, 0), 0); /* nobody may write it */
	EXPECT_EQ(protect(2 * AT + limit, PAGE_SIZE, RW), -ENOMEM);
	EXPECT_EQ(map_at(2 * AT + limit, PAGE_SIZE, R, SHARED_FIXED), -ENOMEM);
	/* in place of memory that counts, memory that counts */
	EXPECT_EQ(map_fixed(AT, limit / 2, RW, 0), 0);
	/* what was writable stays counted */
	EXPECT_EQ(protect(AT + PAGE_SIZE, PAGE_SIZE, 0), 0);
	EXPECT_EQ(commit_now(), before + limit);
	EXPECT_EQ(protect(AT + PAGE_SIZE, PAGE_SIZE, RW), 0);
	EXPECT_EQ(program_call("mremap", AT, limit, limit + PAGE_SIZE, MAYMOVE), -ENOMEM);
	EXPECT_EQ(program_call("mremap", AT, PAGE_SIZE, PAGE_SIZE, MOVE_FIXED, 2 * AT + limit),
		  2 * AT + limit);
	EXPECT_EQ(commit_now(), before + limit);
	EXPECT_EQ(unmap(AT + 8 * PAGE_SIZE, 4 * PAGE_SIZE), 0);
	EXPECT_EQ(commit_now(), before + limit - 4 * PAGE_SIZE);
	EXPECT_EQ(map_at(AT, 4 * PAGE_SIZE, RW, SHARED_FIXED), (s64)AT);
	EXPECT_EQ(unmap(AT, 2 * AT + limit), 0);
	EXPECT_EQ(commit_now(), before);
}

TEST(program_commit, pools_and_the_ratio_make_the_limit)
{
	const u64 limit = commit_limit();

	if (!pool_borrow(&pool_2m, 4))
		return;
	EXPECT_EQ(commit_limit(), (all_ram() - pool_2m.pages * MIB(2)) / 100 * 50);
	EXPECT(commit_limit() < limit);
	EXPECT_EQ(option_set(option_find("program.overcommit_ratio"), "0"), 0);
	EXPECT_EQ(commit_limit(), 0);
	EXPECT(set_mode("2"));
	EXPECT_EQ(map_fixed(AT, PAGE_SIZE, RW, 0), -ENOMEM);
	EXPECT_EQ(map_fixed(AT, MIB(2), RW, HUGETLB), 0); /* the pool's, and promised */
	EXPECT_EQ(unmap(AT, MIB(2)), 0);
	pool_return(&pool_2m, 4);
}

/* Each CPU asks for more than half of what is left. */
struct greedy {
	u64 size;
	u32 granted;
};

static void ask_for_most(void *arg)
{
	struct greedy *greedy = arg;

	if (map_fixed(AT + cpu_id() * TIB(1), greedy->size, RW, 0) == 0)
		atomic_fetch_add(&greedy->granted, 1);
}

TEST(program_commit, calls_at_once_are_not_granted_together_what_is_too_much)
{
	struct greedy greedy = {.granted = 0};

	SKIP_ON_ONE_CPU();
	EXPECT(set_mode("2"));
	greedy.size = ALIGN_DOWN((commit_limit() - commit_now()) / 5 * 3, PAGE_SIZE);
	cpus_run_together(ask_for_most, &greedy);
	EXPECT(greedy.granted <= 1);
	EXPECT(commit_now() <= commit_limit());
	if (greedy.granted == 0) /* what was asked for at once is no longer counted */
		EXPECT_EQ(map_fixed(AT, greedy.size, RW, 0), 0);
}

/* What is being replaced stays counted, although its area is not there for a while. */
static void replace_or_ask(void *arg)
{
	struct greedy *greedy = arg;

	if (cpu_id() == 0)
		EXPECT_EQ(map_fixed(AT, greedy->size, RW, 0), 0);
	else
		ask_for_most(greedy);
}

TEST(program_commit, what_is_replaced_is_granted_to_nobody_else)
{
	struct greedy greedy = {.granted = 0};

	SKIP_ON_ONE_CPU();
	EXPECT(set_mode("2"));
	greedy.size = ALIGN_DOWN((commit_limit() - commit_now()) / 5 * 3, PAGE_SIZE);
	EXPECT_EQ(map_fixed(AT, greedy.size, RW, 0), 0);
	cpus_run_together(replace_or_ask, &greedy);
	EXPECT_EQ(greedy.granted, 0);
	EXPECT(commit_now() <= commit_limit());
}

/* Each CPU asks for its share, and gets it, whatever the others ask for at once. */
TEST(program_commit, calls_at_once_are_granted_together_what_there_is)
{
	struct greedy greedy = {.granted = 0};
	const u64 shares = cpumask_weight(&cpus_online);

	EXPECT(set_mode("2"));
	greedy.size = ALIGN_DOWN((commit_limit() - commit_now()) / shares, PAGE_SIZE);
	EXPECT_EQ(cpus_run_together(ask_for_most, &greedy), greedy.granted);
	EXPECT(commit_now() <= commit_limit());
}

/* ---- limits ---- */

static s64 set_limit(enum limit limit, u64 soft)
{
	const struct limit_pair pair = {.soft = soft, .hard = RLIMIT_NONE};

	EXPECT_EQ(user_write(ARGUMENTS, &pair, sizeof(pair)), 0);
	return program_call("setrlimit", limit, ARGUMENTS);
}

TEST(program_commit, limits_of_addresses_and_of_data_are_obeyed)
{
	const u64 now = atomic_load_relaxed(&program_space.bytes);

	program_box_heap(GIB(1));
	EXPECT_EQ(set_limit(RLIMIT_AS, now + 2 * PAGE_SIZE), 0);
	EXPECT_EQ(map_fixed(AT, 3 * PAGE_SIZE, 0, NORESERVE), -ENOMEM);
	EXPECT_EQ(map_fixed(AT, 2 * PAGE_SIZE, RW, 0), 0);
	EXPECT_EQ(map_fixed(AT, 2 * PAGE_SIZE, RW, 0), 0); /* in place of the others */
	EXPECT_EQ(program_call("brk", GIB(1) + 1), GIB(1));
	EXPECT_EQ(program_call("mremap", AT, PAGE_SIZE, 2 * PAGE_SIZE, MAYMOVE), -ENOMEM);
	EXPECT_EQ(unmap(AT, PAGE_SIZE), 0);
	EXPECT(program_call("mremap", AT + PAGE_SIZE, PAGE_SIZE, 2 * PAGE_SIZE, 0) > 0);
	EXPECT_EQ(unmap(AT + 2 * PAGE_SIZE, PAGE_SIZE), 0);
	EXPECT_EQ(program_call("brk", GIB(1) + 1), GIB(1) + 1);
	EXPECT_EQ(set_limit(RLIMIT_AS, RLIMIT_NONE), 0);
	/* memory of the box, one page at AT, and the heap */
	EXPECT_EQ(set_limit(RLIMIT_DATA, PROGRAM_BOX_BYTES + 3 * PAGE_SIZE), 0);
	EXPECT_EQ(map_fixed(2 * AT, 2 * PAGE_SIZE, RW, 0), -ENOMEM);
	EXPECT_EQ(map_fixed(2 * AT, 2 * PAGE_SIZE, R, 0), 0);
	EXPECT_EQ(protect(2 * AT, 2 * PAGE_SIZE, RW), -ENOMEM);
	EXPECT_EQ(protect(2 * AT, PAGE_SIZE, RW), 0);
	EXPECT_EQ(program_call("brk", GIB(1) + PAGE_SIZE + 1), GIB(1) + 1);
	EXPECT_EQ(program_call("brk", GIB(1)), GIB(1));
	EXPECT_EQ(set_limit(RLIMIT_DATA, 0), 0); /* less than there is */
	EXPECT_EQ(program_call("brk", GIB(1) + 1), GIB(1));
	EXPECT_EQ(protect(AT + PAGE_SIZE, PAGE_SIZE, R), 0);
}

/* ---- shared memory, and files that lose something ---- */

TEST(program_commit, shared_memory_keeps_what_one_of_its_users_does_not_need)
{
	static const u64 advice[] = {DONTNEED, 24 /* MADV_DONTNEED_LOCKED */};

	EXPECT_EQ(map_at(AT, 3 * PAGE_SIZE, RW, SHARED_FIXED), (s64)AT);
	EXPECT_EQ(map_fixed(AT + PAGE_SIZE, PAGE_SIZE, RW, 0), 0);
	for (unsigned k = 0; k < ARRAY_LEN(advice); k++) {
		for (u64 i = 0; i < 3; i++)
			EXPECT_EQ(put(AT + i * PAGE_SIZE, i + 1), 0);
		EXPECT_EQ(program_call("madvise", AT, 3 * PAGE_SIZE, advice[k]), 0);
		EXPECT_EQ(get(AT), 1);
		EXPECT_EQ(get(AT + PAGE_SIZE), 0); /* this page is private */
		EXPECT_EQ(get(AT + 2 * PAGE_SIZE), 3);
	}
	EXPECT_EQ(unmap(AT, 3 * PAGE_SIZE), 0);
}

/* A memfd of four pages whose first words are 1 to 4, mapped at AT. */
static s64 mapped_file(u64 flags)
{
	s64 fd;

	EXPECT_EQ(user_write(ARGUMENTS, "x", 2), 0);
	fd = program_call("memfd_create", ARGUMENTS, flags);
	EXPECT_EQ(program_call("ftruncate", fd, 4 * PAGE_SIZE), 0);
	EXPECT_EQ(program_call("mmap", AT, 4 * PAGE_SIZE, RW, SHARED | 0x10, fd, 0), AT);
	for (u64 i = 0; i < 4; i++)
		EXPECT_EQ(put(AT + i * PAGE_SIZE, i + 1), 0);
	return fd;
}

TEST(program_commit, what_a_file_loses_its_mappings_lose)
{
	const s64 fd = mapped_file(0);
	const u64 own = 2 * AT, pages = contents_pages();

	EXPECT_EQ(program_call("mmap", own, 4 * PAGE_SIZE, RW, 0x12, fd, 0), own);
	EXPECT_EQ(map_fixed(AT + 2 * PAGE_SIZE, PAGE_SIZE, RW, 0), 0); /* this is not the file's */
	EXPECT_EQ(put(AT + 2 * PAGE_SIZE, 7), 0);
	EXPECT_EQ(put(own + PAGE_SIZE, 8), 0);
	EXPECT_EQ(program_call("fallocate", fd, HOLE, PAGE_SIZE, 2 * PAGE_SIZE), 0);
	EXPECT_EQ(contents_pages(), pages - 2);
	EXPECT_EQ(get(AT), 1);
	EXPECT_EQ(get(AT + PAGE_SIZE), 0);
	EXPECT_EQ(get(AT + 2 * PAGE_SIZE), 7);
	EXPECT_EQ(get(AT + 3 * PAGE_SIZE), 4);
	EXPECT_EQ(get(own + PAGE_SIZE), 8);
	EXPECT_EQ(program_call("ftruncate", fd, PAGE_SIZE), 0);
	EXPECT_EQ(get(AT), 1);
	EXPECT_EQ(get(AT + PAGE_SIZE), ~0ULL);
	EXPECT_EQ(get(AT + 2 * PAGE_SIZE), 7);
	EXPECT_EQ(get(own + PAGE_SIZE), ~0ULL);
	EXPECT_EQ(space_touch(&program_space, AT + 3 * PAGE_SIZE, USER_READ), TOUCH_BEYOND);
	EXPECT_EQ(program_call("ftruncate", fd, 4 * PAGE_SIZE), 0);
	EXPECT_EQ(get(AT + PAGE_SIZE), 0);
	EXPECT_EQ(unmap(AT, 4 * PAGE_SIZE), 0);
	EXPECT_EQ(unmap(own, 4 * PAGE_SIZE), 0);
}

/* A touch that began before the cut leaves no page of what was cut off behind. */
struct cutter {
	s64 fd;
	u64 seen; /* bit n: a CPU has read n */
};

static void cut_or_touch(void *arg)
{
	struct cutter *c = arg;
	u64 word;

	if (cpu_id() == 0) {
		EXPECT_EQ(program_call("ftruncate", c->fd, 0), 0);
		EXPECT_EQ(program_call("ftruncate", c->fd, 4 * PAGE_SIZE), 0);
		return;
	}
	for (unsigned i = 0; i < 3; i++)
		if (user_read(&word, AT, sizeof(word)) == 0)
			atomic_fetch_or(&c->seen, 1ULL << MIN(word, 63));
}

TEST(program_commit, a_touch_while_a_file_is_cut_keeps_no_page_of_it)
{
	struct cutter c = {.fd = mapped_file(0)};
	u64 word = 9;

	cpus_run_together(cut_or_touch, &c);
	EXPECT_EQ(c.seen & ~(1ULL << 0 | 1ULL << 1), 0);
	EXPECT_EQ(get(AT), 0);
	EXPECT_EQ(put(AT, word), 0);
	EXPECT_EQ(program_call("pread64", c.fd, RESULTS, sizeof(word), 0), sizeof(word));
	EXPECT_EQ(get(RESULTS), word);
	EXPECT_EQ(unmap(AT, 4 * PAGE_SIZE), 0);
}

/* A hole is touched and cut off at once: neither the touch nor the cut waits for the other. */
static void touch_or_cut(void *arg)
{
	const s64 fd = *(const s64 *)arg;

	if (cpu_id() == 0)
		(void)put(AT, 5);
	else
		EXPECT_EQ(program_call("ftruncate", fd, 0), 0);
}

TEST(program_commit, a_touch_of_a_hole_that_is_cut_off_ends)
{
	s64 fd = mapped_file(0);

	SKIP_ON_ONE_CPU();
	EXPECT_EQ(program_call("fallocate", fd, HOLE, 0, 4 * PAGE_SIZE), 0);
	cpus_run_together(touch_or_cut, &fd);
	EXPECT_EQ(get(AT), ~0ULL);
	EXPECT_EQ(unmap(AT, 4 * PAGE_SIZE), 0);
}

/* One CPU makes the file longer and touches it, while others make it empty, as it was. */
static void grow_or_cut(void *arg)
{
	const s64 fd = *(const s64 *)arg;

	if (cpu_id() == 0) {
		EXPECT_EQ(program_call("ftruncate", fd, PAGE_SIZE), 0);
		(void)put(AT, 5);
	} else {
		EXPECT_EQ(program_call("ftruncate", fd, 0), 0);
	}
}

TEST(program_commit, a_cut_that_meets_growth_leaves_no_page_to_mappings)
{
	enum { END = 2 };
	s64 fd = mapped_file(0);

	EXPECT_EQ(program_call("ftruncate", fd, 0), 0);
	cpus_run_together(grow_or_cut, &fd);
	if (program_call("lseek", fd, 0, END) == 0)
		EXPECT_EQ(get(AT), ~0ULL);
	EXPECT_EQ(program_call("ftruncate", fd, PAGE_SIZE), 0);
	EXPECT_EQ(put(AT, 9), 0);
	EXPECT_EQ(program_call("pread64", fd, RESULTS, sizeof(u64), 0), sizeof(u64));
	EXPECT_EQ(get(RESULTS), 9);
	EXPECT_EQ(unmap(AT, 4 * PAGE_SIZE), 0);
}

/* A mapping moves while its file is cut. */
static void move_or_cut(void *arg)
{
	const s64 fd = *(const s64 *)arg;

	if (cpu_id() == 0)
		EXPECT_EQ(program_call("ftruncate", fd, 0), 0);
	else if (cpu_id() == 1)
		EXPECT_EQ(program_call("mremap", AT, PAGE_SIZE, PAGE_SIZE, MOVE_FIXED, AT / 2),
			  AT / 2);
}

TEST(program_commit, a_mapping_that_moves_loses_what_its_file_loses)
{
	s64 fd = mapped_file(0);

	SKIP_ON_ONE_CPU();
	cpus_run_together(move_or_cut, &fd);
	EXPECT_EQ(get(AT / 2), ~0ULL);
	EXPECT_EQ(unmap(AT, 4 * PAGE_SIZE), 0);
	EXPECT_EQ(unmap(AT / 2, PAGE_SIZE), 0);
}

TEST(program_commit, a_sealed_file_is_neither_written_nor_mapped_to_be)
{
	enum { ADD = 1033, GROW = 4, SHRINK = 2, WRITE = 8 };
	const s64 fd = mapped_file(ALLOW_SEALING);

	EXPECT_EQ(program_call("fcntl", fd, ADD, 64), -EINVAL);
	EXPECT_EQ(program_call("fcntl", 0, ADD, WRITE), -EINVAL);
	EXPECT_EQ(program_call("fcntl", fd, ADD, WRITE), -EBUSY);
	EXPECT_EQ(program_call("fcntl", fd, ADD, GROW | SHRINK), 0);
	EXPECT_EQ(program_call("ftruncate", fd, 5 * PAGE_SIZE), -EPERM);
	EXPECT_EQ(program_call("ftruncate", fd, PAGE_SIZE), -EPERM);
	EXPECT_EQ(program_call("pwrite64", fd, ARGUMENTS, 2, 4 * PAGE_SIZE - 1), -EPERM);
	EXPECT_EQ(program_call("pwrite64", fd, ARGUMENTS, 2, 4 * PAGE_SIZE - 2), 2);
	EXPECT_EQ(unmap(AT, 4 * PAGE_SIZE), 0);
	EXPECT_EQ(program_call("fcntl", fd, ADD, WRITE), 0);
	EXPECT_EQ(program_call("fcntl", fd, ADD + 1), GROW | SHRINK | WRITE);
	EXPECT_EQ(program_call("pwrite64", fd, ARGUMENTS, 1, 0), -EPERM);
	EXPECT_EQ(program_call("fallocate", fd, HOLE, 0, PAGE_SIZE), -EPERM);
	EXPECT_EQ(program_call("mmap", AT, PAGE_SIZE, RW, SHARED | 0x10, fd, 0), -EPERM);
	EXPECT_EQ(program_call("mmap", AT, PAGE_SIZE, R, SHARED | 0x10, fd, 0), AT);
	EXPECT_EQ(protect(AT, PAGE_SIZE, RW), -EACCES);
	EXPECT_EQ(get(AT), 1);
	EXPECT_EQ(unmap(AT, PAGE_SIZE), 0);
}

/* A shared file is shown once more; without MREMAP_FIXED the last argument means nothing. */
TEST(program_commit, a_low_place_that_is_asked_for_is_given_once)
{
	enum { LOW = 0x62 }; /* private, anonymous, MAP_32BIT */
	const u64 asked[] = {GIB(1), 0x50000000, GIB(1) - PAGE_SIZE, AT, GIB(2) - PAGE_SIZE};
	const u64 given[] = {GIB(1), 0x50000000, GIB(1) - PAGE_SIZE, GIB(1) + PAGE_SIZE,
			     GIB(2) - PAGE_SIZE};

	for (unsigned i = 0; i < ARRAY_LEN(asked); i++)
		EXPECT_EQ(program_call("mmap", asked[i], PAGE_SIZE, RW, LOW, -1ULL, 0), given[i]);
	EXPECT_EQ(program_call("mmap", 0x50000000, PAGE_SIZE, RW, LOW, -1ULL, 0),
		  GIB(1) + 2 * PAGE_SIZE);
	EXPECT_EQ(program_call("mmap", GIB(1), GIB(1), RW, LOW, -1ULL, 0), -ENOMEM);
	for (unsigned i = 0; i < ARRAY_LEN(given); i++)
		EXPECT_EQ(unmap(given[i], PAGE_SIZE), 0);
	EXPECT_EQ(unmap(GIB(1) + 2 * PAGE_SIZE, PAGE_SIZE), 0);
}

TEST(program_commit, a_move_of_nothing_shows_the_file_again_at_a_free_place)
{
	static const u64 meaningless[] = {1, 2 * AT + 1, ~0ULL};

	mapped_file(0);
	for (unsigned i = 0; i < ARRAY_LEN(meaningless); i++) {
		const s64 to = program_call("mremap", AT + PAGE_SIZE, 0, PAGE_SIZE, MAYMOVE,
					    meaningless[i]);

		REQUIRE(to > 0);
		EXPECT(IS_ALIGNED((u64)to, PAGE_SIZE));
		EXPECT_EQ(get((u64)to), 2);
		EXPECT_EQ(unmap((u64)to, PAGE_SIZE), 0);
	}
	EXPECT_EQ(unmap(AT, 4 * PAGE_SIZE), 0);
}
