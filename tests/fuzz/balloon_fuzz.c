/*
 * libFuzzer harness for what a virtio balloon can do to its driver. The hosted machine boots once,
 * and each input is a case of its own: a device in software answers with these bytes, writes them
 * anywhere into the queues, and asks for any amount of memory. Between rounds a pool grows and
 * shrinks. All checks that follow a case are made: every frame has one owner.
 *
 * The harness is linked as ops_fuzz.c is: tests/host/host.mk.
 */
#include "tests/fuzz/hosted.h"
#include "tests/kernel/random.h"

TEST(fuzz, balloon)
{
	random_balloon(case_data, case_size);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	return run_case(data, size);
}
