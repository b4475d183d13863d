/*
 * The sequence without RDRAND is splitmix64 (Guy Steele, Doug Lea, Christine Flood, "Fast splittable
 * pseudorandom number generators", 2014), with the time mixed into each step.
 */
#include "kernel/program/random.h"

#include <arch/atomic.h>
#include <arch/clock.h>
#include <arch/random.h>

#include "kernel/lib/string.h"

static u64 sequence;

static u64 random_step(void)
{
	const u64 step = 0x9e3779b97f4a7c15ULL;
	u64 x = (atomic_fetch_add(&sequence, step) + step) ^ (clock_ns() << 20);

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

void random_fill(void *to, size_t size)
{
	u8 *at = to;

	while (size) {
		const size_t part = MIN(size, sizeof(u64));
		u64 value;

		if (!random_hardware(&value))
			value = random_step();
		memcpy(at, &value, part);
		at += part;
		size -= part;
	}
}
