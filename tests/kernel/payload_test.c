/* Payloads of rooms: a row that is never wanted, and one that is wanted when a case asks for it. */
#include "kernel/run/payload.h"
#include "kernel/run/test.h"

static bool wanted;
static unsigned never_runs, runs;

static bool never_wanted(void)
{
	return false;
}

static void run_never(void)
{
	never_runs++;
}

static bool is_wanted(void)
{
	return wanted;
}

static void run(void)
{
	runs++;
}

PAYLOAD(selftest_never, never_wanted, run_never);
PAYLOAD(selftest, is_wanted, run);

TEST(kernel_payload, the_one_that_is_wanted_runs)
{
	runs = never_runs = 0;
	EXPECT(!payload_run_wanted());
	wanted = true;
	EXPECT(payload_run_wanted());
	wanted = false;
	EXPECT(runs == 1 && never_runs == 0);
}
