/* A program that touches 128 MiB, gives them back and sleeps for ever (tests/qemu/test_balloon.py). */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 128 << 20 };

int main(void)
{
	char *memory =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return 1;
	memset(memory, 1, BYTES / 16); /* the emulator has translated it */
	puts("begins");
	fflush(stdout);
	memset(memory, 1, BYTES);
	munmap(memory, BYTES);
	puts("sleeps");
	fflush(stdout);
	for (;;)
		pause();
}
