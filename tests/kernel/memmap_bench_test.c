/* How bench=memmap judges a run of many threads (tests/bench/memmap_bound.c). */
#include "tests/bench/memmap_bench.h"

#include "tests/kernel/test.h"

TEST(bench_memmap, threads_are_good_at_nine_tenths_each_whatever_the_limit)
{
	EXPECT(memmap_bench_is_good(2, 1800, 9999));
	EXPECT(!memmap_bench_is_good(2, 1799, 1999));
	EXPECT(memmap_bench_is_good(8, 7200, 8000));
	EXPECT(!memmap_bench_is_good(8, 1800, 2000));
}
