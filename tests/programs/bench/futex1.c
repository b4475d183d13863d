/*
 * futex1 of will-it-scale (Blanchard, "will-it-scale", 2010): each thread wakes a futex on which
 * nobody waits. An operation is one call.
 */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

enum { CALLS = 10000 };

static struct word {
	uint32_t value;
} __attribute__((aligned(64))) words[BENCH_THREADS_MAX];

static uint64_t turn(unsigned thread, unsigned threads)
{
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_futex, &words[thread].value, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	return CALLS;
}

BENCH_MAIN({"futex1", turn, NULL})
