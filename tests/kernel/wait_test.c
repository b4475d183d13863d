/*
 * Waits that are late: the report names the CPU that is waited for and shows where that CPU is.
 */
#include "kernel/core/watchdog.h"
#include "tests/kernel/test.h"

enum { PERIOD_MS = 500, WHERE_MAX = 12 };

static void flush_all(void)
{
	shootdown_full(SHOOTDOWN_SKIP_IDLE);
}

static void no_work(void *unused)
{
}

static void call_all(void)
{
	call_cpus(&cpus_online, no_work, NULL);
}

static void expect_named(void (*ask)(void), const char *what)
{
	static struct cpus_deaf deaf;
	const cpu_t other = cpus_find_other();
	const u32 before = atomic_load_acquire(&wait_reports);
	char late[64];

	deaf = (struct cpus_deaf){0};
	said_begin();
	cpus_deaf_start(&deaf, other);
	wait_period_ms = PERIOD_MS;
	ask();
	wait_period_ms = 0;
	work_wait(other, 0);
	said_end();
	EXPECT(atomic_load_acquire(&wait_reports) > before);
	format(late, sizeof(late), "waiting for %s from CPU %u*cpus_be_deaf", what, other);
	EXPECT(said_says(late));
}

TEST(kernel_wait, a_cpu_that_does_not_acknowledge_is_named_and_shows_where_it_is)
{
	SKIP_ON_ONE_CPU();
	cpus_wait_idle();
	expect_named(flush_all, "a TLB shootdown");
	cpus_wait_idle();
	expect_named(call_all, "a cross-CPU call");
}

/*
 * A soft wait reports again and again. A report is no progress, and the watchdog must not take it
 * for progress.
 */
TEST(kernel_wait, saying_that_it_is_late_is_no_progress)
{
	struct wait wait = wait_begin(WAIT_ANSWER, "nothing, in a test");
	const u64 progress = log_progress();
	const u32 before = atomic_load_acquire(&wait_reports);

	wait.deadline_ns = 1;
	wait.bound = 0;
	while (wait.late < 2)
		wait_spin(&wait, CPU_NONE);
	EXPECT_EQ(log_progress(), progress);
	EXPECT(atomic_load_acquire(&wait_reports) > before);
	pr_debug("something goes on");
	EXPECT(log_progress() > progress);
}

/* ---- levels ---- */

TEST(kernel_wait, each_level_is_waited_for_twice_as_long_as_the_one_below)
{
	u32 below = 0;

	for (unsigned level = WAIT_CONSOLE; level < WAIT_LEVELS; level++) {
		const u32 bound = wait_begin(level, "nothing, in a test").bound;

		EXPECT(bound == 0 || bound >= 2 * below);
		below = MAX(bound, below);
	}
	EXPECT(below > 0);
}

/*
 * Wait for longer than the bound. The CPU waited for finishes one thing after the other, so the
 * wait is no hang.
 */
static void outlast(cpu_t culprit)
{
	struct wait wait = wait_begin(WAIT_ANSWER, "a CPU that goes on");

	wait.deadline_ns = 5 * NS_PER_MS * cpu_deadline_scale();
	while (wait.late < wait.bound + 3)
		wait_spin(&wait, culprit);
	EXPECT(wait.extended);
}

TEST(kernel_wait, a_wait_lasts_as_long_as_work_below_goes_on)
{
	static struct cpus_moving moving;
	const cpu_t other = cpus_find_other();

	SKIP_ON_ONE_CPU();
	moving = (struct cpus_moving){.level = WAIT_LOCK};
	cpus_move_start(&moving, other);
	outlast(other);
	outlast(CPU_NONE);
	atomic_store_release(&moving.stop, 1);
	work_wait(other, 0);
}

/* Progress from before the wait does not extend it. */
TEST(kernel_wait, a_wait_in_which_nothing_moves_is_not_extended)
{
	struct wait wait = wait_begin(WAIT_LOCK, "nothing, in a test");

	wait_moved(WAIT_CONSOLE);
	wait.deadline_ns = NS_PER_MS;
	while (wait.late < 3)
		wait_spin(&wait, cpu_id());
	EXPECT(!wait.extended);
}

TEST(kernel_wait, a_wait_for_a_lock_lasts_as_long_as_its_queue_moves)
{
	struct wait wait = wait_begin(WAIT_LOCK, "a turn in a queue");

	wait.deadline_ns = NS_PER_MS;
	wait.ahead = 40;
	while (wait.late < 3 * wait.bound) {
		wait.ahead = 40 - wait.late;
		wait_spin(&wait, CPU_NONE);
	}
	EXPECT(wait.extended);
}

/* The holder may print with the lock held, and its console be held up for seconds. */
TEST(kernel_wait, a_wait_for_a_lock_lasts_as_long_as_its_holder_waits_for_a_console)
{
	struct wait wait = wait_begin(WAIT_LOCK, "a holder that prints");

	wait.deadline_ns = NS_PER_MS;
	while (wait.late < 3 * wait.bound) {
		wait_moved(WAIT_CONSOLE);
		wait_spin(&wait, cpu_id());
	}
	EXPECT(wait.extended);
}

/*
 * A run hangs if a second look finds no new line. The time of waiting is 0 here, and a true look in
 * between only reports once more.
 */
TEST(kernel_wait, a_run_that_hangs_may_go_on)
{
	const u64 usual = hang_seconds;

	test_option("end.onhang", "go");
	said_begin();
	hang_seconds = 0;
	for (unsigned i = 0; i < 3; i++)
		watchdog_tick();
	hang_seconds = usual;
	said_end();
	EXPECT(said_says("watchdog: no progress for "));
}
