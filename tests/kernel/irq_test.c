/* The CPU's timer and the lines of devices: not early, not lost by naps, one at a time. What needs a device: tests/payload/devices. */
#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/irq.h>

#include "kernel/call.h"
#include "kernel/percpu.h"
#include "kernel/test.h"

#define SOON (20 * NS_PER_MS) /* many naps */
#define LIMIT (5 * NS_PER_S)

static u64 came_at;

static void note(void *arg)
{
	(void)arg;
	atomic_store_release(&came_at, clock_ns());
}

/* Time it came, after the start; 0 if it never did. */
static u64 wait_for_timer(u64 start)
{
	while (!atomic_load_acquire(&came_at) && clock_ns() - start < LIMIT)
		cpu_nap(1);
	return came_at ? came_at - start : 0;
}

TEST(kernel_irq, the_timer_comes_once_and_not_early)
{
	u64 start = clock_ns();

	came_at = 0;
	if (timer_once(SOON, note, NULL) == -ENODEV)
		SKIP("needs a timer");
	EXPECT_EQ(timer_once(SOON, note, NULL), -EBUSY);
	EXPECT(wait_for_timer(start) >= SOON);
	came_at = 0;
	clock_delay_ns(SOON);
	EXPECT_EQ(came_at, 0);
	start = clock_ns();
	REQUIRE(timer_once(0, note, NULL) == 0);
	EXPECT(wait_for_timer(start) > 0);
}

static void set_timer(void *arg)
{
	*(int *)arg = timer_once(SOON, note, NULL);
}

TEST(kernel_irq, every_cpu_has_its_own)
{
	int err = 1;

	if (cpumask_weight(&cpus_online) < 2)
		SKIP("needs two CPUs");
	came_at = 0;
	REQUIRE(work_start(1, set_timer, &err) == 0);
	work_wait(1, 0);
	if (err == -ENODEV)
		SKIP("needs a timer");
	EXPECT_EQ(err, 0);
	EXPECT(wait_for_timer(clock_ns()) > 0 || came_at);
}

TEST(kernel_irq, lines_that_do_not_exist_are_refused)
{
	EXPECT_EQ(irq_register(1000000, IRQ_EDGE, note, NULL), -ENODEV);
	irq_unregister(1000000);
}
