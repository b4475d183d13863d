/*
 * Threads are made and end, and one calls exit_group() in the middle of it. With N as argument it
 * ends with status N, at another moment for each N. For odd N the call comes from a thread that was
 * just made, else from the first thread. Needs 8 CPUs to be a race.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAKERS = 3, THREADS_MORE = 5, TURNS = 61, TURNS_MOST = 2000 };

static atomic_int made, ending;
static int number;

/* The first to come here ends the program, some instructions later. */
static void end_program(void)
{
	if (atomic_exchange(&ending, 1))
		return;
	for (volatile int turn = 0; turn < number * TURNS % TURNS_MOST;)
		turn = turn + 1;
	dprintf(1, "threads %d\n", atomic_load(&made));
	_exit(number);
}

static int is_time(void)
{
	return atomic_load(&made) >= 10 + number * THREADS_MORE % 50;
}

static void *live_shortly(void *arg)
{
	atomic_fetch_add(&made, 1);
	if (number % 2 == 1 && is_time())
		end_program();
	while (atomic_load(&ending)) /* only the kernel can end a thread that comes now */
		;
	return arg;
}

/* Half of the threads are joined; the others give their stacks back themselves. */
static void *make_threads(void *arg)
{
	for (int i = 0;; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, live_shortly, NULL))
			continue; /* no CPU is idle */
		if (i % 2 == 0)
			pthread_join(thread, NULL);
		else
			pthread_detach(thread);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t maker;

	number = argc > 1 ? atoi(argv[1]) : 0;
	for (int i = 0; i < MAKERS; i++)
		while (pthread_create(&maker, NULL, make_threads, NULL))
			; /* no CPU is idle: the first makers' threads have them all */
	for (;;)
		if (number % 2 == 0 && is_time())
			end_program();
}
