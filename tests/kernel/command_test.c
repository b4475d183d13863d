/*
 * Commands: a wrong word is named, and a harmful command is refused with the reason and changes
 * nothing. The output of a command is read back from the RAM log.
 */
#include "kernel/console/command.h"
#include "kernel/run/bench.h"
#include "mm/hugetlb/pool.h"
#include "tests/kernel/test.h"

TEST(kernel_command, the_offending_word_is_named)
{
	EXPECT_REFUSED("frobnicate 3", "frobnicate");
	EXPECT_REFUSED("mem tomorrow", "tomorrow");
	EXPECT_REFUSED("mem check now", "now");
	EXPECT_REFUSED("mem node=1", "node=1");
	EXPECT_REFUSED("pool 3M", "3M");
	EXPECT_REFUSED("pool 2M 12x", "12x");
	EXPECT_REFUSED("pool 2M wax 3", "wax");
	EXPECT_REFUSED("pool 2M grow 99999999999999999999999", "99999999999999999999999");
	EXPECT_REFUSED("help nosuch", "nosuch");
	EXPECT_REFUSED("bench nosuch", "nosuch");
	EXPECT_REFUSED("bench hvo nosuch=3", "nosuch");
	EXPECT_REFUSED("set nosuch", "nosuch");
	EXPECT_REFUSED("page 0x12345678zz", "0x12345678zz");
	EXPECT_REFUSED("page 0x8000000000000000", "0x8000000000000000");
	EXPECT_REFUSED("log \"open", "open");
	EXPECT_REFUSED("test", "too few");
	EXPECT_REFUSED("pool 1G demote 1 node=0", "node=");
	EXPECT_REFUSED("map 2M 3M", "3M");
	EXPECT_REFUSED("map 2M 2M banana", "banana");
	EXPECT_REFUSED("page contig 19", "19");
	EXPECT_REFUSED("pool 2M demote 1", "only 1G pages");
	EXPECT_REFUSED("pool 2M 3 node=0", "node=");
	EXPECT_REFUSED("page alloc 0 wrongly", "wrongly");
	EXPECT_REFUSED("program nosuch", "no program \"nosuch\"");
}

TEST(kernel_command, what_is_mistyped_is_named)
{
	EXPECT_REFUSED("nosuch", "no command \"nosuch\"; help lists them");
	EXPECT_REFUSED("mem zonse", "zonse");
	EXPECT_REFUSED("page aloc 3", "unexpected \"3\"");
	EXPECT_REFUSED("help poool", "no command \"poool\"");
	EXPECT_REFUSED("bench hvo pagse=3", "no option \"pagse\"");
	EXPECT_REFUSED("bench nosuch", "no bench \"nosuch\"; there are *hvo");
}

TEST(kernel_command, several_on_a_line_run_in_order_and_an_error_does_not_stop_the_rest)
{
	EXPECT_EQ(said_run("mem; nosuch; mem zones"), 1);
	EXPECT(said_says("= RAM*nosuch*zone 0"));
	EXPECT_EQ(said_run(" ; ;; "), 0);
	EXPECT_EQ(strlen(said_text), 0);
}

TEST(kernel_command, switches_change_and_impossible_values_do_not)
{
	EXPECT_EQ(said_run("set selftest_number=9 selftest_choice=green"), 0);
	EXPECT_EQ(said_run("set selftest_number; set selftest-choice"), 0);
	EXPECT(said_says(" 9 *green"));
	EXPECT_REFUSED("set selftest_number=3", "out of range (5 to");
	EXPECT_REFUSED("set selftest_choice=pink", "pink");
	EXPECT_REFUSED("set monitor=off", "at boot");
	EXPECT_REFUSED("set selftest_text=abc", "at boot");
	EXPECT_EQ(said_run("set selftest_number"), 0);
	EXPECT(said_says(" 9 "));
	EXPECT_EQ(said_run("set selftest_number=7 selftest_choice=red"), 0);
}

TEST(kernel_command, the_word_that_is_to_come_is_completed)
{
	char found[64];

	EXPECT_EQ(command_complete("pool 2M; balloon ", 17, found, sizeof(found), false), 1);
	EXPECT(strcmp(found, "report ") == 0);
}

static u64 seen;

static bool bench_selftest(void)
{
	char value[32];

	option_show(option_find("selftest_number"), value, sizeof(value));
	seen = (u64)(value[0] - '0');
	return true;
}

BENCH(selftest, "used by the tests of the monitor", bench_selftest);

/*
 * The options of a benchmark are set for its run and then restored. (The benchmark counts as one
 * more pass in the verdict, which is correct.)
 */
TEST(kernel_command, switches_given_to_a_benchmark_last_as_long_as_it)
{
	seen = 0;
	EXPECT_EQ(said_run("bench selftest selftest_number=8"), 0);
	EXPECT_EQ(seen, 8);
	EXPECT_EQ(said_run("set selftest_number"), 0);
	EXPECT(said_says(" 7 "));
	EXPECT(bench_run("selftest; selftest selftest_number=6"));
	EXPECT_EQ(seen, 6);
	EXPECT_REFUSED("bench selftest selftest_number=8 selftest_choice=pink", "pink");
	EXPECT_EQ(said_run("set selftest_number"), 0);
	EXPECT(said_says(" 7 "));
}
