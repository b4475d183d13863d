/* The RAM log: readers that fall behind, and writers on several CPUs. */
#include "tests/kernel/test.h"

static u64 log_end_now(void)
{
	char buf[512];
	u64 pos = 0;

	while (log_read(&pos, buf, sizeof(buf)) > 0)
		;
	return pos;
}

TEST(kernel_log, a_reader_left_behind_goes_on_with_the_oldest)
{
	char buf[16];
	u64 pos = log_end_now(), start = pos;

	for (unsigned i = 0; i < 100; i++)
		pr_debug("%1000u", i);
	EXPECT_EQ(log_read(&pos, buf, sizeof(buf)), sizeof(buf));
	EXPECT(pos > start + sizeof(buf));
	EXPECT_EQ(log_end_now() - (pos - sizeof(buf)), KIB(64));
}

#define LINE "a line of one of several CPUs"

static void warn(void *unused)
{
	pr_warn(LINE);
}

TEST(kernel_log, lines_of_several_cpus_are_all_kept)
{
	const unsigned before = log_warnings();
	unsigned lines = 0;
	cpu_t cpus;

	test_option("loglevel", "0"); /* only to the log */
	said_begin();
	cpus = cpus_run_together(warn, NULL);
	said_end();
	for (const char *at = said_text; *at; at++)
		lines += strncmp(at, "] " LINE "\n", sizeof("] " LINE)) == 0;
	EXPECT_EQ(lines, cpus);
	EXPECT(log_warnings() - before >= cpus);
}
