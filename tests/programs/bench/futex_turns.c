/*
 * Two threads wake each other in turn, as the two processes of "perf bench sched pipe" do (Mitra,
 * 2009), by a futex. An operation is a wake and the wait of the other thread for it. With one
 * thread there is nothing to measure.
 *
 *	futex_turns THREADS [TENS]          TENS tens of turns (500)
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

enum { WARM_UP = 100 };

static uint32_t count; /* whose turn it is: its lowest bit */
static uint32_t last = 5000;

/* Thread `self` waits until it has the turn, and gives it to the other one. */
static void play(uint32_t self, uint32_t until)
{
	uint32_t now;

	while ((now = __atomic_load_n(&count, __ATOMIC_ACQUIRE)) < until) {
		if (now % 2 != self) {
			syscall(SYS_futex, &count, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
			continue;
		}
		__atomic_store_n(&count, now + 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, &count, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
}

static void *partner(void *arg)
{
	play(1, WARM_UP + last);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t id;
	uint64_t began;

	if (argc > 2)
		last = (uint32_t)atoi(argv[2]) * 10;
	if (argc < 2 || atoi(argv[1]) < 2)
		return 0;
	if (pthread_create(&id, NULL, partner, NULL) != 0)
		bench_fail("pthread_create");
	play(0, WARM_UP);
	began = bench_now();
	play(0, WARM_UP + last);
	bench_print("futex-turns", 2, bench_now() - began, last);
	pthread_join(id, NULL);
	return 0;
}
