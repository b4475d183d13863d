/*
 * Tests of the hosted machine itself: mappings are real, and the watcher catches the errors that it
 * exists for and accepts correct sequences. These tests break rules on purpose. Each announces the
 * panic that follows to the runner, and fails if the panic does not come.
 *
 * The mappings use window 3 and the frames that are set aside for an image that does not exist
 * here.
 */
#ifndef HOST_FAST

#include <arch/check.h>
#include <arch/memory.h>
#include <arch/pgtable.h>
#include <arch/tlb.h>

#include "mm/map/pgtable.h"
#include "tests/kernel/must_end.h"
#include "tests/kernel/test.h"

static pfn_t next_frame = HOST_IMAGE_START >> PAGE_SHIFT;

static pfn_t take_frame(void *ctx)
{
	pfn_t pfn = next_frame++;

	memset(phys_to_virt(pfn << PAGE_SHIFT), 0, PAGE_SIZE);
	return pfn;
}

static virt_t window(void)
{
	return VMEMMAP_BASE + 3 * VMEMMAP_WINDOW_SIZE + MIB(64);
}

static pte_t *entry_of(virt_t virt, enum pt_level level)
{
	return pgtable_entry(pgtable_root(), virt, level, take_frame, NULL);
}

static u64 *word_of(pfn_t pfn)
{
	return phys_to_virt(pfn << PAGE_SHIFT);
}

/* The frame must not be used again yet; the panic says why. */
static void expect_not_free(pfn_t frame, const char *text)
{
	MUST_END(text, check_frames_reused(frame, 1));
}

/*
 * The time of page-table stores is counted, once and no more than it was, and nothing else is. What
 * bench=hvo prints without it is then the time of the kernel's own code.
 */
TEST(host_simulate, time_of_stores_and_of_nothing_else_is_counted)
{
	enum { STORES = 2000 };
	pfn_t frame = take_frame(NULL);
	pte_t *entry = entry_of(window(), PT_PAGE);
	struct check_spent before, after;
	u64 ns = clock_ns();

	REQUIRE(entry);
	check_spent(&before);
	EXPECT(before.simulated);
	for (unsigned i = 0; i < STORES; i++)
		pte_store(entry, window(), PT_PAGE,
			  pte_make(frame, PT_PAGE, i & 1 ? PT_RO : PT_RW));
	ns = clock_ns() - ns;
	check_spent(&after);
	EXPECT(after.ns - before.ns > ns / 2);
	EXPECT(after.ns - before.ns <= ns + ns / 8);
	EXPECT(after.host_faults - before.host_faults < STORES / 10);

	check_spent(&before);
	clock_delay_ns(NS_PER_MS);
	check_spent(&after);
	EXPECT(after.ns - before.ns < NS_PER_MS / 10);

	pte_store(entry, window(), PT_PAGE, 0);
	tlb_flush_local_all();
}

/*
 * Map one 2 MiB leaf over the image's frames and split it into a table of the same frames; readers
 * notice nothing.
 */
static pte_t *split_leaf(void)
{
	pte_t *pmd = entry_of(window(), PT_PMD);
	pfn_t base = HOST_IMAGE_START >> PAGE_SHIFT, table = take_frame(NULL);
	pte_t *ptes = (pte_t *)word_of(table);

	pte_store(pmd, window(), PT_PMD, pte_make(base, PT_PMD, PT_RW));
	*(volatile u64 *)(window() + 500 * PAGE_SIZE) = 45;
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++)
		ptes[i] = pte_make(base + i, PT_PAGE, PT_RW);
	pte_store(pmd, window(), PT_PMD, pte_make_table(table));
	return ptes;
}

TEST(host_watch, entries_below_a_new_size_wait_for_a_round)
{
	pte_t *ptes = split_leaf();

	MUST_END("in another mapping size", pte_store(&ptes[1], window() + PAGE_SIZE, PT_PAGE, 0));
}

/* A frame that was mapped writable and then unmapped. */
static pfn_t unmapped_frame(void)
{
	pfn_t frame = take_frame(NULL);
	pte_t *entry = entry_of(window(), PT_PAGE);

	pte_store(entry, window(), PT_PAGE, pte_make(frame, PT_PAGE, PT_RW));
	pte_store(entry, window(), PT_PAGE, 0);
	return frame;
}

TEST(host_watch, reuse_without_any_flush_is_caught)
{
	pfn_t frame = unmapped_frame();

	expect_not_free(frame, "is reused while CPU 0 may still write to it");
}

TEST(host_watch, flushing_another_page_is_not)
{
	pfn_t frame = unmapped_frame();

	tlb_flush_local_page(window() + PAGE_SIZE);
	expect_not_free(frame, "is reused while CPU 0 may still write to it");
}

/*
 * Sleepers pass a check but owe a flush. Here a CPU is woken without a new generation, so it does
 * not flush.
 */
TEST(host_watch, a_sleeper_that_wakes_without_flushing_is_caught)
{
	u64 until = clock_ns() + 10 * NS_PER_S;
	pfn_t frame;

	if (cpu_count < 2)
		SKIP("needs two CPUs");
	while (!atomic_load_acquire(&cpu_data(1)->idle) && clock_ns() < until)
		cpu_relax();
	frame = unmapped_frame();
	tlb_flush_local_all();
	check_frames_reused(frame, 1);
	MUST_END_SAYING("CPU 1 woke and went on without flushing");
	ipi_send(1);
	clock_delay_ns(10 * NS_PER_S);
	STILL_THERE();
}

static void stay_until(void *arg)
{
	u32 *state = arg;

	atomic_store_release(state, 1);
	while (atomic_load_acquire(state) != 2)
		cpu_relax();
}

/*
 * CPU 1 is awake and has not flushed, so the frame must not be reused, whatever this CPU has
 * flushed.
 */
TEST(host_watch, a_cpu_that_is_awake_is_no_sleeper)
{
	static u32 state;
	struct wait wait = wait_begin(WAIT_ANSWER, "CPU 1 to be busy");
	pfn_t frame;

	if (cpu_count < 2)
		SKIP("needs two CPUs");
	REQUIRE(work_start(1, stay_until, &state) == 0);
	while (atomic_load_acquire(&state) != 1)
		wait_spin(&wait, 1);
	frame = unmapped_frame();
	tlb_flush_local_all();
	expect_not_free(frame, "is reused while CPU 1 may still write to it");
}

/*
 * A page-table page must not be reused while CPUs sleep, because even a sleeping CPU's page walk
 * may still go through it.
 */
TEST(host_watch, a_table_is_not_free_for_sleepers)
{
	pte_t *pmd = entry_of(window(), PT_PMD);
	pfn_t table = take_frame(NULL);

	if (cpu_count < 2)
		SKIP("needs two CPUs");
	pte_store(pmd, window(), PT_PMD, pte_make_table(table));
	pte_store(pmd, window(), PT_PMD, 0);
	shootdown_full(SHOOTDOWN_SKIP_IDLE);
	expect_not_free(table, "as the page table of");
}

#endif
