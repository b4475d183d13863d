/*
 * page_fault2 of will-it-scale (Blanchard, "will-it-scale", 2010): as page_fault1, with a
 * private mapping of a file. page_fault3 maps it shared. The file of each thread is a memfd of
 * 16 MiB, which stays, so that its pages are there from the second turn on. An operation is 4
 * KiB.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

#define FILE_BYTES (16UL << 20)
#define PAGE_BYTES 4096UL

static int files[BENCH_THREADS_MAX];

static void begin(unsigned threads)
{
	for (unsigned i = 0; i < threads; i++) {
		if (files[i] == 0)
			files[i] = memfd_create("page_fault2", 0);
		if (files[i] < 0 || ftruncate(files[i], FILE_BYTES) != 0)
			bench_fail("memfd_create");
	}
}

static uint64_t touch_file(unsigned thread, int flags)
{
	volatile char *at = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, flags, files[thread], 0);

	if (at == MAP_FAILED)
		bench_fail("mmap");
	for (size_t offset = 0; offset < FILE_BYTES; offset += PAGE_BYTES)
		at[offset] = 1;
	munmap((void *)at, FILE_BYTES);
	return FILE_BYTES / PAGE_BYTES;
}

static uint64_t turn_private(unsigned thread, unsigned threads)
{
	return touch_file(thread, MAP_PRIVATE);
}

static uint64_t turn_shared(unsigned thread, unsigned threads)
{
	return touch_file(thread, MAP_SHARED);
}

BENCH_MAIN({"page_fault3", turn_shared, begin}, {"page_fault2", turn_private, begin})
