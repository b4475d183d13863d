/* The table of calls: rows that are an answer, or that are another call. */
#include "kernel/lib/string.h"
#include "kernel/program/calls.h"
#include "kernel/program/user_copy.h"
#include "kernel/run/test.h"
#include "tests/kernel/program_box.h"
#include "tests/kernel/said.h"

FIXTURE(program_call, program_box_begin, program_box_end);

TEST(program_call, a_row_may_be_its_answer)
{
	EXPECT_EQ(program_call("getuid"), 0);
	EXPECT_EQ(program_call("getpid"), THREAD_FIRST_ID);
	EXPECT_EQ(program_call("getpriority", 0, 0), 20);
	EXPECT_EQ(program_call("ptrace", 0), -EPERM);
	EXPECT_EQ(program_call("wait4", -1ULL, 0, 0, 0), -ECHILD);
	EXPECT_EQ(program_call("rseq", ARGUMENTS, 32, 0, 0), -ENOSYS);
}

static s64 call_number(u64 number)
{
	struct trap_frame regs = {.rax = number};

	calls_serve(&regs);
	EXPECT_EQ(regs.error, number);
	return (s64)regs.rax;
}

/* Once for each number, and once more for the next program. */
TEST(program_call, one_that_is_not_there_is_named_once)
{
	said_begin();
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_EQ(call_number(57), -ENOSYS);
		EXPECT_EQ(call_number(511), -ENOSYS);
		EXPECT_EQ(call_number(~0ULL), -ENOSYS);
		EXPECT_EQ(call_number(334), -ENOSYS); /* rseq: its row answers */
	}
	said_end();
	EXPECT(said_says("*call 57 (fork) is not there (ENOSYS)*"));
	EXPECT(!said_says("*call 57 (fork)*call 57 (fork)*"));
	EXPECT(said_says("*call 511 (unknown) is not there (ENOSYS)*"));
	EXPECT(said_says("*call 18446744073709551615 (unknown)*"));
	EXPECT(!said_says("*rseq*"));
	REQUIRE(program_box_again());
	said_begin();
	EXPECT_EQ(call_number(57), -ENOSYS);
	said_end();
	EXPECT(said_says("*call 57 (fork)*"));
}
