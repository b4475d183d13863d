/* The small calls of programs: results, structures, and pointers that lead nowhere. */
#include "kernel/core/percpu.h"
#include "kernel/lib/string.h"
#include "kernel/program/limits.h"
#include "kernel/program/pages.h"
#include "kernel/program/thread.h"
#include "kernel/program/user_copy.h"
#include "kernel/run/test.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/program_box.h"

FIXTURE(program_calls, program_box_begin, program_box_end);

enum {
	NR_GETRLIMIT = 97,
	NR_PRCTL = 157,
	NR_ARCH_PRCTL = 158,
	NR_SETRLIMIT = 160,
	NR_SETAFFINITY = 203,
	NR_GETAFFINITY = 204,
	NR_SET_ROBUST_LIST = 273,
	NR_GET_ROBUST_LIST = 274,
	NR_PRLIMIT = 302,
	NR_GETCPU = 309,
	NR_MEMBARRIER = 324,
};

#define ARGUMENTS PROGRAM_BOX_MEMORY
#define RESULTS   (PROGRAM_BOX_MEMORY + KIB(1))
#define NOWHERE   (PROGRAM_BOX_MEMORY + PROGRAM_BOX_BYTES + PAGE_SIZE)

static u64 load_u64(user_t from)
{
	u64 value = 0;

	EXPECT_EQ(user_read(&value, from, sizeof(value)), 0);
	return value;
}

static bool has_text(user_t at, const char *text)
{
	char found[65] = "";

	return user_read(found, at, sizeof(found)) == 0 && strcmp(found, text) == 0;
}

TEST(program_calls, limits_are_kept)
{
	const u64 pair[2] = {MIB(16), MIB(32)};

	EXPECT_EQ(program_box_call(NR_GETRLIMIT, RLIMIT_STACK, RESULTS), 0);
	EXPECT_EQ(load_u64(RESULTS), MIB(8));
	EXPECT_EQ(load_u64(RESULTS + 8), RLIMIT_NONE);
	EXPECT_EQ(program_box_call(NR_PRLIMIT, 0, RLIMIT_NOFILE, 0, RESULTS), 0);
	EXPECT_EQ(load_u64(RESULTS), 1024);
	EXPECT_EQ(user_write(ARGUMENTS, pair, sizeof(pair)), 0);
	EXPECT_EQ(program_box_call(NR_SETRLIMIT, RLIMIT_STACK, ARGUMENTS), 0);
	EXPECT_EQ(limit_of(RLIMIT_STACK).soft, MIB(16));
	EXPECT_EQ(program_box_call(NR_SETRLIMIT, RLIMIT_STACK, ARGUMENTS + 8), -EINVAL);
	EXPECT_EQ(program_box_call(NR_SETRLIMIT, RLIMIT_STACK, 0), -EFAULT);
	EXPECT_EQ(program_box_call(NR_GETRLIMIT, RLIMITS, RESULTS), -EINVAL);
	EXPECT_EQ(program_box_call(NR_PRLIMIT, program_pid() + 1, RLIMIT_AS, 0, 0), -ESRCH);
}

TEST(program_calls, affinity_is_the_machines)
{
	const u64 bytes = DIV_ROUND_UP(cpu_count, 64) * sizeof(u64);
	const u64 none = 0;

	EXPECT_EQ(program_box_call(NR_GETAFFINITY, 0, KIB(1), RESULTS), bytes);
	EXPECT_EQ(load_u64(RESULTS), atomic_load_relaxed(&cpus_online.words[0]));
	EXPECT_EQ(program_box_call(NR_GETAFFINITY, 0, 4, RESULTS), -EINVAL);
	EXPECT_EQ(program_box_call(NR_GETAFFINITY, 0, KIB(1), NOWHERE), -EFAULT);
	EXPECT_EQ(program_box_call(NR_GETAFFINITY, 12345, KIB(1), RESULTS), -ESRCH);
	EXPECT_EQ(program_box_call(NR_SETAFFINITY, 0, bytes, RESULTS), 0);
	EXPECT_EQ(user_write(ARGUMENTS, &none, sizeof(none)), 0);
	EXPECT_EQ(program_box_call(NR_SETAFFINITY, 0, 8, ARGUMENTS), -EINVAL);
	EXPECT_EQ(program_box_call(NR_SETAFFINITY, 0, 0, ARGUMENTS), -EINVAL);
	EXPECT_EQ(program_box_call(NR_SETAFFINITY, 0, 8, NOWHERE), -EFAULT);
	EXPECT_EQ(program_box_call(NR_GETCPU, RESULTS, RESULTS + 4), 0);
	EXPECT_EQ(load_u64(RESULTS), cpu_id() | (u64)this_cpu()->node << 32);
}

TEST(program_calls, names_and_registers_of_a_thread)
{
	static const char name[32] = "a name that is too long";

	EXPECT_EQ(user_write(ARGUMENTS, name, sizeof(name)), 0);
	EXPECT_EQ(program_box_call(NR_PRCTL, 15, ARGUMENTS), 0);
	EXPECT_EQ(program_box_call(NR_PRCTL, 16, RESULTS), 0);
	EXPECT(has_text(RESULTS, "a name that is "));
	EXPECT_EQ(program_box_call(NR_PRCTL, 15, NOWHERE), -EFAULT);
	EXPECT_EQ(program_box_call(NR_PRCTL, 0x53564d41, 0), 0);
	EXPECT_EQ(program_box_call(NR_PRCTL, 12345, 0), -EINVAL);
	EXPECT_EQ(program_box_call(NR_SET_ROBUST_LIST, 0x7000, 24), 0);
	EXPECT_EQ(program_box_call(NR_SET_ROBUST_LIST, 0x7000, 23), -EINVAL);
	EXPECT_EQ(program_box_call(NR_GET_ROBUST_LIST, 0, RESULTS, RESULTS + 8), 0);
	EXPECT_EQ(load_u64(RESULTS), 0x7000);
	EXPECT_EQ(load_u64(RESULTS + 8), 24);
	EXPECT_EQ(program_box_call(NR_ARCH_PRCTL, 0x1002, ~0ULL), -EPERM);
	EXPECT_EQ(program_box_call(NR_ARCH_PRCTL, 0x3001, 0), -EINVAL);
	EXPECT_EQ(program_box_call(NR_ARCH_PRCTL, 0x1003, NOWHERE), -EFAULT);
}

TEST(program_calls, membarrier_interrupts_other_threads)
{
	SKIP_ON_ONE_CPU();
	program_box_second();
	EXPECT(program_box_call(NR_MEMBARRIER, 0, 0) & 8);
	EXPECT_EQ(program_box_call(NR_MEMBARRIER, 16, 0), 0);
	EXPECT_EQ(program_box_call(NR_MEMBARRIER, 8, 0), 0);
	EXPECT_EQ(program_box_call(NR_MEMBARRIER, 8, 1), -EINVAL);
	EXPECT_EQ(program_box_call(NR_MEMBARRIER, 1 << 20, 0), -EINVAL);
}
