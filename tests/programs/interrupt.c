/*
 * A program that does not end by itself, for Ctrl-C: it spins, sleeps, reads the console, or does
 * not care. A thread of it waits for good. With a number it ends with that status. With "nap" and a
 * number it sleeps as many seconds and ends.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *wait_for_good(void *arg)
{
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "0";
	volatile unsigned long turns = 0;
	pthread_t thread;
	char byte;

	if (how[0] >= '0' && how[0] <= '9')
		return atoi(how);
	if (strcmp(how, "nap") == 0 && argc > 2)
		return (int)sleep((unsigned)atoi(argv[2]));
	memset(malloc(8 << 20), 1, 8 << 20);
	pthread_create(&thread, NULL, wait_for_good, NULL);
	if (strcmp(how, "deaf") == 0)
		signal(SIGINT, SIG_IGN);
	printf("%s\n", how);
	fflush(stdout);
	for (;;) {
		if (strcmp(how, "spin") == 0)
			turns++;
		else if (strcmp(how, "read") != 0)
			sleep(1000);
		else if (read(0, &byte, 1) == 0)
			return 1;
	}
}
