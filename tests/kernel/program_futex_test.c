/* Futexes, and how threads sleep and where (kernel/program/futex.h, thread.h, sched_calls.c). */
#include "kernel/program/futex.h"

#include "kernel/program/clocks.h"
#include "tests/kernel/program_box.h"
#include "tests/kernel/space_look.h"

FIXTURE(program_futex, program_box_begin, program_box_end);

enum { WAIT, WAKE, REQUEUE = 3, CMP_REQUEUE, WAKE_OP, WAIT_BITSET = 9, WAKE_BITSET = 10 };

#define WORD  (PROGRAM_BOX_MEMORY + 64)
#define OTHER (PROGRAM_BOX_MEMORY + 8192)

static void set_word(u64 at, u32 value)
{
	EXPECT_EQ(user_write(at, &value, sizeof(value)), 0);
}

static u32 word(u64 at)
{
	u32 value = ~0u;

	user_read(&value, at, sizeof(value));
	return value;
}

static s64 wait_for(u64 at, u32 value)
{
	return program_call("futex", at, WAIT, value, 0);
}

/* ---- two threads ---- */

enum { TURNS = 300 };

/* Hand a word back and forth: the thread of parity `odd` waits while the word has the other one. */
static void take_turns(u32 odd)
{
	for (u32 i = 0; i < TURNS; i++) {
		u32 value = word(WORD);

		while (value % 2 != odd) {
			wait_for(WORD, value);
			value = word(WORD);
		}
		set_word(WORD, value + 1);
		program_call("futex", WORD, WAKE, 1);
	}
}

static void turns_of_other(void *unused)
{
	take_turns(1);
}

TEST(program_futex, no_wake_is_lost)
{
	const cpu_t other = cpus_find_other();

	SKIP_ON_ONE_CPU();
	REQUIRE(thread_record(other));
	set_word(WORD, 0);
	REQUIRE(work_start(other, turns_of_other, NULL) == 0);
	take_turns(0);
	work_wait(other, 0);
	EXPECT_EQ(word(WORD), 2 * TURNS);
}

static struct program_call sleeper;

/* Another CPU sleeps at the word. Return when it is in a queue and has looked. */
static void start_sleeper(struct program_call *c, u64 at, u32 bits)
{
	*c = (struct program_call){.call = "futex", .arg = {at, WAIT_BITSET, 0, 0, 0, bits}};
	set_word(at, 0);
	program_call_start(c);
	while (atomic_load_acquire(&thread_on(c->cpu)->futex.queue) == 0 ||
	       !atomic_load_acquire(&cpu_data(c->cpu)->idle))
		cpu_relax();
}

static void expect_woken(void)
{
	work_wait(sleeper.cpu, 0);
	EXPECT_EQ(sleeper.result, 0);
}

TEST(program_futex, a_wake_finds_its_bits_only)
{
	SKIP_ON_ONE_CPU();
	start_sleeper(&sleeper, WORD, 4);
	EXPECT_EQ(program_call("futex", WORD, WAKE_BITSET, 9, 0, 0, 3), 0);
	EXPECT_EQ(program_call("futex", OTHER, WAKE, 9), 0);
	EXPECT_EQ(program_call("futex", WORD, WAKE_BITSET, 9, 0, 0, 6), 1);
	expect_woken();
}

TEST(program_futex, the_end_of_the_program_ends_the_wait_of_each_thread)
{
	SKIP_ON_ONE_CPU();
	start_sleeper(&sleeper, WORD, 4);
	atomic_store_release(&thread_on(sleeper.cpu)->id, THREAD_FIRST_ID + 1);
	EXPECT(program_end(0));
	work_wait(sleeper.cpu, 0);
	EXPECT(sleeper.result < 0);
}

TEST(program_futex, a_waiter_that_was_moved_is_woken_at_its_new_place)
{
	SKIP_ON_ONE_CPU();
	start_sleeper(&sleeper, WORD, ~0u);
	EXPECT_EQ(program_call("futex", WORD, REQUEUE, 0, 9, OTHER), 1);
	EXPECT_EQ(program_call("futex", WORD, WAKE, 9), 0);
	EXPECT_EQ(program_call("futex", OTHER, WAKE, 9), 1);
	expect_woken();
}

TEST(program_futex, moving_to_the_same_address_ends)
{
	SKIP_ON_ONE_CPU();
	start_sleeper(&sleeper, WORD, ~0u);
	EXPECT_EQ(program_call("futex", WORD, REQUEUE, 0, ~0u, WORD), 1);
	EXPECT_EQ(program_call("futex", WORD, REQUEUE, 9, 0, OTHER), 1);
	expect_woken();
}

/* The limit of FUTEX_WAIT_BITSET is a point in time, of either clock. */
TEST(program_futex, a_wait_for_bits_ends_at_a_time)
{
	enum { REALTIME = 256 };

	for (u64 clock = 0; clock <= REALTIME; clock += REALTIME) {
		const u64 until = clock_ns() + 2 * NS_PER_MS;
		const u64 date = until + (clock ? clock_date_ns() : 0);
		const u64 time[2] = {date / NS_PER_S, date % NS_PER_S};

		EXPECT_EQ(user_write(ARGUMENTS, time, sizeof(time)), 0);
		EXPECT_EQ(program_call("futex", WORD, WAIT_BITSET | clock, 0, ARGUMENTS, 0, 1),
			  -ETIMEDOUT);
		EXPECT(clock_ns() >= until);
	}
}

