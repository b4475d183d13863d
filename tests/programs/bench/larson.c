/*
 * larson (Larson, Krishnan, "Memory Allocation for Long-Running Server Applications", 1998): each
 * thread replaces random blocks of an array by new ones of random size, and hands the array on, so
 * that threads free what others allocated. There, a thread that ends is followed by a new one with
 * its array; here, threads exchange their arrays after each turn. An operation is one replacement.
 */
#include <stdlib.h>

#include "bench.h"

enum { BLOCKS = 1000, REPLACED = 2000, SIZE_MIN = 8, SIZE_END = 1000 };

struct blocks {
	char *block[BLOCKS];
};

/* The arrays that no thread has, one for each thread. */
static struct shelf {
	struct blocks *blocks;
} __attribute__((aligned(64))) shelves[BENCH_THREADS_MAX];

static struct own {
	struct blocks *blocks;
	uint64_t random;
	unsigned turns;
} __attribute__((aligned(64))) own[BENCH_THREADS_MAX];

static void begin(unsigned threads)
{
	for (unsigned i = 0; i < threads; i++) {
		shelves[i].blocks = calloc(1, sizeof(struct blocks));
		own[i] = (struct own){.blocks = calloc(1, sizeof(struct blocks)), .random = i + 1};
		if (!shelves[i].blocks || !own[i].blocks)
			bench_fail("calloc");
	}
}

static uint64_t turn(unsigned thread, unsigned threads)
{
	struct own *self = &own[thread];
	struct shelf *shelf = &shelves[(thread + self->turns++) % threads];

	for (int i = 0; i < REPLACED; i++) {
		const uint64_t random = bench_random(&self->random);
		char **block = &self->blocks->block[random % BLOCKS];

		free(*block);
		*block = malloc(SIZE_MIN + (random >> 32) % (SIZE_END - SIZE_MIN));
		if (!*block)
			bench_fail("malloc");
		**block = (char)i;
	}
	self->blocks = __atomic_exchange_n(&shelf->blocks, self->blocks, __ATOMIC_ACQ_REL);
	return REPLACED;
}

BENCH_MAIN({"larson", turn, begin})
