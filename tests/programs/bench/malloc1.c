/*
 * malloc1 of will-it-scale (Blanchard, "will-it-scale", 2010): each thread allocates 128 MiB and
 * frees them. The C library maps and unmaps memory for each. An operation is one pair of calls.
 */
#include <stdlib.h>

#include "bench.h"

enum { PAIRS = 100 };

static uint64_t turn(unsigned thread, unsigned threads)
{
	for (int i = 0; i < PAIRS; i++) {
		char *volatile at = malloc(128UL << 20);

		if (!at)
			bench_fail("malloc");
		free(at);
	}
	return PAIRS;
}

BENCH_MAIN({"malloc1", turn, NULL})
