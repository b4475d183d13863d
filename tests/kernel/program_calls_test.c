/* The small calls of programs: results, structures, and pointers that lead nowhere. */
#include "kernel/core/percpu.h"
#include "kernel/lib/string.h"
#include "kernel/program/limits.h"
#include "kernel/program/pages.h"
#include "kernel/program/thread.h"
#include "kernel/program/user_copy.h"
#include "kernel/run/test.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/program_memory.h"

FIXTURE(program_calls, program_box_begin, program_box_end);

static bool has_text(user_t at, const char *text)
{
	char found[65] = "";

	return user_read(found, at, sizeof(found)) == 0 && strcmp(found, text) == 0;
}

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

TEST(program_calls, names_and_registers_of_a_thread)
{
	static const char name[32] = "a name that is too long";

	EXPECT_EQ(user_write(ARGUMENTS, name, sizeof(name)), 0);
	EXPECT_EQ(program_call("prctl", 15, ARGUMENTS), 0);
	EXPECT_EQ(program_call("prctl", 16, RESULTS), 0);
	EXPECT(has_text(RESULTS, "a name that is "));
	EXPECT_EQ(program_call("prctl", 15, NOWHERE), -EFAULT);
	EXPECT_EQ(program_call("prctl", 0x53564d41, 0), 0);
	EXPECT_EQ(program_call("prctl", 12345, 0), -EINVAL);
	EXPECT_EQ(program_call("set_robust_list", 0x7000, 24), 0);
	EXPECT_EQ(program_call("set_robust_list", 0x7000, 23), -EINVAL);
	EXPECT_EQ(program_call("get_robust_list", 0, RESULTS, RESULTS + 8), 0);
	EXPECT_EQ(get(RESULTS), 0x7000);
	EXPECT_EQ(get(RESULTS + 8), 24);
	EXPECT_EQ(program_call("arch_prctl", 0x1002, ~0ULL), -EPERM);
	EXPECT_EQ(program_call("arch_prctl", 0x3001, 0), -EINVAL);
	EXPECT_EQ(program_call("arch_prctl", 0x1003, NOWHERE), -EFAULT);
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
