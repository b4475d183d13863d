/*
 * CPUs can be interrupted whatever they do, and are served while they wait. A case that needs more
 * than one CPU is skipped if there is only one.
 */
#include "tests/kernel/test.h"

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

/*
 * A poll looks at one word, however many CPUs there are. A bit in the set does not count as a call
 * until that word is set, too.
 */
TEST(kernel_call, a_poll_looks_at_one_word)
{
	struct percpu *self = this_cpu();
	const irq_flags_t flags = irq_save();
	const struct call_slot was = self->call_slot;
	u32 calls = 0;

	call_serve();
	self->call_slot = (struct call_slot){.fn = count, .arg = &calls, .pending = 1};
	cpumask_set_atomic(&self->call_from, self->id);
	call_serve();
	EXPECT_EQ(calls, 0);
	atomic_fetch_or(&self->call_words, 1ULL << self->id / 64 % 64);
	call_serve();
	EXPECT_EQ(calls, 1);
	EXPECT_EQ(self->call_slot.pending, 0);
	self->call_slot = was;
	irq_restore(flags);
}

/* ---- a call that comes while other calls are served ---- */

struct latecomer {
	cpu_t callee, late;
	u32 go, calls;
	bool seen; /* the late call had come when the first one ended */
};

/*
 * Runs on the callee, as a call, until the late call has come. The current turn at the mailbox does
 * not serve the late call any more.
 */
static void outlast(void *arg)
{
	struct latecomer *l = arg;
	const struct percpu *self = this_cpu();

	atomic_store_release(&l->go, 1);
	CPUS_AWAIT(cpumask_test(&self->call_from, l->late) &&
		   atomic_load_acquire(&self->call_words));
	l->seen = true;
	atomic_fetch_add(&l->calls, 1);
}

static void call_first(void *arg)
{
	struct latecomer *l = arg;

	call_cpu(l->callee, outlast, l);
}

static void call_late(void *arg)
{
	struct latecomer *l = arg;

	CPUS_WAIT_FOR(atomic_load_acquire(&l->go), l->callee, "the first call to be served");
	call_cpu(l->callee, count, &l->calls);
}

TEST(kernel_call, one_that_comes_while_others_are_served_is_served)
{
	struct latecomer l = {.callee = cpu_id()};
	irq_flags_t flags;
	cpu_t first;

	if (cpumask_weight(&cpus_online) < 3)
		SKIP("needs three CPUs");
	cpus_wait_idle();
	flags = irq_save();
	l.late = cpus_find_other();
	REQUIRE(work_start(l.late, call_late, &l) == 0);
	first = cpus_find_other();
	EXPECT_EQ(work_start(first, call_first, &l), 0);
	while (atomic_load_acquire(&l.calls) == 0) {
		call_serve();
		cpu_relax();
	}
	EXPECT(l.seen);
	/* The turn that came too early for this call did not forget it. */
	EXPECT(atomic_load_relaxed(&this_cpu()->call_words) != 0);
	call_serve();
	EXPECT_EQ(atomic_load_acquire(&l.calls), 2);
	atomic_fetch_or(&this_cpu()->call_words, ~0ULL);
	irq_restore(flags);
	work_wait(first, 0);
	work_wait(l.late, 0);
}

TEST(kernel_call, wrong_targets_are_refused)
{
	EXPECT_EQ(work_start(cpu_id(), count, NULL), -EINVAL);
	EXPECT_EQ(work_start(cpu_count, count, NULL), -EINVAL);
}

/* ---- two CPUs that start work on a third ---- */

struct starters {
	cpu_t target;
	u32 runs;
};

static void start_on_target(void *arg)
{
	struct starters *s = arg;

	CPUS_AWAIT(work_start(s->target, count, &s->runs) == 0);
}

TEST(kernel_call, work_that_two_cpus_start_on_a_third_is_done_twice)
{
	struct starters s = {.target = CPU_NONE};
	cpu_t cpu, other;

	cpus_wait_idle();
	other = cpus_find_other();
	cpumask_foreach(cpu, &cpus_online)
		if (cpu != cpu_id() && cpu != other)
			s.target = cpu;
	if (s.target == CPU_NONE)
		SKIP("needs three CPUs");
	REQUIRE(work_start(other, start_on_target, &s) == 0);
	start_on_target(&s);
	work_wait(other, 0);
	work_wait(s.target, 0);
	EXPECT_EQ(s.runs, 2);
}
