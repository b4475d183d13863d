/* The table of calls: rows that are an answer, or that are another call. */
#include "tests/kernel/program_box.h"

FIXTURE(program_call, program_box_begin, program_box_end);

TEST(program_call, a_row_may_be_its_answer)
{
	EXPECT_EQ(program_call("getuid"), 0);
	EXPECT_EQ(program_call("getpid"), THREAD_FIRST_ID);
	EXPECT_EQ(program_call("getpriority", 0, 0), 20);
	EXPECT_EQ(program_call("personality", ~0U), 0x40000); /* ADDR_NO_RANDOMIZE */
	EXPECT_EQ(program_call("ptrace", 0), -EPERM);
	EXPECT_EQ(program_call("wait4", -1ULL, 0, 0, 0), -ECHILD);
	EXPECT_EQ(program_call("rseq", ARGUMENTS, 32, 0, 0), -ENOSYS);
}

/* What other registers hold does not become flags. */
TEST(program_call, a_row_may_be_another_call)
{
	const u64 old = ARGUMENTS, new = ARGUMENTS + 64, odd = ~0ULL;
	u64 limit[2] = {0};

	REQUIRE(user_write(old, "/tmp/old", 9) == 0 && user_write(new, "/tmp/new", 9) == 0);
	EXPECT_EQ(program_call("mkdir", old, 0700, odd, odd, odd, odd), 0);
	EXPECT_EQ(program_call("rename", old, new, odd, odd, odd, odd), 0);
	EXPECT_EQ(program_call("access", old, 0, odd, odd, odd, odd), -ENOENT);
	EXPECT_EQ(program_call("access", new, 0, odd, odd, odd, odd), 0);
	EXPECT_EQ(program_call("symlink", old, old, odd, odd, odd, odd), 0);
	EXPECT_EQ(program_call("readlink", old, RESULTS, 64, odd, odd, odd), 8);
	EXPECT_EQ(program_call("getrlimit", 3, RESULTS, odd, odd, odd, odd), 0);
	EXPECT(user_read(limit, RESULTS, sizeof(limit)) == 0 && limit[0] == MIB(8));
	EXPECT_EQ(program_call("getrlimit", 3, NOWHERE), -EFAULT);
	EXPECT_EQ(program_call("prlimit64", THREAD_FIRST_ID, 3, 0, RESULTS), 0);
	EXPECT_EQ(program_call("prlimit64", THREAD_FIRST_ID + 1, 3, 0, RESULTS), -ESRCH);
}

TEST(program_call, a_thread_has_the_first_15_bytes_of_the_name_that_it_is_given)
{
	char name[16];

	REQUIRE(user_write(ARGUMENTS, "a name without end", 19) == 0);
	EXPECT_EQ(program_call("prctl", 15, ARGUMENTS), 0);
	EXPECT_EQ(program_call("prctl", 16, RESULTS), 0);
	EXPECT(user_read(name, RESULTS, 16) == 0 && strcmp(name, "a name without ") == 0);
}

static s64 call_number(u64 number)
{
	struct trap_frame regs = {.rax = number};

	calls_serve(&regs);
	return (s64)regs.rax;
}

TEST(program_call, the_upper_half_of_a_number_is_not_looked_at)
{
	const s64 pid = call_number(39);

	EXPECT(pid > 0);
	EXPECT(call_number(39 | 1ULL << 32) == pid && call_number(39 | 1ULL << 63) == pid);
	EXPECT_EQ(call_number(39 | 1ULL << 31), -ENOSYS);
	EXPECT_EQ(call_number(39 | 1ULL << 30), -ENOSYS); /* x32 */
}

/*
 * Nodes are told only where there is room for all of them, and what follows them is zero. A set may
 * name nodes that are not there beside one that is.
 */
