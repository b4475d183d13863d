/* The RAM log: a reader that falls behind goes on with the oldest byte kept. */
#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/run/test.h"

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
