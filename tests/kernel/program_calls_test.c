/* The small calls of programs: results, structures, and pointers that lead nowhere. */
#include "kernel/core/percpu.h"
#include "kernel/program/limits.h"
#include "kernel/program/pages.h"
#include "kernel/program/thread.h"
#include "kernel/program/user_copy.h"
#include "kernel/run/test.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/program_memory.h"

FIXTURE(program_calls, program_box_begin, program_box_end);

TEST(program_calls, limits_are_kept)
{
	const u64 pair[2] = {MIB(16), MIB(32)};

	EXPECT_EQ(program_call("getrlimit", RLIMIT_STACK, RESULTS), 0);
	EXPECT_EQ(get(RESULTS), MIB(8));
	EXPECT_EQ(get(RESULTS + 8), RLIMIT_NONE);
	EXPECT_EQ(program_call("prlimit64", 0, RLIMIT_NOFILE, 0, RESULTS), 0);
	EXPECT_EQ(get(RESULTS), 1024);
	EXPECT_EQ(user_write(ARGUMENTS, pair, sizeof(pair)), 0);
	EXPECT_EQ(program_call("setrlimit", RLIMIT_STACK, ARGUMENTS), 0);
	EXPECT_EQ(limit_of(RLIMIT_STACK).soft, MIB(16));
	EXPECT_EQ(program_call("setrlimit", RLIMIT_STACK, ARGUMENTS + 8), -EINVAL);
	EXPECT_EQ(program_call("setrlimit", RLIMIT_STACK, 0), -EFAULT);
	EXPECT_EQ(program_call("getrlimit", RLIMITS, RESULTS), -EINVAL);
	EXPECT_EQ(program_call("prlimit64", program_pid() + 1, RLIMIT_AS, 0, 0), -ESRCH);
}

TEST(program_calls, affinity_is_the_machines)
{
	const u64 bytes = DIV_ROUND_UP(cpu_count, 64) * sizeof(u64);
	const u64 none = 0;

	EXPECT_EQ(program_call("sched_getaffinity", 0, KIB(1), RESULTS), bytes);
	EXPECT_EQ(get(RESULTS), atomic_load_relaxed(&cpus_online.words[0]));
	EXPECT_EQ(program_call("sched_getaffinity", 0, 4, RESULTS), -EINVAL);
	EXPECT_EQ(program_call("sched_getaffinity", 0, KIB(1), NOWHERE), -EFAULT);
	EXPECT_EQ(program_call("sched_getaffinity", 12345, KIB(1), RESULTS), -ESRCH);
	EXPECT_EQ(program_call("sched_setaffinity", 0, bytes, RESULTS), 0);
	EXPECT_EQ(user_write(ARGUMENTS, &none, sizeof(none)), 0);
	EXPECT_EQ(program_call("sched_setaffinity", 0, 8, ARGUMENTS), -EINVAL);
	EXPECT_EQ(program_call("sched_setaffinity", 0, 0, ARGUMENTS), -EINVAL);
	EXPECT_EQ(program_call("sched_setaffinity", 0, 8, NOWHERE), -EFAULT);
	EXPECT_EQ(program_call("getcpu", RESULTS, RESULTS + 4), 0);
	EXPECT_EQ(get(RESULTS), cpu_id() | (u64)this_cpu()->node << 32);
}

TEST(program_calls, membarrier_interrupts_other_threads)
{
	SKIP_ON_ONE_CPU();
	program_box_second();
	EXPECT(program_call("membarrier", 0, 0) & 8);
	EXPECT_EQ(program_call("membarrier", 16, 0), 0);
	EXPECT_EQ(program_call("membarrier", 8, 0), 0);
	EXPECT_EQ(program_call("membarrier", 8, 1), -EINVAL);
	EXPECT_EQ(program_call("membarrier", 1 << 20, 0), -EINVAL);
}