TEST(program_call, a_thread_is_told_what_it_is_bound_to)
{
	enum { MPOL_BIND = 2, BITS = 2 * 64 + 1, MOST = PAGE_SIZE * 8 + 1 };
	const u64 one[2] = {1, 1}, ones[2] = {~0ULL, ~0ULL}, far = 1ULL << 63;
	u64 got[2];
	u32 mode = 0;

	REQUIRE(user_write(ARGUMENTS, one, sizeof(one)) == 0);
	EXPECT_EQ(program_call("set_mempolicy", MPOL_BIND, ARGUMENTS, 66), -EINVAL);
	EXPECT_EQ(program_call("set_mempolicy", MPOL_BIND, ARGUMENTS, 65), 0); /* 64 bits */
	EXPECT_EQ(program_call("set_mempolicy", 0, ARGUMENTS, 0), -EINVAL);
	EXPECT_EQ(program_call("set_mempolicy", 0, RESULTS, MOST), 0);
	EXPECT_EQ(program_call("set_mempolicy", 0, RESULTS, MOST + 1), -EINVAL);
	REQUIRE(user_write(RESULTS, ones, sizeof(ones)) == 0);
	REQUIRE(user_write(RESULTS + 8, &far, sizeof(far)) == 0);
	/* the last bit is not read */
	EXPECT_EQ(program_call("set_mempolicy", 0, RESULTS + 8, 64), 0);
	EXPECT_EQ(program_call("set_mempolicy", MPOL_BIND, RESULTS, 65), 0);
	EXPECT_EQ(program_call("set_mempolicy", MPOL_BIND, RESULTS, 2), 0);
	EXPECT_EQ(program_call("set_mempolicy", 0, RESULTS + 8, 65), -EINVAL);
	EXPECT_EQ(program_call("get_mempolicy", ARGUMENTS, RESULTS, node_count - 1), -EINVAL);
	EXPECT_EQ(program_call("get_mempolicy", ARGUMENTS, RESULTS, MOST + 1), -EINVAL);
	EXPECT(user_read(got, RESULTS, sizeof(got)) == 0 && got[0] == ~0ULL);
	EXPECT_EQ(program_call("get_mempolicy", ARGUMENTS, RESULTS, BITS), 0);
	EXPECT(user_read(&mode, ARGUMENTS, sizeof(mode)) == 0 && mode == MPOL_BIND);
	EXPECT(user_read(got, RESULTS, sizeof(got)) == 0 && got[0] == 1 && got[1] == 0);
	EXPECT_EQ(program_call("mbind", PROGRAM_BOX_MEMORY, PAGE_SIZE, 0, 0, 0, 7), 0);
	EXPECT_EQ(program_call("mbind", PROGRAM_BOX_MEMORY, PAGE_SIZE, 0, 0, 0, 8), -EINVAL);
}

/* Once for each number, and once more for the next program. */
TEST(program_call, one_that_is_not_there_is_named_once)
{
	said_begin();
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_EQ(call_number(57), -ENOSYS);
		EXPECT_EQ(call_number(58), -ENOSYS);
		EXPECT_EQ(call_number(462), -ENOSYS);
		EXPECT_EQ(call_number(511), -ENOSYS);
		EXPECT_EQ(call_number(~0ULL), -ENOSYS);
		EXPECT_EQ(call_number(334), -ENOSYS); /* rseq: its row answers */
	}
	said_end();
	EXPECT(said_says("*call 57 (fork) is not there (ENOSYS)*"));
	EXPECT(!said_says("*call 57 (fork)*call 57 (fork)*"));
	EXPECT(said_says("*call 58 (vfork)*call 462 (mseal)*"));
	EXPECT(said_says("*call 511 (unknown) is not there (ENOSYS)*"));
	EXPECT(said_says("*call 18446744073709551615 (unknown)*"));
	EXPECT(!said_says("*rseq*"));
	REQUIRE(program_box_again());
	said_begin();
	EXPECT_EQ(call_number(57), -ENOSYS);
	said_end();
	EXPECT(said_says("*call 57 (fork)*"));
}
