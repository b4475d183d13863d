/*
 * Tests that the sanitizers report. Each is given one mistake of its kind, and must end the machine
 * with the right words. In a build in which they are silent, every other test would pass.
 */
#include "mm/mm.h"
#include "tests/kernel/must_end.h"

#if defined(__SANITIZE_ADDRESS__)
TEST(host_sanitizers, address)
{
	/* volatile: the compiler must not know the target */
	volatile char *volatile block = malloc(8);

	MUST_END("heap-buffer-overflow", block[8] = 1);
	free((void *)block);
}

TEST(host_sanitizers, undefined_behaviour)
{
	volatile int shift = 40;

	MUST_END("shift exponent 40 is too large", shift = 1 << shift);
}
#endif

#if defined(__SANITIZE_MEMORY__)
/*
 * The page is written before it is freed, so that only the allocator can have marked it as
 * unwritten.
 */
TEST(host_sanitizers, memory)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);
	volatile u64 *word;

	REQUIRE(page);
	word = page_address(page);
	EXPECT_EQ(word[7], 0);
	page_free(page);
	page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	REQUIRE(page);
	word = page_address(page);
	word[6] = 1;
	EXPECT_EQ(word[6], 1);
	MUST_END_SAYING("use-of-uninitialized-value");
	if (word[7])
		print("something was there\n");
	STILL_THERE();
	page_free(page);
}
#endif

#if defined(__SANITIZE_THREAD__)
static u64 contended;
static u32 other_runs;

/* Relaxed on purpose, because an ordering access would hide the race. */
static void add_for_ever(void *unused)
{
	for (;;) {
		contended++;
		atomic_store_relaxed(&other_runs, 1);
	}
}

TEST(host_sanitizers, thread)
{
	struct wait wait = wait_begin(WAIT_ANSWER, "CPU 1 to run");

	if (cpu_count < 2)
		SKIP("needs two CPUs");
	MUST_END_SAYING("data race");
	REQUIRE(work_start(1, add_for_ever, NULL) == 0);
	while (!atomic_load_relaxed(&other_runs))
		wait_spin(&wait, 1);
	for (unsigned i = 0; i < 1000000; i++)
		contended++;
	STILL_THERE();
}
#endif
