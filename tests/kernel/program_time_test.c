/* Clocks, sleeps and timers of programs, and the vDSO. */
#include <arch/cpu.h>

#include "kernel/program/clocks.h"
#include "kernel/program/signal_queue.h"
#include "kernel/program/timers.h"
#include "kernel/program/vdso/vdso_data.h"
#include "kernel/program/vdso.h"
#include "tests/kernel/program_box.h"

FIXTURE(program_time, program_box_begin, program_box_end);

/* Nothing is left of a program that ended, or was not started (tests/qemu/test_program.py). */
TEST(program_timers, none_is_set_while_no_program_runs)
{
	EXPECT_EQ(this_cpu()->arch.timer[TIMER_PROGRAM].at, 0);
}

enum { REALTIME = 0, MONOTONIC = 1, PROCESS_CPUTIME = 2, THREAD_CPUTIME = 3, ABSOLUTE = 1 };

static u64 result_ns(user_t from)
{
	struct user_time time = {0};

	EXPECT_EQ(user_read(&time, from, sizeof(time)), 0);
	EXPECT((u64)time.part < NS_PER_S);
	return (u64)time.sec * NS_PER_S + (u64)time.part;
}

static u64 clock_of(s32 clock)
{
	EXPECT_EQ(program_call("clock_gettime", clock, RESULTS), 0);
	return result_ns(RESULTS);
}

static void store_time(s64 sec, s64 part)
{
	const s64 time[2] = {sec, part};

	EXPECT_EQ(user_write(ARGUMENTS, time, sizeof(time)), 0);
}

/* Time that passes in a sleep of 50 ms and does not count as CPU time. */
static u64 left_out_of_sleep(void)
{
	const u64 start = clock_ns(), thread = clock_of(THREAD_CPUTIME);
	u64 counted;

	store_time(0, 50 * (s64)NS_PER_MS);
	EXPECT_EQ(program_call("nanosleep", ARGUMENTS, 0), 0);
	EXPECT(irq_enabled());
	counted = clock_of(THREAD_CPUTIME) - thread;
	return clock_ns() - start - counted;
}

TEST(program_time, cpu_time_leaves_out_sleep)
{
	enum { TRIES = 20 };
	unsigned tries = 0;
	u64 thread, program;

	clock_delay_ns(NS_PER_MS);
	thread = clock_of(THREAD_CPUTIME);
	EXPECT(thread >= NS_PER_MS);
	program = clock_of(PROCESS_CPUTIME);
	EXPECT(program >= thread);
	EXPECT_EQ(clock_of(~(s32)program_pid() * 8 | 6) >= program, true);
	/* before and after the sleep, the host may take the CPU away for milliseconds */
	while (left_out_of_sleep() < 45 * NS_PER_MS && tries < TRIES)
		tries++;
	EXPECT(tries < TRIES);
}

static s64 used_us(s32 whose)
{
	struct user_time time = {0};

	EXPECT_EQ(program_call("getrusage", (u64)whose, RESULTS), 0);
	EXPECT_EQ(user_read(&time, RESULTS, sizeof(time)), 0);
	return time.sec * 1000000 + time.part;
}

TEST(program_time, getrusage_tells_a_thread_from_its_program)
{
	s64 thread;

	clock_delay_ns(2 * NS_PER_MS);
	clock_thread_begin(thread_current()); /* another one on this CPU */
	thread = used_us(1);
	EXPECT(used_us(0) >= thread + 1000);
	EXPECT_EQ(used_us(-1), 0);
}

/* A thread sleeps, ends, and is followed by others on its CPU, while another one looks. */
struct looker {
	u32 running, stop;
};

static void begin_and_end(void *arg)
{
	struct looker *looker = arg;
	struct thread *record = thread_on(cpu_id());

	atomic_store_release(&looker->running, 1);
	while (!atomic_load_acquire(&looker->stop)) {
		clock_thread_begin(record);
		clock_delay_ns(20 * NS_PER_US);
		clock_thread_stop(record);
		clock_delay_ns(20 * NS_PER_US);
		clock_thread_go_on(record);
		clock_delay_ns(20 * NS_PER_US);
		clock_thread_stop(record);
	}
}

