/* A sleep beside a timer of the program. By the explorer's clock nothing is late by chance. */
#include "tests/kernel/program_box.h"

enum { MONOTONIC = 1, SENDS_NOTHING = 1, STORES = 100 };

#define SLEEP_NS  NS_PER_MS
#define EXPIRY_NS (60 * NS_PER_US) /* at most, after the timer is set */

FIXTURE(host_timer, program_box_begin, program_box_end);

static void store_often(void *word)
{
	for (u32 i = 0; i < STORES; i++)
		atomic_store_release((u32 *)word, i);
}

/*
 * The timer expires before the sleep, as it begins, and while it lasts. Its next expiry is an hour
 * away, so a sleep that forgets its own end lasts until the CPU's timer has run down, a second.
 */
TEST(host_timer, a_sleep_beside_a_timer_ends_in_time)
{
	const u64 event[3] = {0, SIGUSR1 | (u64)SENDS_NOTHING << 32, 0};
	const u64 sleep[2] = {0, SLEEP_NS};
	const cpu_t cpu = cpus_find_other();
	u32 id = 0, word;
	u64 start;

	SKIP_ON_ONE_CPU();
	EXPECT_EQ(user_write(ARGUMENTS, event, sizeof(event)), 0);
	EXPECT_EQ(program_call("timer_create", MONOTONIC, ARGUMENTS, RESULTS), 0);
	EXPECT_EQ(user_read(&id, RESULTS, sizeof(id)), 0);
	REQUIRE(work_start(cpu, store_often, &word) == 0);
	for (u64 ns = NS_PER_US; ns < EXPIRY_NS; ns += NS_PER_US) {
		const u64 expiries[4] = {3600, 0, 0, ns};

		EXPECT_EQ(user_write(ARGUMENTS, expiries, sizeof(expiries)), 0);
		EXPECT_EQ(program_call("timer_settime", id, 0, ARGUMENTS, RESULTS), 0);
		EXPECT_EQ(user_write(ARGUMENTS, sleep, sizeof(sleep)), 0);
		start = clock_ns();
		EXPECT_EQ(program_call("nanosleep", ARGUMENTS, 0), 0);
		EXPECT(clock_ns() - start < NS_PER_S / 2);
	}
	work_wait(cpu, 10 * NS_PER_S);
}
