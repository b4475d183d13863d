/*
 * mmap1 of will-it-scale (Blanchard, "will-it-scale", 2010): each thread maps 128 MiB and unmaps
 * them, without touching them. An operation is one pair of calls.
 */
#include <sys/mman.h>

#include "bench.h"

enum { PAIRS = 100 };

static uint64_t turn(unsigned thread, unsigned threads)
{
	for (int i = 0; i < PAIRS; i++)
		munmap(bench_map(128UL << 20), 128UL << 20);
	return PAIRS;
}

BENCH_MAIN({"mmap1", turn, NULL})
