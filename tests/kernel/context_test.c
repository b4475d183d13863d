/*
 * One word per CPU records the kind of code that runs there, and therefore what that code may do.
 * Misuse that ends the machine is tested in the hosted runner, where each case has a machine of its
 * own, and in a kernel by tests/qemu/test_context.py.
 */
#include "kernel/core/context.h"

#include "mm/hugetlb/pool.h"
#include "mm/mapping/huge_map.h"
#include "tests/kernel/fixture.h"
#include "tests/kernel/test.h"

static struct {
	u32 word;
	bool may, may_touch;
	char reason[CONTEXT_REASON_MAX];
	void *untouched;
	u32 done;
} seen;

/* Record what the calling code is allowed to do. */
static void look(void *arg)
{
	seen.word = this_cpu()->context;
	seen.may = context_may(CONTEXT_ORDINARY);
	seen.may_touch = seen.untouched &&
			 huge_fault((virt_t)seen.untouched, true, false, false) == FAULT_RETRY;
	context_reason(seen.reason, sizeof(seen.reason));
	atomic_store_release(&seen.done, 1);
}

/* Nothing was seen yet, and there is a mapping whose pages may come. False without memory. */
static bool seen_begin(void)
{
	memset(&seen, 0, sizeof(seen));
	seen.untouched = huge_map(MIB(2), PAGE_SIZE, 0);
	return seen.untouched;
}

static void seen_end(void)
{
	huge_unmap(seen.untouched);
}

FIXTURE(kernel_context, seen_begin, seen_end);

static bool wait_for_look(void)
{
	struct wait wait = wait_begin(WAIT_ANSWER, "a look at the context");

	while (!atomic_load_acquire(&seen.done) && wait.late == 0)
		wait_spin(&wait, CPU_NONE);
	return seen.done;
}

#define EXPECT_REASON(text) EXPECT(strncmp(seen.reason, text, strlen(text)) == 0)

TEST(kernel_context, locks_are_counted_in_every_build)
{
	struct spinlock pool = SPINLOCK_INIT(LOCK_POOL), leaf = SPINLOCK_INIT(LOCK_LEAF);

	spin_lock(&pool);
	EXPECT(spin_trylock(&leaf));
	EXPECT(!spin_trylock(&leaf)); /* a failed try does not stay counted */
	look(NULL);
	EXPECT(context_may(CONTEXT_LOCKED));
	spin_unlock(&leaf);
	spin_unlock(&pool);
	EXPECT_EQ(seen.word, 2 * CONTEXT_LOCK);
	EXPECT(!seen.may);
	EXPECT(!seen.may_touch);
	EXPECT_REASON("with a lock held (2)");
	look(NULL);
	EXPECT_EQ(seen.word, 0);
	EXPECT(seen.may_touch);
}

/* With PAGE_NOFLUSH a holder of a lock can allocate pages. */
TEST(kernel_context, a_holder_of_a_lock_gets_pages_without_a_flush)
{
	struct spinlock lock = SPINLOCK_INIT(LOCK_POOL);
	struct page *page, *bulk[2];
	size_t count;

	spin_lock(&lock);
	page = page_alloc(0, USE_UNMOVABLE, PAGE_NOFLUSH, NODE_NONE);
	count = page_alloc_bulk(USE_UNMOVABLE, PAGE_NOFLUSH, NODE_NONE, bulk, ARRAY_LEN(bulk));
	spin_unlock(&lock);
	if (page)
		page_free(page);
	page_free_bulk(bulk, count);
}

TEST(kernel_context, a_function_that_another_cpu_calls_is_no_ordinary_code)
{
	const cpu_t other = cpus_find_other();

	SKIP_ON_ONE_CPU();
	call_cpu(other, look, NULL);
	EXPECT(seen.done);
	EXPECT(seen.word & CONTEXT_CALL);
	EXPECT(!seen.may);
	EXPECT(!seen.may_touch);
	EXPECT_REASON("in a function that another CPU called here");
}

static void call_back(void *arg)
{
	call_cpu(*(const cpu_t *)arg, look, NULL);
}

