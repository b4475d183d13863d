/*
 * cache-scratch (Berger, McKinley, Blumofe, Wilson, "Hoard: A Scalable Memory Allocator for
 * Multithreaded Applications", 2000): the first thread allocates a small object for each other one,
 * all of them neighbours. A thread frees its object, and then allocates, writes and frees such
 * objects. An allocator that gives a thread the same memory again makes threads share cache lines.
 * An operation is one object.
 */
#include <stdlib.h>

#include "bench.h"

enum { OBJECT_BYTES = 8, WRITES = 100, OBJECTS = 1000 };

static char *first[BENCH_THREADS_MAX];

static void begin(unsigned threads)
{
	for (unsigned i = 0; i < threads; i++)
		first[i] = malloc(OBJECT_BYTES);
}

static uint64_t turn(unsigned thread, unsigned threads)
{
	free(first[thread]);
	first[thread] = NULL;
	for (int i = 0; i < OBJECTS; i++) {
		volatile char *object = malloc(OBJECT_BYTES);

		if (!object)
			bench_fail("malloc");
		for (int j = 0; j < WRITES; j++)
			object[j % OBJECT_BYTES] = (char)(object[j % OBJECT_BYTES] + 1);
		free((void *)object);
	}
	return OBJECTS;
}

BENCH_MAIN({"cache-scratch", turn, begin})
