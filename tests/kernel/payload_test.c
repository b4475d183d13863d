/* Payloads of rooms, in a table of these cases; and one row of the machine's, never wanted. */
#include "kernel/lib/string.h"
#include "kernel/run/payload.h"
#include "kernel/run/test.h"

static bool one_wanted, two_wanted;
static unsigned one_runs, two_runs;

static bool one_is_wanted(void)
{
	return one_wanted;
}

static bool two_is_wanted(void)
{
	return two_wanted;
}

static bool never(void)
{
	return false;
}

static void run_one(void)
{
	one_runs++;
}

static void run_two(void)
{
	two_runs++;
}

static const struct payload table[] = {{"one", one_is_wanted, run_one},
				       {"two", two_is_wanted, run_two}};

PAYLOAD(selftest, never, run_one);

static bool run(bool one, bool two)
{
	one_runs = two_runs = 0;
	one_wanted = one;
	two_wanted = two;
	return payload_run_wanted_of(table, table + ARRAY_LEN(table));
}

TEST(kernel_payload, the_one_that_is_wanted_runs)
{
	EXPECT(!run(false, false));
	EXPECT(one_runs == 0 && two_runs == 0);
	EXPECT(run(true, false));
	EXPECT(one_runs == 1 && two_runs == 0);
	EXPECT(run(false, true));
	EXPECT(one_runs == 0 && two_runs == 1);
}

TEST(kernel_payload, of_several_the_first_runs)
{
	EXPECT(run(true, true));
	EXPECT(one_runs == 1 && two_runs == 0);
}

TEST(kernel_payload, the_linker_gathers_rows)
{
	const struct payload *row;
	unsigned found = 0;

	TABLE_FOREACH(row, payload_table)
	found += strcmp(row->name, "selftest") == 0;
	EXPECT_EQ(found, 1);
}
