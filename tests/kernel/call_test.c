/*
 * CPUs as they must be: running at the same time, interruptible whatever they do, and served while they wait. Each case
 * needs more than one CPU and skips without.
 */
#include "kernel/call.h"

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/cpu.h>

#include "kernel/percpu.h"
#include "kernel/shootdown.h"
#include "kernel/test.h"
#include "kernel/wait.h"

enum { HANDOVERS = 200 };

static cpu_t other_cpu(void)
{
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online) {
		if (cpu != cpu_id() && work_done(cpu))
			return cpu;
	}
	return CPU_NONE;
}

struct handover {
	u32 turn; /* even: the case's, odd: the other CPU's */
	bool late;
};

/* Take every other turn. Gives up in time: a machine that runs one CPU after the other fails instead of hanging. */
static void take_turns(struct handover *h, u32 first)
{
	struct wait wait = wait_begin(wait_deadline_cpus(), "the other CPU's turn");

	wait.soft = true;
	for (u32 turn = first; turn < HANDOVERS; turn += 2) {
		while (atomic_load_acquire(&h->turn) != turn) {
			wait_spin(&wait, CPU_NONE);
			if (wait.late || atomic_load_relaxed(&h->late)) {
				atomic_store_relaxed(&h->late, true);
				return;
			}
		}
		atomic_store_release(&h->turn, turn + 1);
	}
}

static void take_odd_turns(void *arg)
{
	take_turns(arg, 1);
}

/* Two CPUs hand a flag to and fro, neither returning before the other: impossible if they are serialised. */
TEST(kernel_call, cpus_run_at_the_same_time)
{
	static struct handover h;
	cpu_t other = other_cpu();

	if (other == CPU_NONE)
		SKIP("needs two CPUs");
	h = (struct handover){0};
	REQUIRE(work_start(other, take_odd_turns, &h) == 0);
	take_turns(&h, 0);
	work_wait(other, 0);
	EXPECT(!h.late);
	EXPECT_EQ(h.turn, HANDOVERS);
}

static void count(void *arg)
{
	atomic_fetch_add((u32 *)arg, 1);
}

TEST(kernel_call, every_target_is_called_once)
{
	u32 calls = 0;

	for (unsigned i = 1; i <= 50; i++) {
		call_cpus(&cpus_online, count, &calls);
		EXPECT_EQ(atomic_load_relaxed(&calls), i * (cpumask_weight(&cpus_online) - 1));
	}
}

struct busy {
	u32 running, stop;
};

/* Busy with interrupts on, doing nothing that would serve a mailbox by itself. */
static void be_busy(void *arg)
{
	struct busy *b = arg;

	atomic_store_release(&b->running, 1);
	while (!atomic_load_acquire(&b->stop))
		cpu_relax();
}

/* Busy with interrupts off, polling as the rules demand. */
static void be_busy_masked(void *arg)
{
	struct busy *b = arg;
	irq_flags_t flags = irq_save();

	atomic_store_release(&b->running, 1);
	while (!atomic_load_acquire(&b->stop)) {
		cpu_relax();
		call_serve();
	}
	irq_restore(flags);
}

static void call_while(call_fn *occupation)
{
	static struct busy b;
	struct wait wait = wait_begin(wait_deadline_cpus(), "a CPU to be busy");
	cpu_t other = other_cpu();
	u32 calls = 0;

	b = (struct busy){0};
	if (other == CPU_NONE)
		SKIP("needs two CPUs");
	REQUIRE(work_start(other, occupation, &b) == 0);
	while (!atomic_load_acquire(&b.running))
		wait_spin(&wait, other);
	for (unsigned i = 0; i < 20; i++)
		call_cpus(&cpus_online, count, &calls);
	EXPECT_EQ(atomic_load_relaxed(&calls), 20 * (cpumask_weight(&cpus_online) - 1));
	EXPECT(!work_done(other));
	EXPECT_EQ(work_start(other, occupation, &b), -EBUSY);
	atomic_store_release(&b.stop, 1);
	work_wait(other, 0);
}

TEST(kernel_call, busy_cpus_answer)
{
	call_while(be_busy);
}

TEST(kernel_call, cpus_with_interrupts_off_answer)
{
	call_while(be_busy_masked);
}

struct crossfire {
	u32 calls;
	u64 expected;
};

static void fire(void *arg)
{
	struct crossfire *c = arg;

	for (unsigned i = 0; i < 20; i++)
		call_cpus(&cpus_online, count, &c->calls);
}

/* Everybody calls everybody: nobody may wait for somebody who waits for him. */
TEST(kernel_call, everybody_calls_everybody)
{
	static struct crossfire c;
	cpu_t cpu, online = cpumask_weight(&cpus_online);

	if (online < 2)
		SKIP("needs two CPUs");
	c = (struct crossfire){0};
	cpumask_foreach(cpu, &cpus_online) {
		if (cpu != cpu_id())
			REQUIRE(work_start(cpu, fire, &c) == 0);
	}
	fire(&c);
	cpumask_foreach(cpu, &cpus_online) {
		if (cpu != cpu_id())
			work_wait(cpu, 0);
	}
	EXPECT_EQ(c.calls, 20 * online * (online - 1));
}

TEST(kernel_call, wrong_targets_are_refused)
{
	EXPECT_EQ(work_start(cpu_id(), count, NULL), -EINVAL);
	EXPECT_EQ(work_start(cpu_count, count, NULL), -EINVAL);
}