TEST(program_time, cpu_time_never_goes_back)
{
	struct looker looker = {.stop = 0};
	u64 last = 0, until, now;

	if (cpus_find_other() != 1)
		SKIP("needs two CPUs");
	REQUIRE(program_box_second());
	REQUIRE(work_start(1, begin_and_end, &looker) == 0);
	while (!atomic_load_acquire(&looker.running))
		cpu_relax();
	until = clock_ns() + 50 * NS_PER_MS;
	do {
		now = clock_program_ns();
		if (now < last)
			test_fail(__FILE__, __LINE__, "%llu after %llu", now, last);
		last = now;
	} while (clock_ns() < until && !test_failed());
	atomic_store_release(&looker.stop, 1);
	work_wait(1, 0);
	now = clock_of(THREAD_CPUTIME) + thread_on(1)->spent;
	EXPECT(clock_program_ns() >= now);
}

/* Clocks of the date are that much ahead; the others count from the kernel's entry. */
TEST(program_time, clocks_show_the_date_or_the_time_since_the_entry)
{
	static const s32 calendar[] = {0, 5, 8, 11}, uptime[] = {1, 4, 6, 7, 9};

	for (unsigned i = 0; i < ARRAY_LEN(calendar); i++) {
		const u64 from = clock_ns() + clock_date_ns(), now = clock_of(calendar[i]);

		EXPECT(now >= from && now <= clock_ns() + clock_date_ns());
	}
	for (unsigned i = 0; i < ARRAY_LEN(uptime); i++) {
		const u64 from = clock_ns(), now = clock_of(uptime[i]);

		EXPECT(now >= from && now <= clock_ns());
	}
	EXPECT_EQ(program_call("clock_gettime", 10, RESULTS), -EINVAL);
	EXPECT_EQ(program_call("clock_gettime", 12, RESULTS), -EINVAL);
	EXPECT_EQ(program_call("clock_getres", 1, 0), 0);
	store_time(1, (s64)NS_PER_S);
	EXPECT_EQ(program_call("nanosleep", ARGUMENTS, 0), -EINVAL);
}

TEST(program_time, a_sleep_until_a_time_ends_then_by_either_clock)
{
	for (s32 clock = REALTIME; clock <= MONOTONIC; clock++) {
		const u64 until = clock_ns() + NS_PER_MS;
		const u64 time = until + (clock == REALTIME ? clock_date_ns() : 0);

		store_time((s64)(time / NS_PER_S), (s64)(time % NS_PER_S));
		EXPECT_EQ(program_call("clock_nanosleep", clock, ABSOLUTE, ARGUMENTS, 0), 0);
		EXPECT(clock_ns() >= until);
	}
}

/* ---- timers of POSIX ---- */

enum { SENDS_SIGNAL, SENDS_NOTHING, SENDS_TO_THREAD = 4 };

/* struct sigevent: value, signal, kind, thread. The number of the timer, or an error. */
static s64 make_timer(s32 clock, int signal, int kind, u32 thread, u64 value)
{
	const u64 event[3] = {value, (u32)signal | (u64)(u32)kind << 32, thread};
	s32 id = -1;
	s64 err;

	EXPECT_EQ(user_write(ARGUMENTS, event, sizeof(event)), 0);
	err = program_call("timer_create", (u64)clock, ARGUMENTS, RESULTS);
	EXPECT_EQ(user_read(&id, RESULTS, sizeof(id)), 0);
	return err < 0 ? err : id;
}

static s64 start_timer(s64 id, u64 flags, u64 interval_ns, u64 ns)
{
	const u64 spec[4] = {interval_ns / NS_PER_S, interval_ns % NS_PER_S, ns / NS_PER_S,
			     ns % NS_PER_S};

	EXPECT_EQ(user_write(ARGUMENTS, spec, sizeof(spec)), 0);
	return program_call("timer_settime", id, flags, ARGUMENTS, RESULTS);
}

/* Look as the interrupt does, until the signal comes, and take it. */
static struct signal_info timer_signal(int signal)
{
	const u64 limit = clock_ns() + 10 * NS_PER_S;
	struct signal_info info = {.signal = 0};

	do
		timers_look();
	while (!signal_pending_take(thread_current(), signal_bit(signal), &info) &&
	       clock_ns() < limit);
	return info;
}

