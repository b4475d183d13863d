/*
 * A program that touches memory, gives it back and sleeps (tests/report/balloon.py). As
 * the first process of a Linux it loads the module /balloon.ko. Its words: how many MiB, and how
 * many seconds it waits before. With a third word, one thread sleeps all the time, and a second
 * begins to compute once memory was touched. The first computes, too, instead of sleeping.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void compute(time_t seconds)
{
	const time_t end = time(NULL) + seconds;

	while (time(NULL) < end)
		;
}

static void *sleeps(void *unused)
{
	pause();
	return unused;
}

static void *computes(void *unused)
{
	compute(3600);
	return unused;
}

static void start(void *(*thread)(void *))
{
	pthread_t id;

	if (pthread_create(&id, NULL, thread, NULL) != 0)
		exit(1);
	compute(2); /* it runs */
}

/* The tables stay, so that no CPU is interrupted which sleeps. */
static void touch_beside_threads(size_t bytes)
{
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	start(sleeps);
	if (memory == MAP_FAILED)
		exit(1);
	memset(memory, 1, bytes);
	start(computes);
	madvise(memory, bytes, MADV_DONTNEED);
	compute(10);
	puts("wakes");
	exit(0);
}

static void touch(size_t bytes, const char *said)
{
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(1);
	memset(memory, 1, bytes);
	munmap(memory, bytes);
	puts(said);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const size_t mib = argc > 1 ? (size_t)atoi(argv[1]) : 128;

	syscall(SYS_finit_module, open("/balloon.ko", O_RDONLY), "", 0);
	touch(8 << 20, "begins"); /* the emulator has translated the code */
	sleep(argc > 2 ? (unsigned)atoi(argv[2]) : 0);
	if (argc > 3)
		touch_beside_threads(mib << 20);
	touch(mib << 20, "sleeps");
	for (;;) {
		sleep(10);
		puts("wakes");
		fflush(stdout);
	}
}
