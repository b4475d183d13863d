/*
 * A call that does nothing: getppid(), past the C library. The measure is that of "lat_syscall
 * null" (McVoy, Staelin, "lmbench: Portable Tools for Performance Analysis", 1996).
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

enum { CALLS = 10000 };

static uint64_t turn(unsigned thread, unsigned threads)
{
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	return CALLS;
}

BENCH_MAIN({"null", turn, NULL})