/* The call does not arrive by an interrupt, but is served by a wait. */
TEST(kernel_context, nor_is_one_that_a_wait_serves)
{
	const cpu_t other = cpus_find_other(), self = cpu_id();
	irq_flags_t flags;

	SKIP_ON_ONE_CPU();
	flags = irq_save();
	REQUIRE(work_start(other, call_back, (void *)&self) == 0);
	wait_for_look();
	irq_restore(flags);
	work_wait(other, 0);
	EXPECT_EQ(seen.word, CONTEXT_CALL);
	EXPECT(!seen.may);
	look(NULL);
	EXPECT_EQ(seen.word, 0);
}

TEST(kernel_context, an_interrupt_handler_is_no_ordinary_code)
{
	struct spinlock lock = SPINLOCK_INIT(LOCK_LEAF);

	spin_lock(&lock);
	if (timer_once(NS_PER_MS, look, NULL) == 0)
		while (!atomic_load_acquire(&seen.done))
			cpu_relax();
	spin_unlock(&lock);
	if (!seen.done)
		SKIP("needs a timer");
	EXPECT_EQ(seen.word, CONTEXT_INTERRUPT + CONTEXT_LOCK);
	EXPECT(!seen.may);
	EXPECT(!seen.may_touch);
	EXPECT_REASON("in an interrupt handler");
}

TEST(kernel_context, a_touch_may_let_interrupts_in_and_ends_with_them_off)
{
	const irq_flags_t flags = irq_save();

	EXPECT_EQ(huge_fault((virt_t)seen.untouched, true, false, true), FAULT_RETRY);
	EXPECT(!irq_enabled());
	irq_restore(flags);
}

/* ---- each misuse ends the machine: hosted only, in builds with and without checks ---- */

#ifdef ASHLAR_HOSTED

#include "tests/bench/misuse.h"
#include "tests/kernel/must_end.h"

/* What neither a called function nor the holder of a lock may do (tests/bench/misuse.c). */
#define TEST_MISUSE(suite, name, cpus, misuse, ...)                                                \
	TEST(suite, name)                                                                          \
	{                                                                                          \
		if (cpus_needed(cpus))                                                             \
			MUST_END(__VA_ARGS__, payload_misuse(misuse));                             \
	}

#define IN_A_CALL "in a function that another CPU called here"
#define LOCKED    "with a lock held (1)"

TEST_MISUSE(kernel_context, allocating_in_a_call_is_caught, 2, "alloc-in-call",
	    "page_alloc() " IN_A_CALL)
TEST_MISUSE(kernel_context, allocating_without_a_flush_in_a_call_is_caught, 2,
	    "alloc-noflush-in-call", "page_alloc() " IN_A_CALL)
TEST_MISUSE(kernel_context, freeing_in_a_call_is_caught, 2, "free-in-call",
	    "page_free() " IN_A_CALL)
TEST_MISUSE(kernel_context, dropping_a_reference_in_a_call_is_caught, 2, "put-in-call",
	    "page_put() " IN_A_CALL)
TEST_MISUSE(kernel_context, mapping_registers_in_a_call_is_caught, 2, "map-in-call",
	    "mmio_map() " IN_A_CALL)
TEST_MISUSE(kernel_context, allocating_with_a_lock_held_is_caught, 1, "alloc-with-lock",
	    "page_alloc() " LOCKED)
TEST_MISUSE(kernel_context, freeing_with_a_lock_held_is_caught, 1, "free-with-lock",
	    "page_free() " LOCKED)
TEST_MISUSE(kernel_context, a_first_touch_with_a_lock_held_is_caught, 1, "touch-with-lock",
	    "first touch of a page of a huge mapping " LOCKED)
TEST_MISUSE(kernel_context, growing_a_pool_with_a_lock_held_is_caught, 1, "grow-with-lock",
	    "pool_grow() " LOCKED)
TEST_MISUSE(kernel_context, a_round_with_a_lock_held_is_caught, 1, "round-with-lock",
	    "shootdown_full() " LOCKED)
TEST_MISUSE(kernel_context, a_ranged_round_with_a_lock_held_is_caught, 1, "ranged-round-with-lock",
	    "shootdown_ranged() " LOCKED)
TEST_MISUSE(kernel_context, calling_other_cpus_with_a_lock_held_is_caught, 1, "call-with-lock",
	    "call_cpus() " LOCKED)

#endif