TEST(program_futex, words_of_a_thread_that_ends_are_released)
{
	/* the head, and one entry whose word lies 16 bytes behind it */
	const u64 list = PROGRAM_BOX_MEMORY + 1024, entry = PROGRAM_BOX_MEMORY + 2048;
	const u64 head[3] = {entry, 16, 0};

	SKIP_ON_ONE_CPU();
	EXPECT_EQ(user_write(list, head, sizeof(head)), 0);
	EXPECT_EQ(user_write(entry, &list, sizeof(list)), 0);
	start_sleeper(&sleeper, entry + 16, ~0u);
	set_word(entry + 16, 0x80000000u | thread_current()->id);
	thread_current()->robust_list = list;
	futex_release_robust(thread_current());
	expect_woken();
	EXPECT_EQ(word(entry + 16), 0xc0000000u);
}

/* CPU 0 changes the word from 1 to 2; CPU 1 changes it from 1 to 3 and back, while it can. */
static void change_word(void *arg)
{
	u32 *found = arg;
	const pte_t leaf = space_leaf(&program_space, WORD);
	u32 *at = phys_to_virt((pte_pfn(leaf) << PAGE_SHIFT) + WORD % PAGE_SIZE);

	if (cpu_id() == 0)
		EXPECT_EQ(user_cas_u32(WORD, 1, 2, found), 0);
	for (unsigned i = 0; cpu_id() == 1 && i < 32 && atomic_cas(at, 1, 3); i++)
		atomic_store_release(at, 1);
}

TEST(program_futex, who_is_told_that_it_found_the_old_value_has_written)
{
	u32 found = 0;

	SKIP_ON_ONE_CPU();
	REQUIRE(program_box_second());
	set_word(WORD, 1);
	cpus_run_together(change_word, &found);
	EXPECT_EQ(word(WORD), found == 1 ? 2 : 1);
}

#ifdef ASHLAR_HOSTED
static void end_at_once(struct trap_frame *regs)
{
	program_call("set_tid_address", WORD);
	regs->rax = 60; /* exit */
	host_user_call(regs);
}

TEST(program_futex, the_end_of_a_thread_wakes_one_that_waits_for_it)
{
	static struct program_call another;
	const struct trap_frame regs = {.rip = USER_START};

	if (cpu_count < 3)
		SKIP("needs three CPUs");
	start_sleeper(&sleeper, WORD, ~0u);
	start_sleeper(&another, WORD, ~0u);
	host_user_program = end_at_once;
	user_enter(&regs, 0, NULL);
	host_user_program = NULL;
	EXPECT_EQ(futex_wake(WORD, 9, ~0u), 1);
	expect_woken();
	work_wait(another.cpu, 0);
}
#endif

TEST(program_futex, a_thread_may_run_on_the_cpus_of_the_machine)
{
	const u64 bytes = DIV_ROUND_UP(cpu_count, 64) * 8, none = 0;

	EXPECT_EQ(program_call("sched_getaffinity", 0, bytes, RESULTS), bytes);
	EXPECT_EQ(program_call("sched_getaffinity", 0, KIB(1), RESULTS), bytes);
	EXPECT_EQ(word(RESULTS), (u32)atomic_load_relaxed(&cpus_online.words[0]));
	EXPECT_EQ(program_call("sched_getaffinity", 0, 4, RESULTS), -EINVAL);
	EXPECT_EQ(program_call("sched_getaffinity", 12345, KIB(1), RESULTS), -ESRCH);
	EXPECT_EQ(program_call("sched_setaffinity", 0, bytes, RESULTS), 0);
	EXPECT_EQ(user_write(ARGUMENTS, &none, sizeof(none)), 0);
	EXPECT_EQ(program_call("sched_setaffinity", 0, 8, ARGUMENTS), -EINVAL);
	EXPECT_EQ(program_call("sched_setaffinity", 0, 8, NOWHERE), -EFAULT);
	EXPECT_EQ(program_call("sched_setaffinity", 12345, bytes, RESULTS), -ESRCH);
	EXPECT_EQ(program_call("sched_setscheduler", program_pid(), 3, ARGUMENTS), 0);
	EXPECT_EQ(program_call("sched_setscheduler", 0, 7, ARGUMENTS), -EINVAL);
}

/* A program that starts a thread for each CPU, and one more, finds CPUs for all. */
TEST(program_futex, a_program_may_hear_of_fewer_cpus_than_there_are)
{
	SKIP_ON_ONE_CPU();
	test_option("program.cpus", "1");
	EXPECT(program_call("sched_getaffinity", 0, KIB(1), RESULTS) > 0);
	EXPECT_EQ(word(RESULTS), 1);
	EXPECT_EQ(thread_cpu_told(0), 0);
	EXPECT_EQ(thread_cpu_told(1), CPU_NONE);
}
