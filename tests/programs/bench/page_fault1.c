/*
 * page_fault1 of will-it-scale (Blanchard, "will-it-scale", 2010): each thread maps 128 MiB of
 * anonymous memory, writes to each 4 KiB of it, and unmaps it. page_fault1 leaves the size of the
 * pages to the kernel, and page_fault1-small asks for 4 KiB. An operation is 4 KiB.
 */
#include <sys/mman.h>

#include "bench.h"

#define REGION_BYTES (128UL << 20)
#define PAGE_BYTES   4096UL

static uint64_t touch_region(int advice)
{
	volatile char *region = bench_map(REGION_BYTES);

	madvise((void *)region, REGION_BYTES, advice);
	for (size_t at = 0; at < REGION_BYTES; at += PAGE_BYTES)
		region[at] = 1;
	munmap((void *)region, REGION_BYTES);
	return REGION_BYTES / PAGE_BYTES;
}

static uint64_t turn(unsigned thread, unsigned threads)
{
	return touch_region(MADV_NORMAL);
}

static uint64_t turn_small(unsigned thread, unsigned threads)
{
	return touch_region(MADV_NOHUGEPAGE);
}

BENCH_MAIN({"page_fault1", turn, NULL}, {"page_fault1-small", turn_small, NULL})
