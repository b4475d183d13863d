/*
 * The record that shows whether the previous run ended.
 */
#include "kernel/core/run_record.h"
#include "tests/kernel/test.h"

TEST(kernel_run_record, runs_are_counted_and_ends_noted)
{
	const struct run_record nothing = {0}, first = run_record_next(&nothing),
				second = run_record_next(&first);
	const struct run_record closed = run_record_closed(&second, 0x11, 3);

	EXPECT(run_record_valid(&first) && first.state == RUN_RUNNING);
	EXPECT_EQ(second.boots, 2);
	EXPECT(run_record_valid(&closed) && closed.state == RUN_ENDED);
	EXPECT_EQ(second.status, RUN_NO_STATUS);
	EXPECT_EQ(closed.verdict, 0x11);
	EXPECT_EQ(closed.status, 3);
	EXPECT_EQ(run_record_next(&closed).boots, 3);
	for (unsigned fill = 0; fill < 256; fill++) { /* a first run finds anything */
		struct run_record found;

		memset(&found, (int)fill, sizeof(found));
		EXPECT(!run_record_valid(&found));
		EXPECT_EQ(run_record_next(&found).boots, 1);
	}
}

/* A record that was half written at a reset, or has a decayed bit, is invalid. */
TEST(kernel_run_record, any_changed_bit_is_noticed)
{
	const struct run_record nothing = {0}, good = run_record_next(&nothing);

	for (unsigned bit = 0; bit < sizeof(good) * 8; bit++) {
		struct run_record bad = good;

		((u8 *)&bad)[bit / 8] ^= (u8)(1 << bit % 8);
		EXPECT(!run_record_valid(&bad));
	}
}
