/*
 * Sleeps, while an interval timer whose signal is ignored expires before, in and after each of
 * them. Its next expiry is an hour away, so a sleep that loses its end lasts until then.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

enum { SLEEPS = 400, SLEEP_US = 200 };

static void *sleep_often(void *nothing)
{
	const struct timespec sleep = {.tv_nsec = SLEEP_US * 1000};

	for (int i = 0; i < SLEEPS; i++) {
		const struct itimerval timer = {.it_value = {.tv_usec = 1 + i % (SLEEP_US + 30)},
						.it_interval = {.tv_sec = 3600}};

		setitimer(ITIMER_REAL, &timer, NULL);
		nanosleep(&sleep, NULL);
	}
	return nothing;
}

int main(void)
{
	pthread_t thread;

	signal(SIGALRM, SIG_IGN);
	sleep_often(NULL);
	if (pthread_create(&thread, NULL, sleep_often, NULL))
		return 1;
	pthread_join(thread, NULL);
	puts("every sleep ended");
	return 0;
}
