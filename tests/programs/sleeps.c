/*
 * Sleeps, while a timer that sends nothing expires a little later in each of them than in the one
 * before. Its next expiry is an hour away, so a sleep that loses its end lasts until the CPU's
 * timer has run down once, a second. The clock must count instructions (-icount): the steps are
 * shorter than the way into a sleep, and no sleep is late because the host is busy.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

enum { SLEEP_NS = 100000, STEP_NS = 5, LAST_NS = 15000 };

static void *sleep_often(void *lost)
{
	const struct timespec sleep = {.tv_nsec = SLEEP_NS};
	struct sigevent event = {.sigev_notify = SIGEV_NONE};
	struct timespec before, after;
	timer_t timer;

	timer_create(CLOCK_MONOTONIC, &event, &timer);
	for (int ns = STEP_NS; ns < LAST_NS; ns += STEP_NS) {
		const struct itimerspec once = {.it_value = {.tv_nsec = ns},
						.it_interval = {.tv_sec = 3600}};

		clock_gettime(CLOCK_MONOTONIC, &before);
		timer_settime(timer, 0, &once, NULL);
		nanosleep(&sleep, NULL);
		clock_gettime(CLOCK_MONOTONIC, &after);
		*(int *)lost += (after.tv_sec - before.tv_sec) * 1000 +
					(after.tv_nsec - before.tv_nsec) / 1000000 >
				500;
	}
	timer_delete(timer);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	int lost = 0;

	sleep_often(&lost);
	if (pthread_create(&thread, NULL, sleep_often, &lost))
		return 2;
	pthread_join(thread, NULL);
	printf("%d sleeps without an end\n", lost);
	return lost > 0;
}
