/*
 * Cases that run on several CPUs: see cpus.h.
 */
#include "tests/kernel/test.h"

enum { LATE_LIMIT = 8, DEAF_ROUNDS = 1 << 26 /* 10 s or more, of this CPU's own time */ };

static u64 together = CPUS_TOGETHER;
OPTION_U64(test.together, together, 1, 65535, "CPUs that run a test case together, at most");

struct gathering {
	call_fn *fn;
	void *arg;
	u32 expected, arrived;
	bool given_up;
};

bool cpus_needed(cpu_t count)
{
	static const char *const numbers[] = {"no", "one", "two", "three", "four"};

	if (cpumask_weight(&cpus_online) >= count)
		return true;
	test_skip("needs %s CPUs", numbers[count]);
	return false;
}

void cpus_await_work(void)
{
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online) {
		if (cpu != cpu_id())
			work_wait(cpu, 0);
	}
}

cpu_t cpus_find_other(void)
{
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online) {
		if (cpu != cpu_id() && work_done(cpu))
			return cpu;
	}
	return CPU_NONE;
}

static void arrive_and_run(void *arg)
{
	struct gathering *g = arg;
	struct wait wait = wait_begin(WAIT_WORK, "all CPUs to begin a case");

	wait.ahead = 1; /* short naps, because a CPU that oversleeps the start misses the race */
	atomic_fetch_add(&g->arrived, 1);
	while (atomic_load_acquire(&g->arrived) < atomic_load_acquire(&g->expected)) {
		wait_spin(&wait, CPU_NONE);
		if (wait.late >= LATE_LIMIT || atomic_load_relaxed(&g->given_up)) {
			atomic_store_relaxed(&g->given_up, true);
			return;
		}
	}
	g->fn(g->arg);
}

cpu_t cpus_start_idle(call_fn *fn, void *arg, cpu_t most)
{
	cpu_t cpu, started = 0;

	cpumask_foreach(cpu, &cpus_online) {
		if (started < most && cpu != cpu_id() && work_done(cpu) &&
		    work_start(cpu, fn, arg) == 0)
			started++;
	}
	return started;
}

cpu_t cpus_run_together(call_fn *fn, void *arg)
{
	static struct gathering g;
	cpu_t helpers;

	g = (struct gathering){.fn = fn, .arg = arg, .expected = CPU_NONE};
	helpers = cpus_start_idle(arrive_and_run, &g, (cpu_t)MIN(together - 1, (u64)CPU_NONE));
	atomic_store_release(&g.expected, helpers + 1);
	arrive_and_run(&g);
	cpus_await_work();
	if (g.given_up)
		test_fail(__FILE__, __LINE__, "%u of %u CPUs arrived", g.arrived, helpers + 1);
	return helpers + 1;
}

bool cpus_wait_idle(void)
{
	struct wait wait = wait_begin(WAIT_WORK, "a CPU to be idle after a case");
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online) {
		while (cpu != cpu_id() &&
		       !(work_done(cpu) && atomic_load_acquire(&cpu_data(cpu)->idle))) {
			wait_spin(&wait, cpu);
			if (wait.late >= LATE_LIMIT)
				return false;
		}
	}
	return true;
}

void cpus_be_deaf(void *arg)
{
	struct cpus_deaf *deaf = arg;
	const irq_flags_t flags = irq_save();
	const u32 reports = atomic_load_acquire(&wait_reports);

	atomic_store_release(&deaf->running, 1);
	/*
	 * In a guest, this loop calls no function, not even the clock's: a backtrace taken at the
	 * first instruction of a function, or in a leaf without a frame, misses the caller. There
	 * are few PAUSEs, because each gives QEMU a turn around all CPUs where it runs one at a
	 * time.
	 */
	for (u64 rounds = 0; rounds < DEAF_ROUNDS; rounds++) {
		if (!deaf->for_ever && atomic_load_acquire(&wait_reports) != reports)
			break;
		for (unsigned i = 0; i < 1000; i++)
			fence_compiler();
		cpu_relax();
	}
	irq_restore(flags);
}

void cpus_deaf_start(struct cpus_deaf *deaf, cpu_t cpu)
{
	EXPECT_EQ(work_start(cpu, cpus_be_deaf, deaf), 0);
	CPUS_WAIT_FOR(atomic_load_acquire(&deaf->running), cpu, "a CPU to become deaf");
}

void cpus_note_met(u64 times, const char *event)
{
	print("  # %s: %s%llu\n", event, times ? "" : "not met: ", times);
}

void cpus_move(void *arg)
{
	struct cpus_moving *moving = arg;

	while (!atomic_load_acquire(&moving->stop)) {
		wait_begin(moving->level, "nothing, again and again");
		atomic_store_release(&moving->running, 1);
		cpu_relax(); /* hosted, each may take a slice of another process */
	}
}

void cpus_move_start(struct cpus_moving *moving, cpu_t cpu)
{
	EXPECT_EQ(work_start(cpu, cpus_move, moving), 0);
	CPUS_WAIT_FOR(atomic_load_acquire(&moving->running), cpu, "a CPU to go on");
}
