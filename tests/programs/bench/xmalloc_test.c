/*
 * xmalloc-test (Lever, Boreham, "malloc() Performance in a Multithreaded Linux Environment", 2000):
 * some threads allocate objects and others free them. Here, even threads put batches of objects on
 * a shelf for their odd neighbours, which free them. A thread without a neighbour does both. An
 * operation is one object freed.
 */
#include <sched.h>
#include <stdlib.h>

#include "bench.h"

enum { OBJECTS = 120, SHELVES = 64 };

struct batch {
	void *object[OBJECTS];
};

static struct pair {
	struct batch *shelf[SHELVES];
	unsigned put, taken; /* the next shelf of each neighbour */
} __attribute__((aligned(64))) pairs[BENCH_THREADS_MAX];

static struct batch *make_batch(uint64_t *random)
{
	struct batch *batch = malloc(sizeof(*batch));

	for (int i = 0; batch && i < OBJECTS; i++) {
		const size_t size = 8 + bench_random(random) % 512;

		batch->object[i] = malloc(size);
		if (!batch->object[i])
			bench_fail("malloc");
		*(char *)batch->object[i] = (char)i;
	}
	if (!batch)
		bench_fail("malloc");
	return batch;
}

static uint64_t free_batch(struct batch *batch)
{
	for (int i = 0; i < OBJECTS; i++)
		free(batch->object[i]);
	free(batch);
	return OBJECTS;
}

/* Nothing is counted for a batch that is put; a thread whose neighbour is behind goes on later. */
static uint64_t turn(unsigned thread, unsigned threads)
{
	static _Thread_local uint64_t random = 88172645463325252ULL;
	struct pair *pair = &pairs[thread / 2];
	const unsigned taken = pair->taken % SHELVES, put = pair->put % SHELVES;
	struct batch *batch;

	if (thread % 2 == 0 && thread + 1 == threads)
		return free_batch(make_batch(&random));
	if (thread % 2 == 0) {
		if (__atomic_load_n(&pair->shelf[put], __ATOMIC_ACQUIRE)) {
			sched_yield();
			return 0;
		}
		__atomic_store_n(&pair->shelf[put], make_batch(&random), __ATOMIC_RELEASE);
		pair->put++;
		return 0;
	}
	batch = __atomic_load_n(&pair->shelf[taken], __ATOMIC_ACQUIRE);
	if (!batch) {
		sched_yield();
		return 0;
	}
	__atomic_store_n(&pair->shelf[taken], NULL, __ATOMIC_RELEASE);
	pair->taken++;
	return free_batch(batch);
}

BENCH_MAIN({"xmalloc-test", turn, NULL})
