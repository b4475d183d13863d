/*
 * Random calls of all numbers, from several threads at once, with a model of areas as oracle
 * (fuzz_calls.h, program_window.h). Hosted, where a call costs no emulation.
 *
 *	make test WHAT=fuzz-calls N=10000000 SEED=1
 *
 * A round is a program with a seed of its own: test.seed=N is round 0, N + 1 is round 1, and so on.
 * What fails is printed with the seed of its round and the thread's last calls. That round alone is
 * made again by test.seed=THAT test.fuzz_calls=1; with two CPUs there is one thread besides the
 * watcher, and the calls are the same each time. test.fuzz_print=on prints every call before it is
 * made.
 */
#include "kernel/program/heap.h"
#include "kernel/program/program.h"
#include "kernel/program/program_space.h"
#include "mm/debug/account.h"
#include "mm/debug/leaks.h"
#include "mm/hugetlb/pool.h"
#include "mm/vm/pages_count.h"
#include "tests/host/fuzz_calls.h"
#include "tests/kernel/space_look.h"
#include "tests/kernel/test.h"

static u64 fuzz_calls;
OPTION_U64(test.fuzz_calls, fuzz_calls, 1, 1ULL << 40, "random calls of the case program.fuzz");
static bool fuzz_print;
OPTION_BOOL(test.fuzz_print, fuzz_print, "print each random call before it is made");

#if defined(HOST_EXPLORE)
enum { CALLS = 200, ROUND_CALLS = CALLS };
#elif defined(__SANITIZE_THREAD__)
enum { CALLS = 20000, ROUND_CALLS = 5000 }; /* minutes would pass on a busy host */
#else
enum { CALLS = 100000, ROUND_CALLS = 5000 };
#endif
enum { POOL_PAGES = 4, ACCOUNT_EVERY = 64 };

/*
 * The program's page tables and areas agree, when no thread is left: each leaf lies in an area with
 * its rights, no area is busy, and the counts are what is there. Returns what is wrong, or NULL.
 */
static const char *space_wrong(u64 *where)
{
	u64 leaves[3] = {0}, bytes = 0;
	const char *wrong = space_leaves_wrong(&program_space, 0, USER_END, leaves, where);
	struct pages_count count;
	struct area area = {.end = 0};

	while (!wrong && area_tree_from(&program_space.tree, area.end, &area)) {
		*where = area.start;
		bytes += area.end - area.start;
		if (area.flags & AREA_BUSY)
			wrong = "an area that is still busy";
	}
	if (!wrong && (bytes != program_space.bytes || program_space.tree.promised != 0))
		wrong = "bytes of areas, or promised nodes, are counted wrongly";
	pages_count(&program_space, &count);
	if (!wrong && memcmp(leaves, count.leaves, sizeof(leaves)) != 0)
		wrong = "leaves are counted wrongly";
	return wrong;
}

static void run_round(u64 seed, u64 calls)
{
	const u64 before = leaks_in_use();
	const struct trap_frame regs = fuzz_first_regs();
	const char *wrong;
	int status;
	u64 where = 0;

	print("fuzz: round seed=%llu\n", seed);
	fuzz_round.seed = seed;
	fuzz_round.calls = calls;
	REQUIRE(program_begin(&(struct program_request){.image = NULL}) == 0);
	heap_begin(FUZZ_HEAP);
	fuzz_calls_begin(seed, fuzz_print);
	/* in every fourth round, allocations fail again and again */
	fuzz_round.fail_nth = seed % 4 == 3 ? 1 + (u32)(seed / 4 % 24) : 0;
	user_enter(&regs, 0, NULL);
	threads_wait();
	fail_disarm(&mm_kernel.fail);
	fuzz_round.deaths += program_ended(&status) && status != 0;
	wrong = space_wrong(&where);
	if (wrong)
		test_fail(__FILE__, __LINE__, "seed %llu: %s (%llx)", seed, wrong, where);
	program_finish();
	EXPECT_EQ(leaks_in_use(), before);
	EXPECT(!fuzz_round.failed);
	if (test_failed())
		print("  # fuzz: seed %llu failed; again: test.seed=%llu test.fuzz_calls=1\n", seed,
		      seed);
}

TEST(program_fuzz, random_calls_leave_the_areas_as_the_model_says)
{
	const u64 calls = fuzz_calls ? fuzz_calls : CALLS;
	const u64 began = clock_ns();
	u64 grown, done = 0, rounds = 0, ns;

	if (cpu_count < 2)
		SKIP("needs two CPUs");
	grown = pool_grow(&pool_2m, hvo_mode_selected(), POOL_PAGES);
	fuzz_round = (struct fuzz_round){.failed = 0};
	host_user_program = fuzz_program;
	for (; done < calls && !test_failed(); rounds++) {
		run_round(soak_seed + rounds, ROUND_CALLS);
		for (unsigned i = 1; i < FUZZ_WORKERS; i++)
			done += fuzz_workers[i].calls;
		if (rounds % ACCOUNT_EVERY == 0)
			EXPECT(account_machine());
	}
	host_user_program = NULL;
	pool_shrink(&pool_2m, hvo_mode_selected(), grown);
	ns = clock_ns() - began;
	print("  # fuzz: %llu calls in %llu rounds, %llu a second; %llu threads, %llu signals, "
	      "%llu ends by a signal, %llu by a stall\n",
	      done, rounds, done * NS_PER_S / MAX(ns, 1ULL), fuzz_round.threads, fuzz_round.signals,
	      fuzz_round.deaths, fuzz_round.stalls);
}
