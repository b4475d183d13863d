/*
 * The CPU's timer: it never comes early, is not lost in naps, and is one at a time.
 */
#include "tests/kernel/test.h"

#define SOON  (20 * NS_PER_MS) /* long enough for many naps */
#define LIMIT (5 * NS_PER_S)

/* A nap ends at the latest with its own interrupt, so this many naps may last for seconds. */
enum { NAPS = 10000 };

static u64 came_at;

static void note(void *arg)
{
	atomic_store_release(&came_at, clock_ns());
}

/*
 * Wait for the timer. The limit applies to both the clock and the number of naps, so that time does
 * not count in which the host runs neither this CPU nor the timer.
 */
static bool timer_comes(void)
{
	const u64 start = clock_ns();

	for (u64 naps = 0;
	     !atomic_load_acquire(&came_at) && (naps < NAPS || clock_ns() - start < LIMIT); naps++)
		cpu_nap(1);
	return atomic_load_acquire(&came_at) != 0;
}

/*
 * Interrupts are off between the two calls. However late the host lets the second call happen, the
 * timer has not come yet.
 */
TEST(kernel_irq, the_timer_comes_once_and_not_early)
{
	const irq_flags_t flags = irq_save();
	const u64 start = clock_ns();
	int first, second;

	came_at = 0;
	first = timer_once(SOON, note, NULL);
	second = timer_once(SOON, note, NULL);
	irq_restore(flags);
	if (first == -ENODEV)
		SKIP("needs a timer");
	EXPECT_EQ(first, 0);
	EXPECT_EQ(second, -EBUSY);
	REQUIRE(timer_comes());
	EXPECT(came_at - start >= SOON);
	came_at = 0;
	clock_delay_ns(SOON);
	EXPECT_EQ(came_at, 0);
	REQUIRE(timer_once(0, note, NULL) == 0);
	EXPECT(timer_comes());
}

enum { OWNERS = TIMER_WATCH }; /* the watchdog may need its own */
static u32 fired[OWNERS];

static void count(void *arg)
{
	atomic_fetch_add((u32 *)arg, 1);
}

/*
 * Deadlines of one CPU do not know each other. The one that is cleared never comes, and all others
 * do, in whichever order they are set and whichever is the earliest. Interrupts are off until all
 * are set, and each deadline has passed by then or passes later, as the host pleases.
 */
TEST(kernel_irq, a_deadline_is_its_owners_alone)
{
	for (unsigned order = 0; order < 36; order++) {
		const unsigned cleared = order % 4; /* 3: none */
		const irq_flags_t flags = irq_save();
		const u64 now = clock_ns();
		int err = 0;

		for (unsigned i = 0; i < OWNERS; i++) {
			const unsigned owner = (i * (1 + order % 2) + order / 2) % OWNERS;

			fired[owner] = 0;
			err |= timer_set(owner, now + (owner + order / 4) % 3 * NS_PER_MS, count,
					 &fired[owner]);
		}
		if (cleared < OWNERS)
			timer_clear(cleared);
		irq_restore(flags);
		if (err == -ENODEV)
			SKIP("needs a timer");
		for (unsigned owner = 0; owner < OWNERS; owner++)
			while (owner != cleared && !atomic_load_acquire(&fired[owner]))
				cpu_nap(1);
		clock_delay_ns(3 * NS_PER_MS);
		for (unsigned owner = 0; owner < OWNERS; owner++)
			EXPECT_EQ(fired[owner], owner != cleared);
	}
}

static void set_once(void *err)
{
	*(int *)err = timer_once(10 * NS_PER_S, note, NULL);
}

static void send_set_once(void *err)
{
	call_cpu(0, set_once, err);
}

/* A message that comes while CPU 0 waits, or as its wait ends, sets timer_once(). */
TEST(kernel_irq, a_wait_leaves_what_a_message_sets)
{
	const cpu_t cpu = cpus_find_other();
	const u32 flag = 0;
	int err = 1;

	SKIP_ON_ONE_CPU();
	came_at = 0;
	REQUIRE(work_start(cpu, send_set_once, &err) == 0);
	cpu_wait(&flag, clock_ns() + 20 * NS_PER_US);
	work_wait(cpu, 10 * NS_PER_S);
	if (err == -ENODEV)
		SKIP("needs a timer");
	EXPECT_EQ(err, 0);
	EXPECT(came_at || timer_once(NS_PER_S, note, NULL) == -EBUSY);
	timer_cancel();
}
