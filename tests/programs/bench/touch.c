/*
 * First touches and unmaps by one thread, each timed by itself: of 4 KiB pages (`touch-4k`,
 * `unmap-4k`), and of pages whose size the kernel chooses (`touch`, `unmap`). An operation is
 * 4 KiB, whatever the size of the pages. The region has 1 GiB, so that an unmap shows what a page
 * costs.
 *
 *	touch THREADS [MS]      below 100 ms the region has 64 MiB; THREADS is not used
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "bench.h"

enum { PAGE_BYTES = 4096, RUNS = 2 };

static void measure(size_t bytes, int advice, const char *touch, const char *unmap)
{
	uint64_t mapped = 0, touched = 0, unmapped = 0;

	for (int run = 0; run < RUNS; run++) { /* the last one counts */
		volatile char *region = bench_map(bytes);

		madvise((void *)region, bytes, advice);
		mapped = bench_now();
		for (size_t at = 0; at < bytes; at += PAGE_BYTES)
			region[at] = 1;
		touched = bench_now();
		munmap((void *)region, bytes);
		unmapped = bench_now();
	}
	bench_print(touch, 1, touched - mapped, bytes / PAGE_BYTES);
	bench_print(unmap, 1, unmapped - touched, bytes / PAGE_BYTES);
}

int main(int argc, char **argv)
{
	const size_t bytes = argc > 2 && atoi(argv[2]) < 100 ? 64UL << 20 : 1UL << 30;

	measure(bytes, MADV_NOHUGEPAGE, "touch-4k", "unmap-4k");
	measure(bytes, MADV_NORMAL, "touch", "unmap");
	return 0;
}
