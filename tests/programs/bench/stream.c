/*
 * STREAM (McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance Computers",
 * 1995): copy, scale, add and triad of arrays of doubles. Each thread has a part of them. An
 * operation is one element.
 */
#include "bench.h"

enum { ELEMENTS = 1 << 21 };

static double a[ELEMENTS], b[ELEMENTS], c[ELEMENTS];
static const double scalar = 3.0;

struct part {
	size_t first, end;
};

static struct part part_of(unsigned thread, unsigned threads)
{
	return (struct part){(size_t)ELEMENTS * thread / threads,
			     (size_t)ELEMENTS * (thread + 1) / threads};
}

static uint64_t copy(unsigned thread, unsigned threads)
{
	const struct part part = part_of(thread, threads);

	for (size_t i = part.first; i < part.end; i++)
		c[i] = a[i];
	return part.end - part.first;
}

static uint64_t scale(unsigned thread, unsigned threads)
{
	const struct part part = part_of(thread, threads);

	for (size_t i = part.first; i < part.end; i++)
		b[i] = scalar * c[i];
	return part.end - part.first;
}

static uint64_t add(unsigned thread, unsigned threads)
{
	const struct part part = part_of(thread, threads);

	for (size_t i = part.first; i < part.end; i++)
		c[i] = a[i] + b[i];
	return part.end - part.first;
}

static uint64_t triad(unsigned thread, unsigned threads)
{
	const struct part part = part_of(thread, threads);

	for (size_t i = part.first; i < part.end; i++)
		a[i] = b[i] + scalar * c[i];
	return part.end - part.first;
}

static void begin(unsigned threads)
{
	for (size_t i = 0; i < ELEMENTS; i++) {
		a[i] = 1;
		b[i] = 2;
	}
}

BENCH_MAIN({"stream-copy", copy, begin}, {"stream-scale", scale, NULL}, {"stream-add", add, NULL},
	   {"stream-triad", triad, NULL})
