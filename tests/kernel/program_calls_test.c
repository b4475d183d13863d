/* The small calls of programs: results, structures, and pointers that lead nowhere. */
#include "kernel/core/percpu.h"
#include "kernel/program/pages.h"
#include "kernel/program/thread.h"
#include "kernel/program/user_copy.h"
#include "kernel/run/test.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/program_memory.h"

FIXTURE(program_calls, program_box_begin, program_box_end);

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
