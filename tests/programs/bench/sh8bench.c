/*
 * In the manner of sh8bench (MicroQuill, a benchmark of "SmartHeap for SMP", 1999): runs of
 * small blocks of one size after the other, fewer of large ones; some blocks are freed at once,
 * the others later, half of them in the order of allocation and half in the opposite order. An
 * operation is one block, allocated and freed.
 */
#include <stdlib.h>

#include "bench.h"

enum { BLOCKS = 2000, LARGEST = 800 };

/* The size of the next run: each is about a tenth larger, and each run is shorter. */
static size_t next_size(size_t size)
{
	return size < 10 ? size + 1 : size + size / 10;
}

static uint64_t turn(unsigned thread, unsigned threads)
{
	static _Thread_local char *block[BLOCKS];
	uint64_t made = 0;
	size_t kept = 0;

	for (size_t size = 1; size < LARGEST; size = next_size(size)) {
		const size_t run = 20 + 400 / size;

		for (size_t i = 0; i < run && kept < BLOCKS; i++) {
			block[kept] = malloc(size);
			if (!block[kept])
				bench_fail("malloc");
			*block[kept] = (char)i;
			made++;
			if (i % 4 == 3) /* freed at once */
				free(block[kept]);
			else
				kept++;
		}
	}
	for (size_t i = 0; i < kept / 2; i++)
		free(block[i]);
	for (size_t i = kept; i > kept / 2; i--)
		free(block[i - 1]);
	return made;
}

BENCH_MAIN({"sh8bench", turn, NULL})