TEST(program_time, a_timer_sends_its_signal)
{
	const u32 self = program_pid();
	struct signal_info info;
	s64 program, thread;

	program = make_timer(MONOTONIC, SIGUSR1, SENDS_SIGNAL, 0, 77);
	thread = make_timer(REALTIME, 40, SENDS_TO_THREAD, self, 78);
	REQUIRE(program > 0 && thread > program);
	EXPECT_EQ(start_timer(program, 0, 0, NS_PER_MS), 0);
	EXPECT_EQ(start_timer(thread, ABSOLUTE, 0, clock_ns() + clock_date_ns() + NS_PER_MS), 0);
	info = timer_signal(SIGUSR1);
	EXPECT_EQ(info.signal, SIGUSR1);
	EXPECT_EQ(info.code, SI_TIMER);
	EXPECT_EQ(info.pid, program);
	EXPECT_EQ(info.value, 77);
	EXPECT_EQ(info.uid, 0);
	info = timer_signal(40);
	EXPECT_EQ(info.signal, 40);
	EXPECT_EQ(info.value, 78);
	/* once each */
	clock_delay_ns(2 * NS_PER_MS);
	timers_look();
	EXPECT(!signal_is_deliverable(thread_current()));
	/* a time that has passed is due at once */
	EXPECT_EQ(start_timer(program, ABSOLUTE, 0, 1), 0);
	EXPECT_EQ(timer_signal(SIGUSR1).signal, SIGUSR1);
	/* ITIMER_REAL, in us */
	EXPECT_EQ(user_write(ARGUMENTS, (u64[4]){0, 0, 0, 1}, 32), 0);
	EXPECT_EQ(program_call("setitimer", 3, ARGUMENTS, 0), -EINVAL);
	EXPECT_EQ(program_call("setitimer", 0, ARGUMENTS, 0), 0);
	EXPECT_EQ(timer_signal(SIGALRM).code, SI_KERNEL);
}

TEST(program_time, expiries_while_a_signal_is_pending_are_counted)
{
	struct signal_info info;
	s64 id;
	u64 due;

	id = make_timer(MONOTONIC, SIGUSR1, SENDS_SIGNAL, 0, 0);
	REQUIRE(id > 0);
	EXPECT_EQ(start_timer(id, 0, 2 * NS_PER_MS, NS_PER_MS), 0);
	due = clock_ns() + 12 * NS_PER_MS;
	while (clock_ns() < due)
		timers_look();
	timers_look();                          /* perhaps the first look */
	EXPECT_EQ(start_timer(id, 0, 0, 0), 0); /* no more of them */
	info = timer_signal(SIGUSR1);
	EXPECT(info.uid >= 4);
	EXPECT_EQ(program_call("timer_getoverrun", id), info.uid);
	EXPECT(!signal_is_deliverable(thread_current()));
	/* the next signal begins with none: the timer expires once, however late this CPU looks */
	EXPECT_EQ(start_timer(id, 0, 0, NS_PER_MS), 0);
	EXPECT_EQ(timer_signal(SIGUSR1).uid, 0);
	EXPECT_EQ(program_call("timer_getoverrun", id), 0);
	/* a signal that the program pretends is from a timer changes no count */
	info = (struct signal_info){.signal = SIGUSR1, .code = SI_TIMER, .pid = 99999, .uid = 5};
	EXPECT_EQ(signal_send(thread_current(), SIGUSR1, &info), 0);
	EXPECT_EQ(timer_signal(SIGUSR1).uid, 5);
	/* neither does an interval of a nanosecond use up the CPU */
	EXPECT_EQ(start_timer(id, 0, 1, 1), 0);
	clock_delay_ns(2 * NS_PER_US);
	timers_look();
	EXPECT_EQ(program_call("timer_gettime", id, RESULTS), 0);
	EXPECT(result_ns(RESULTS + 16) > 0);
	EXPECT(timer_signal(SIGUSR1).uid > 1000);
	/* the count ends at DELAYTIMER_MAX; a time that has passed adds all ns since the entry */
	for (u64 ns = 0; ns <= INT32_MAX;) {
		ns += clock_ns(); /* before the look, which counts more */
		EXPECT_EQ(start_timer(id, ABSOLUTE, 1, 1), 0);
		timers_look();
	}
	EXPECT_EQ(start_timer(id, 0, 0, 0), 0);
	EXPECT_EQ(timer_signal(SIGUSR1).uid, INT32_MAX);
	EXPECT_EQ(program_call("timer_getoverrun", id), INT32_MAX);
}

