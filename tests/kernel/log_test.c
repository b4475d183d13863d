/*
 * The RAM log: printed text can be read back, and a reader that falls behind goes on with the
 * oldest byte kept.
 */
#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "kernel/run/test.h"

static u64 log_end_now(void)
{
	char buf[512];
	u64 pos = 0;

	while (log_read(&pos, buf, sizeof(buf)) > 0)
		;
	return pos;
}

/*
 * pr_debug() is above the usual level, so these lines do not reach the console. They would not
 * disturb KTAP, either.
 */
TEST(kernel_log, lines_are_kept_with_a_time_stamp)
{
	char buf[128] = "";
	u64 pos = log_end_now();
	size_t n;

	pr_debug("the answer is %d", 42);
	n = log_read(&pos, buf, sizeof(buf) - 1);
	REQUIRE(n > 15);
	EXPECT_EQ(buf[0], '[');
	EXPECT_EQ(buf[6], '.');
	EXPECT_EQ(buf[13], ']');
	EXPECT(strcmp(buf + 15, "the answer is 42\n") == 0);
	EXPECT_EQ(log_read(&pos, buf, sizeof(buf)), 0);
}

TEST(kernel_log, a_newline_too_many_is_not_doubled)
{
	char buf[128] = "";
	u64 pos = log_end_now();

	pr_debug("with newline\n");
	log_read(&pos, buf, sizeof(buf) - 1);
	EXPECT(strcmp(buf + 15, "with newline\n") == 0);
}

TEST(kernel_log, overlong_lines_are_cut_and_still_end)
{
	static char buf[2048];
	u64 pos = log_end_now();
	size_t n;

	pr_debug("%2000d", 1);
	n = log_read(&pos, buf, sizeof(buf));
	EXPECT_EQ(n, 1023);
	REQUIRE(n > 0);
	EXPECT_EQ(buf[n - 1], '\n');
}

TEST(kernel_log, small_reads_add_up)
{
	char buf[64];
	u64 pos = log_end_now(), start = pos;
	size_t len = 0, n;

	pr_debug("0123456789");
	while (len < sizeof(buf) && (n = log_read(&pos, buf + len, 3)) > 0)
		len += n;
	EXPECT_EQ(pos - start, len);
	REQUIRE(len == 26);
	EXPECT(strncmp(buf + 15, "0123456789\n", 11) == 0);
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
