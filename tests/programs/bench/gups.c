/*
 * RandomAccess of the HPC Challenge, which measures GUPS (Luszczek et al., "The HPC Challenge
 * (HPCC) benchmark suite", 2006): words of a table are XORed with pseudo-random numbers that
 * also choose the word. As its rules permit, updates of several threads may get lost. An
 * operation is one update.
 */
#include "bench.h"

#define POLYNOMIAL 7ULL
enum { TABLE_WORDS = 1 << 23, UPDATES = 100000 };

static uint64_t *table;
static struct state {
	uint64_t value;
} __attribute__((aligned(64))) states[BENCH_THREADS_MAX];

static void begin(unsigned threads)
{
	table = (uint64_t *)bench_map(TABLE_WORDS * sizeof(*table));
	for (uint64_t i = 0; i < TABLE_WORDS; i++)
		table[i] = i;
	for (unsigned i = 0; i < threads; i++)
		states[i].value = 1 + i * 0x9e3779b97f4a7c15ULL;
}

static uint64_t turn(unsigned thread, unsigned threads)
{
	uint64_t value = states[thread].value;

	for (int i = 0; i < UPDATES; i++) {
		value = value << 1 ^ ((int64_t)value < 0 ? POLYNOMIAL : 0);
		table[value % TABLE_WORDS] ^= value;
	}
	states[thread].value = value;
	return UPDATES;
}

BENCH_MAIN({"gups", turn, begin})
