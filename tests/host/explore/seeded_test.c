/*
 * Four mistakes to find, for people who learn to use the explorer, and for its own tests. Without
 * the word test.seeded_bug= on the command line the code is right.
 *
 *	make explore T='host.seeded.*' CMDLINE='test.seeded_bug=2'
 *
 *	1   two CPUs increase a counter by a load and a store
 *	2   two CPUs say that they enter, and look whether the other has, without a fence
 *	3   a CPU waits for a flag that another sets without waking it
 *	4   a page-table entry gets another page without a round. No frame is given back, so the
 *	    watcher (check.c) cannot notice; the case notices that a CPU writes to the old page
 */
#include "mm/map/pgtable.h"
#include "mm/mm.h"
#include "tests/kernel/test.h"

enum { LOST_UPDATE = 1, NO_FENCE, NO_WAKE, NO_ROUND, BUGS = NO_ROUND };

static u64 seeded_bug;
OPTION_U64(test.seeded_bug, seeded_bug, 0, BUGS, "mistake in the cases host.seeded.*; 0: none");

static u32 counter, said[2], inside, flag;

static void increase(void *unused)
{
	if (seeded_bug == LOST_UPDATE)
		atomic_store_relaxed(&counter, atomic_load_relaxed(&counter) + 1);
	else
		atomic_fetch_add(&counter, 1);
}

TEST(host_seeded, each_cpu_counts)
{
	cpu_t cpus;

	counter = 0;
	cpus = cpus_run_together(increase, NULL);
	EXPECT_EQ(counter, cpus);
}

/* CPUs 0 and 1 say that they enter, and enter only if the other CPU has not said so. */
static void enter(void *unused)
{
	const cpu_t cpu = cpu_id();

	if (cpu > 1)
		return;
	atomic_store_relaxed(&said[cpu], 1);
	if (seeded_bug != NO_FENCE)
		fence_full();
	if (!atomic_load_relaxed(&said[!cpu]))
		atomic_fetch_add(&inside, 1);
}

TEST(host_seeded, at_most_one_cpu_is_inside)
{
	said[0] = said[1] = inside = 0;
	cpus_run_together(enter, NULL);
	EXPECT(inside <= 1);
}

/* CPU 0 sets the flag after some stores. The others spin until then, and wake each other. */
static void set_or_spin(void *unused)
{
	for (u32 i = 0; cpu_id() == 0 && i < 20; i++)
		atomic_store_relaxed(&said[0], i);
	if (cpu_id() == 0)
		atomic_store_release(&flag, 1);
	for (; !atomic_load_acquire(&flag); cpu_relax())
		atomic_fetch_add(&counter, 1);
}

TEST(host_seeded, cpus_that_spin_leave_another_its_turns)
{
	cpus_run_together(set_or_spin, NULL);
}

static void set_flag(void *waiter)
{
	atomic_store_release(&flag, 1);
	if (seeded_bug != NO_WAKE)
		cpu_wake(*(const cpu_t *)waiter);
}

TEST(host_seeded, a_cpu_that_waits_is_woken)
{
	const cpu_t other = cpus_find_other(), self = cpu_id();

	if (other == CPU_NONE)
		SKIP("needs two CPUs");
	flag = 0;
	REQUIRE(work_start(other, set_flag, (void *)&self) == 0);
	EXPECT(cpu_wait(&flag, 0));
	work_wait(other, 0);
}

static struct page *pages[2];
static u32 *mapped;

/* Map that page at `mapped`. */
static void map_instead(struct page *page)
{
	const virt_t virt = (virt_t)mapped;

	pte_store(pgtable_entry(pgtable_root(), virt, PT_PAGE, NULL, NULL), virt, PT_PAGE,
		  pte_make(page_pfn(page), PT_PAGE, PT_RW));
	if (seeded_bug != NO_ROUND)
		shootdown_full(SHOOTDOWN_ALL_CPUS);
}

/* CPU 0 maps the second page, and then CPU 1 writes. */
static void map_or_write(void *unused)
{
	(void)unused;
	if (cpu_id() == 0) {
		map_instead(pages[1]);
		atomic_store_release(&flag, 1);
	}
	if (cpu_id() == 1) {
		CPUS_AWAIT(atomic_load_acquire(&flag));
		atomic_store_relaxed(mapped, 1);
	}
}

TEST(host_seeded, a_write_goes_to_the_page_that_is_mapped)
{
	SKIP_ON_ONE_CPU();
	flag = 0;
	for (u32 i = 0; i < 2; i++)
		REQUIRE((pages[i] = page_alloc(0, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE)));
	REQUIRE((mapped = page_map(pages[0], PAGE_SIZE)));
	cpus_run_together(map_or_write, NULL);
	EXPECT_EQ(*(u32 *)page_address(pages[1]), 1);
	map_instead(pages[0]);
	page_unmap(mapped);
	page_free(pages[0]);
	page_free(pages[1]);
}