/* Only the timer tells them apart: an expiry is not counted as one of the other. */
TEST(program_time, timers_with_the_same_signal_and_value_are_counted_apart)
{
	s64 id[2];

	for (unsigned i = 0; i < 2; i++) {
		id[i] = make_timer(MONOTONIC, 34, SENDS_TO_THREAD, program_pid(), 5);
		REQUIRE(id[i] > 0);
	}
	for (unsigned first = 0; first < 2; first++) {
		for (unsigned i = 0; i < 2; i++) {
			EXPECT_EQ(start_timer(id[first ^ i], ABSOLUTE, 0, 1), 0);
			timers_look();
		}
		for (unsigned i = 0; i < 2; i++) {
			const struct signal_info info = timer_signal(34);

			EXPECT_EQ(info.pid, id[first ^ i]);
			EXPECT_EQ(info.uid, 0);
		}
	}
}

TEST(program_time, timers_interrupt_the_first_cpu_whichever_sets_them)
{
	struct program_call set = {.call = "timer_settime", .arg = {0, 0, ARGUMENTS}};

	SKIP_ON_ONE_CPU();
	set.arg[0] = (u64)make_timer(MONOTONIC, SIGUSR1, SENDS_SIGNAL, 0, 0);
	EXPECT_EQ(start_timer((s64)set.arg[0], 0, 0, 3600 * NS_PER_S), 0);
	program_call_start(&set);
	work_wait(set.cpu, 0);
	EXPECT_EQ(set.result, 0);
	EXPECT_EQ(cpu_data(set.cpu)->arch.timer[TIMER_PROGRAM].at, 0);
}

/* One CPU takes the signal while the timer expires on another. */
struct expiring {
	s64 id;
	u64 told; /* expiries */
};

static bool take_expiries(struct expiring *expiring)
{
	struct signal_info info;

	if (!signal_pending_take(thread_current(), signal_bit(40), &info))
		return false;
	expiring->told += 1 + info.uid;
	return true;
}

static void take_or_expire(void *arg)
{
	struct expiring *expiring = arg;

	if (cpu_id() == 0)
		take_expiries(expiring);
	else if (cpu_id() == 1)
		EXPECT_EQ(start_timer(expiring->id, ABSOLUTE, 0, 1), 0);
}

TEST(program_time, no_expiry_is_lost_while_a_signal_is_taken)
{
	struct expiring expiring = {make_timer(MONOTONIC, 40, SENDS_SIGNAL, 0, 0), 0};

	SKIP_ON_ONE_CPU();
	REQUIRE(expiring.id > 0);
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_EQ(start_timer(expiring.id, ABSOLUTE, 0, 1), 0);
		timers_look();
	}
	cpus_run_together(take_or_expire, &expiring);
	timers_look(); /* perhaps the first */
	while (take_expiries(&expiring))
		;
	EXPECT_EQ(expiring.told, 3);
}

/* What the program has queued itself leaves no room, and the signal comes without its value. */
TEST(program_time, an_expiry_needs_no_room_in_the_queue)
{
	const struct signal_info own = {.signal = 40, .code = SI_QUEUE};
	const s64 id = make_timer(MONOTONIC, 41, SENDS_SIGNAL, 0, 77);

	REQUIRE(id > 0);
	for (unsigned i = 0; i < SIGNALS_QUEUE; i++)
		EXPECT_EQ(signal_send(thread_current(), 40, &own), 0);
	EXPECT_EQ(signal_send(thread_current(), 40, &own), -EAGAIN);
	EXPECT_EQ(start_timer(id, ABSOLUTE, 0, 1), 0);
	EXPECT_EQ(timer_signal(41).signal, 41);
	EXPECT_EQ(timer_signal(40).signal, 40);
	EXPECT_EQ(start_timer(id, ABSOLUTE, 0, 1), 0);
	EXPECT_EQ(timer_signal(41).value, 77);
}

