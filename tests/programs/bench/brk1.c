/*
 * brk1 of will-it-scale (Blanchard, "will-it-scale", 2010): the end of the heap goes up and down
 * by a page. There is one heap, so all threads change the same; a thread that is passed by another
 * does not notice. An operation is one call.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

enum { PAIRS = 100, PAGE_BYTES = 4096 };

static unsigned long top;

static void begin(unsigned threads)
{
	if (top == 0)
		top = ((unsigned long)syscall(SYS_brk, 0) + PAGE_BYTES - 1) / PAGE_BYTES *
		      PAGE_BYTES;
	syscall(SYS_brk, top);
}

static uint64_t turn(unsigned thread, unsigned threads)
{
	for (int i = 0; i < PAIRS; i++) {
		syscall(SYS_brk, top + PAGE_BYTES);
		syscall(SYS_brk, top);
	}
	return 2 * PAIRS;
}

BENCH_MAIN({"brk1", turn, begin})
