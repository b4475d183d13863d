/* Threads, a clock and records of benchmark programs: see bench.h. */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct worker {
	pthread_t id;
	unsigned number;
	uint64_t began, ended, ops;
} __attribute__((aligned(64)));

static struct worker workers[BENCH_THREADS_MAX];
static pthread_barrier_t all_came;
static const struct bench *work;
static unsigned threads = 1, ms = 300;

uint64_t bench_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void bench_fail(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

char *bench_map(size_t bytes)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		bench_fail("mmap");
	return at;
}

void bench_print(const char *name, unsigned count, uint64_t ns, uint64_t ops)
{
	printf("BENCH program name=%s threads=%u ns=%llu ops=%llu\n", name, count,
	       (unsigned long long)ns, (unsigned long long)ops);
	fflush(stdout);
}

/* Each thread has a CPU of its own, as it has on Ashlar in any case. */
static void stay_on(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/* The first turn is not measured. */
static void *run_worker(void *arg)
{
	struct worker *self = arg;

	if (threads > 1)
		stay_on(self->number);
	work->turn(self->number, threads);
	pthread_barrier_wait(&all_came);
	self->began = bench_now();
	do {
		self->ops += work->turn(self->number, threads);
		self->ended = bench_now();
	} while (self->ended - self->began < ms * 1000000ULL);
	return NULL;
}

static void run_work(void)
{
	uint64_t ops = 0, began = UINT64_MAX, ended = 0;

	if (work->begin)
		work->begin(threads);
	pthread_barrier_init(&all_came, NULL, threads);
	memset(workers, 0, sizeof(workers));
	for (unsigned i = 1; i < threads; i++) {
		workers[i].number = i;
		errno = pthread_create(&workers[i].id, NULL, run_worker, &workers[i]);
		if (errno != 0)
			bench_fail("pthread_create");
	}
	run_worker(&workers[0]);
	for (unsigned i = 1; i < threads; i++)
		pthread_join(workers[i].id, NULL);
	for (unsigned i = 0; i < threads; i++) {
		ops += workers[i].ops;
		began = workers[i].began < began ? workers[i].began : began;
		ended = workers[i].ended > ended ? workers[i].ended : ended;
	}
	bench_print(work->name, threads, ended - began, ops);
}

/*
 * An emulator may calculate faster after the first result that was rounded, because a flag that
 * never goes back is set then. Set it on both systems, whatever ran on the CPU before. Threads
 * inherit it.
 */
__attribute__((constructor)) static void round_once(void)
{
	volatile double third = 1;

	third /= 3;
}

int bench_main(int argc, char **argv, const struct bench *works, size_t count)
{
	if (argc > 1)
		threads = (unsigned)atoi(argv[1]);
	if (argc > 2)
		ms = (unsigned)atoi(argv[2]);
	if (threads == 0 || threads > BENCH_THREADS_MAX) {
		printf("%s [THREADS [MS]]: 1 to %d threads\n", argv[0], BENCH_THREADS_MAX);
		return 2;
	}
	for (work = works; work < works + count; work++)
		run_work();
	return 0;
}
