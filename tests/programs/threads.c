/*
 * Threads: mutexes, conditions, barriers, thread-local memory, cancellation, and memory that one
 * thread gives to another. Needs 3 CPUs beside its own.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 300 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static __thread long mine;
static long turn, sum;
static int cleaned;
static char *given[THREADS];

/* Threads take turns, so each round wakes all of them. */
static void *take_turns(void *arg)
{
	const long me = (long)arg;

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		while (turn % THREADS != me)
			pthread_cond_wait(&changed, &lock);
		turn++;
		mine++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	given[me] = calloc(1, 200000);
	pthread_mutex_lock(&lock);
	sum += mine;
	pthread_mutex_unlock(&lock);
	return given[me];
}

static void clean(void *arg)
{
	cleaned = 1;
}

static void *wait_for_end(void *arg)
{
	pthread_cleanup_push(clean, arg);
	for (;;)
		pause();
	pthread_cleanup_pop(0);
	return NULL;
}

static int threads_said(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	int found = 0;

	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "Threads: %d", &found);
	return found;
}

int main(void)
{
	pthread_t thread[THREADS], waiter;
	struct timespec time, later;
	void *result;
	int wrong = 0;

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		wrong += pthread_create(&thread[i], NULL, take_turns, (void *)i) != 0;
	for (int i = 0; i < THREADS; i++) {
		wrong += pthread_join(thread[i], &result) != 0 || result != given[i];
		free(given[i]);
	}
	wrong += pthread_create(&waiter, NULL, wait_for_end, NULL) != 0;
	wrong += threads_said() != 2;
	wrong += pthread_cancel(waiter) != 0;
	wrong += pthread_join(waiter, &result) != 0 || result != PTHREAD_CANCELED;
	clock_gettime(CLOCK_MONOTONIC, &time); /* by the vDSO */
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &later);
	wrong += time.tv_sec > later.tv_sec;
	printf("turns %ld, sum %ld, cleaned %d, wrong %d\n", turn, sum, cleaned, wrong);
	return wrong || turn != THREADS * ROUNDS || sum != turn || !cleaned;
}
