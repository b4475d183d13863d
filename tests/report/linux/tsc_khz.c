/*
 * Program that runs on the host before Linux is measured: the rate of its time stamp counter in
 * kHz, which is also that of its virtual machines. Told by tsc_early_khz=, Linux has a clock from
 * the beginning. Otherwise its clock begins when it has found a timer, and it takes pages of 1 GiB
 * out of memory before that.
 */
#include "nolib.h"

static int run(long argc, char **argv)
{
	print_number(tsc_khz(), '\n');
	return 0;
}
