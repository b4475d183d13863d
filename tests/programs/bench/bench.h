/*
 * Shared by the programs of this folder: threads, a clock, and the record.
 *
 *	NAME [THREADS [MS]]
 *
 * A program starts THREADS threads (1) that repeat a turn of work for MS milliseconds (300), and
 * prints one line for each of its works:
 *
 *	BENCH program name=null threads=1 ns=300001234 ops=4711
 *
 * `ns` is the time from the moment when all threads have come until the last one has ended, and
 * `ops` are the operations of all threads in that time. The same file runs on Linux and on Ashlar,
 * so that both are measured and read in the same way.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { BENCH_THREADS_MAX = 256 };

struct bench {
	const char *name;
	/* One turn of a thread; returns its operations. `thread` counts from 0. */
	uint64_t (*turn)(unsigned thread, unsigned threads);
	void (*begin)(unsigned threads); /* before the threads; NULL: nothing to do */
};

/* Run each work as the arguments say and print its record. Returns main()'s status. */
int bench_main(int argc, char **argv, const struct bench *works, size_t count);

#define BENCH_MAIN(...)                                                                            \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		static const struct bench works[] = {__VA_ARGS__};                                 \
                                                                                                   \
		return bench_main(argc, argv, works, sizeof(works) / sizeof(works[0]));            \
	}

/* Nanoseconds of the monotonic clock. */
uint64_t bench_now(void);

/* For a work that counts only a part of its time: print its record itself. */
void bench_print(const char *name, unsigned threads, uint64_t ns, uint64_t ops);

/* Say what failed, and end the program with status 1. */
void bench_fail(const char *what) __attribute__((noreturn));

/* Private anonymous memory. Ends the program if there is none. */
char *bench_map(size_t bytes);

/* The next pseudo-random number of a state that is not 0 (Marsaglia, "Xorshift RNGs", 2003). */
static inline uint64_t bench_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}
