/*
 * A program that touches memory, gives it back and sleeps (tests/report/balloon.py). As
 * the first process of a Linux it loads the module /balloon.ko. Its words: how many MiB, and how
 * many seconds it waits before.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

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
	touch(mib << 20, "sleeps");
	for (;;) {
		sleep(10);
		puts("wakes");
		fflush(stdout);
	}
}