TEST(program_time, timers_are_made_and_dropped)
{
	s64 id, last = 0;
	unsigned made = 0;

	id = make_timer(MONOTONIC, SIGUSR1, SENDS_NOTHING, 0, 0);
	EXPECT(id > 0);
	EXPECT_EQ(start_timer(id, 0, 7 * NS_PER_S, 3600 * NS_PER_S), 0);
	EXPECT_EQ(program_call("timer_gettime", id, RESULTS), 0);
	EXPECT_EQ(result_ns(RESULTS), 7 * NS_PER_S);
	EXPECT(result_ns(RESULTS + 16) > 3000 * NS_PER_S);
	EXPECT_EQ(start_timer(id, 0, 0, NS_PER_MS), 0);
	EXPECT(result_ns(RESULTS + 16) > 3000 * NS_PER_S); /* what it was */
	clock_delay_ns(2 * NS_PER_MS);
	timers_look();
	EXPECT(!signal_is_deliverable(thread_current()));
	EXPECT_EQ(program_call("timer_gettime", id, RESULTS), 0);
	EXPECT_EQ(result_ns(RESULTS + 16), 0);
	EXPECT_EQ(program_call("timer_gettime", id, 0), -EFAULT);
	EXPECT_EQ(start_timer(id, 0, 0, NS_PER_MS), 0);
	EXPECT_EQ(program_call("timer_delete", id), 0);
	EXPECT_EQ(program_call("timer_delete", id), -EINVAL);
	EXPECT_EQ(program_call("timer_gettime", id, RESULTS), -EINVAL);
	EXPECT_EQ(program_call("timer_getoverrun", id), -EINVAL);
	EXPECT_EQ(start_timer(id, 0, 0, 1), -EINVAL);
	EXPECT_EQ(program_call("timer_delete", 0), -EINVAL); /* ITIMER_REAL */
	EXPECT_EQ(program_call("timer_gettime", 0, RESULTS), -EINVAL);
	EXPECT_EQ(program_call("timer_gettime", (u64)-1, RESULTS), -EINVAL);
	EXPECT_EQ(start_timer(0, 0, 0, 1), -EINVAL);
	EXPECT_EQ(make_timer(12345, SIGUSR1, SENDS_SIGNAL, 0, 0), -EINVAL);
	EXPECT_EQ(make_timer(PROCESS_CPUTIME, SIGUSR1, SENDS_SIGNAL, 0, 0), -ENOTSUP);
	EXPECT_EQ(make_timer(MONOTONIC, 65, SENDS_SIGNAL, 0, 0), -EINVAL);
	EXPECT_EQ(make_timer(MONOTONIC, SIGUSR1, 9, 0, 0), -EINVAL);
	EXPECT_EQ(make_timer(MONOTONIC, SIGUSR1, SENDS_TO_THREAD, 4242, 0), -EINVAL);
	EXPECT_EQ(program_call("timer_create", MONOTONIC, 0, NOWHERE), -EFAULT);
	do {
		id = make_timer(MONOTONIC, SIGUSR1, SENDS_SIGNAL, 0, 0);
		last = id > 0 ? id : last;
	} while (id > 0 && made++ < 1000);
	EXPECT_EQ(id, -EAGAIN);
	EXPECT_EQ(made, INTERVAL_TIMERS - 1);
	EXPECT_EQ(start_timer(last, 0, 0, 1000000000 * NS_PER_S), 0);
	store_time(0, 1000000000);
	EXPECT_EQ(program_call("timer_settime", last, 0, ARGUMENTS, 0), -EINVAL);
	EXPECT_EQ(program_call("timer_settime", last, 0, 0, 0), -EINVAL);
	/* the next program finds none */
	REQUIRE(program_box_again());
	EXPECT_EQ(program_call("timer_delete", last), -EINVAL);
}

/* ---- the vDSO, as a C library reads it ---- */

/* Tables of the dynamic section (System V ABI, "Dynamic Linking"). */
TEST(program_time, the_vdso_is_told_the_clock)
{
	struct vdso_data data = {.mult = 0};
	struct clock_tsc tsc;

	vdso_fill_data(&data);
	EXPECT_EQ(data.date_ns, clock_date_ns());
	if (clock_tsc(&tsc)) {
		EXPECT_EQ(data.mult, tsc.mult);
		EXPECT_EQ(data.base_tsc, tsc.base_tsc);
		EXPECT_EQ(data.base_ns, tsc.base_ns);
	} else {
		EXPECT_EQ(data.mult, 0);
	}
}
