/*
 * The idle task: nothing new that it is woken for is missed, whatever its CPUs are doing at that
 * moment. The cases have tasks of their own, which only look.
 */
#include "tests/kernel/test.h"

#define AWAIT_TASK(word)                                                                           \
	CPUS_WAIT_FOR(atomic_load_acquire(&task.word), CPU_NONE, "the idle task of a case")

static struct {
	u32 news;    /* 1: there is something to do */
	u32 looking; /* number + 1 of the CPU whose look came before the news; 0: none yet */
	u32 go_on;   /* 1: that look may end */
	u32 seen;    /* 1: the news was seen, by that CPU if there is one */
} task;

/* How many CPUs were told and have not looked yet. */
static unsigned asked(void)
{
	unsigned sum = 0;
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online)
		sum += atomic_load_acquire(&cpu_data(cpu)->work.asked) != 0;
	return sum;
}

static void task_begin(idle_task_fn *fn)
{
	task = (__typeof__(task)){0};
	CPUS_WAIT_FOR(asked() == 0, CPU_NONE, "CPUs that were told before");
	cpus_wait_idle();
	idle_task_set(fn, NULL);
}

static void news_come(u64 cpus)
{
	atomic_store_release(&task.news, 1);
	idle_task_wake(cpus);
}

/* The first look finds nothing and takes long. */
static bool look_too_early(void)
{
	const u32 self = cpu_id() + 1;

	if (atomic_load_acquire(&task.news)) {
		if (atomic_load_acquire(&task.looking) == self)
			atomic_store_release(&task.seen, 1);
	} else if (atomic_cas(&task.looking, 0, self)) {
		while (!atomic_load_acquire(&task.go_on))
			cpu_relax();
	}
	return false;
}

/* The CPU is not idle when the news comes, so it gets no message. */
TEST(kernel_idle, news_that_comes_between_a_look_and_the_halt_is_seen)
{
	SKIP_ON_ONE_CPU();
	task_begin(look_too_early);
	idle_task_wake(1);
	EXPECT(asked() <= 1);
	AWAIT_TASK(looking);
	news_come(cpu_count);
	atomic_store_release(&task.go_on, 1);
	AWAIT_TASK(seen);
	cpus_wait_idle();
	idle_task_set(NULL, NULL);
}

/* Only the CPU that is on its way into the halt counts. */
static u32 on_its_way;

static bool look_there(void)
{
	if (atomic_load_acquire(&task.news) && cpu_id() == atomic_load_acquire(&on_its_way))
		atomic_store_release(&task.seen, 1);
	return false;
}

static void do_nothing(void *unused)
{
}

/*
 * The CPU halts after some work, while news comes. Either the news finds it idle, or the CPU finds
 * the news before it halts.
 */
TEST(kernel_idle, news_that_comes_while_a_cpu_becomes_idle_is_seen)
{
	const cpu_t cpu = cpus_find_other();

	SKIP_ON_ONE_CPU();
	atomic_store_release(&on_its_way, cpu);
	task_begin(look_there);
	REQUIRE(work_start(cpu, do_nothing, NULL) == 0);
	work_wait(cpu, 0);
	news_come(cpu_count);
	AWAIT_TASK(seen);
	cpus_wait_idle();
	idle_task_set(NULL, NULL);
}

static bool look(void)
{
	if (atomic_load_acquire(&task.news))
		atomic_store_release(&task.seen, 1);
	return false;
}

struct waiter {
	u32 running, flag;
};

static void wait_in_work(void *arg)
{
	struct waiter *waiter = arg;

	atomic_store_release(&waiter->running, 1);
	cpu_wait(&waiter->flag, 0);
}

/* The CPU that waits in its work is idle and comes first, but it runs no idle task. */
TEST(kernel_idle, a_cpu_that_waits_in_its_work_is_not_woken_in_the_place_of_another)
{
	const cpu_t cpu = cpus_find_other();
	struct waiter waiter = {.flag = 0};

	if (cpumask_weight(&cpus_online) < 3)
		SKIP("needs three CPUs");
	task_begin(look);
	REQUIRE(work_start(cpu, wait_in_work, &waiter) == 0);
	while (!atomic_load_acquire(&waiter.running) || !atomic_load_acquire(&cpu_data(cpu)->idle))
		cpu_relax();
	news_come(1);
	AWAIT_TASK(seen);
	atomic_store_release(&waiter.flag, 1);
	cpu_wake(cpu);
	work_wait(cpu, 0);
	idle_task_set(NULL, NULL);
}

static void await_seen(void *unused)
{
	AWAIT_TASK(seen);
}

/* The CPU that the news wakes is given work at the same time, before or after its look. */
TEST(kernel_idle, news_for_a_cpu_that_is_given_work_is_seen_by_another)
{
	const cpu_t cpu = cpus_find_other();

	if (cpumask_weight(&cpus_online) < 3)
		SKIP("needs three CPUs");
	task_begin(look);
	news_come(1);
	REQUIRE(work_start(cpu, await_seen, NULL) == 0);
	work_wait(cpu, 0);
	EXPECT(atomic_load_acquire(&task.seen));
	cpus_wait_idle();
	idle_task_set(NULL, NULL);
}

static struct waiter looks;

/* Looks again after a millisecond, twice, and ends the wait in the third look. */
static u64 look_in_wait(void)
{
	if (looks.running++ < 2)
		return clock_ns() + NS_PER_MS;
	looks.flag = 1;
	return 0;
}

static u64 look_late(void)
{
	return clock_ns() + NS_PER_S;
}

/* It looks when the task says so, and the wait ends in its own time. */
TEST(kernel_idle, a_cpu_that_waits_in_its_work_runs_the_task)
{
	const u32 never = 0;
	u64 end;

	looks = (struct waiter){.flag = 0};
	task_begin(NULL);
	idle_task_set(NULL, look_in_wait);
	EXPECT(cpu_wait(&looks.flag, clock_ns() + 20 * NS_PER_S));
	EXPECT_EQ(looks.running, 3);
	idle_task_set(NULL, look_late);
	end = clock_ns() + NS_PER_MS;
	EXPECT(!cpu_wait(&never, end));
	EXPECT(clock_ns() >= end);
	idle_task_set(NULL, NULL);
}
