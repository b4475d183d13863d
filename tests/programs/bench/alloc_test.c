/*
 * In the manner of alloc-test (Ignatchenko, Ivanchykhin, "alloc-test", 2018): each thread has an
 * array of slots. Random slots are chosen; a full one is read and freed, and an empty one gets a
 * block of random size that is written. Small blocks are frequent: half as many of each double
 * size. An operation is one choice.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { SLOTS = 16384, CHOICES = 2000, SMALLEST = 16, DOUBLINGS = 10 };

struct slot {
	char *block;
	size_t size;
};

static struct own {
	struct slot *slots;
	uint64_t random, sum;
} __attribute__((aligned(64))) own[BENCH_THREADS_MAX];

static void begin(unsigned threads)
{
	for (unsigned i = 0; i < threads; i++) {
		own[i] = (struct own){.slots = calloc(SLOTS, sizeof(struct slot)), .random = i + 1};
		if (!own[i].slots)
			bench_fail("calloc");
	}
}

static size_t size_of(uint64_t random)
{
	const int doublings = __builtin_ctzll(random | 1ULL << DOUBLINGS);

	return ((size_t)SMALLEST << doublings) - (random >> 32) % SMALLEST;
}

static uint64_t turn(unsigned thread, unsigned threads)
{
	struct own *self = &own[thread];

	for (int i = 0; i < CHOICES; i++) {
		const uint64_t random = bench_random(&self->random);
		struct slot *slot = &self->slots[(random >> 20) % SLOTS];

		if (slot->block) {
			for (size_t at = 0; at < slot->size; at += 64)
				self->sum += (unsigned char)slot->block[at];
			free(slot->block);
			slot->block = NULL;
			continue;
		}
		slot->size = size_of(random);
		slot->block = malloc(slot->size);
		if (!slot->block)
			bench_fail("malloc");
		memset(slot->block, i, slot->size);
	}
	return CHOICES;
}

BENCH_MAIN({"alloc-test", turn, begin})
