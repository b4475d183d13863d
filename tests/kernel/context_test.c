/*
 * One word per CPU records the kind of code that runs there, and therefore what that code may do.
 * Misuse that ends the machine is tested in the hosted runner, where each case has a machine of its
 * own, and in a kernel by tests/qemu/test_context.py.
 */
#include "kernel/core/context.h"

#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/irq.h>

#include "kernel/core/call.h"
#include "kernel/core/lock.h"
#include "kernel/core/shootdown.h"
#include "kernel/core/wait.h"
#include "kernel/lib/string.h"
#include "kernel/run/test.h"
#include "mm/hugetlb/pool.h"
#include "mm/mapping/huge_map.h"
#include "mm/mm.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/fixture.h"

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

/* ---- each misuse ends the machine: hosted only, in builds with and without checks ---- */

#ifdef ASHLAR_HOSTED

#include "tests/kernel/must_end.h"

static struct page *page;

/* What neither a called function nor the holder of a lock may do. */
enum misuse { ALLOC, ALLOC_NOFLUSH, FREE, PUT, MAP, TOUCH, GROW, ROUND, RANGED_ROUND, CALL };

static void look_nowhere(void *arg)
{
}

static void flush_one(void)
{
	struct shootdown_batch batch = {0};

	shootdown_batch_add(&batch, (virt_t)&page, 1);
	shootdown_batch_flush(&batch, SHOOTDOWN_SKIP_IDLE);
}

static void misuse(void *what)
{
	switch ((enum misuse)(uintptr_t)what) {
	case ALLOC:
		page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
		break;
	case ALLOC_NOFLUSH:
		page_alloc(0, USE_UNMOVABLE, PAGE_NOFLUSH, NODE_NONE);
		break;
	case FREE:
		page_free(page);
		break;
	case PUT:
		page_put(page);
		break;
	case MAP:
		mmio_map(0xfec00000, PAGE_SIZE);
		break;
	case TOUCH:
		*(volatile u8 *)seen.untouched = 1;
		break;
	case GROW:
		pool_grow(&pool_2m, hvo_mode_selected(), 1);
		break;
	case ROUND:
		shootdown_full(SHOOTDOWN_SKIP_IDLE);
		break;
	case RANGED_ROUND:
		flush_one();
		break;
	case CALL:
		call_cpus(&cpus_online, look_nowhere, NULL);
		break;
	}
}

static void called_from_elsewhere(enum misuse what, const char *announced)
{
	const cpu_t other = cpus_find_other();

	SKIP_ON_ONE_CPU();
	page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	REQUIRE(page);
	MUST_END(announced, call_cpu(other, misuse, (void *)(uintptr_t)what));
}

static void called_with_a_lock(enum misuse what, const char *announced)
{
	struct spinlock lock = SPINLOCK_INIT(LOCK_POOL);

	page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	REQUIRE(page);
	spin_lock(&lock);
	MUST_END(announced, misuse((void *)(uintptr_t)what));
}

#define IN_A_CALL "in a function that another CPU called here"

TEST(kernel_context, allocating_in_a_call_is_caught)
{
	called_from_elsewhere(ALLOC, "page_alloc() " IN_A_CALL);
}

TEST(kernel_context, allocating_without_a_flush_in_a_call_is_caught)
{
	called_from_elsewhere(ALLOC_NOFLUSH, "page_alloc() " IN_A_CALL);
}

TEST(kernel_context, freeing_in_a_call_is_caught)
{
	called_from_elsewhere(FREE, "page_free() " IN_A_CALL);
}

TEST(kernel_context, dropping_a_reference_in_a_call_is_caught)
{
	called_from_elsewhere(PUT, "page_put() " IN_A_CALL);
}

TEST(kernel_context, mapping_registers_in_a_call_is_caught)
{
	called_from_elsewhere(MAP, "mmio_map() " IN_A_CALL);
}

TEST(kernel_context, allocating_with_a_lock_held_is_caught)
{
	called_with_a_lock(ALLOC, "page_alloc() with a lock held (1)");
}

TEST(kernel_context, freeing_with_a_lock_held_is_caught)
{
	called_with_a_lock(FREE, "page_free() with a lock held (1)");
}

TEST(kernel_context, a_first_touch_with_a_lock_held_is_caught)
{
	called_with_a_lock(TOUCH, "first touch of a page of a huge mapping with a lock held (1)");
}

TEST(kernel_context, growing_a_pool_with_a_lock_held_is_caught)
{
	called_with_a_lock(GROW, "pool_grow() with a lock held (1)");
}

TEST(kernel_context, a_round_with_a_lock_held_is_caught)
{
	called_with_a_lock(ROUND, "shootdown_full() with a lock held (1)");
}

TEST(kernel_context, a_ranged_round_with_a_lock_held_is_caught)
{
	called_with_a_lock(RANGED_ROUND, "shootdown_ranged() with a lock held (1)");
}

TEST(kernel_context, calling_other_cpus_with_a_lock_held_is_caught)
{
	called_with_a_lock(CALL, "call_cpus() with a lock held (1)");
}

#endif
