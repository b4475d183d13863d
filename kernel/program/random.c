/*
 * Random bytes: see random.h. Each word is a step of SplitMix64 from a state of its own, so CPUs
 * need no lock. Source: Guy L. Steele Jr., Doug Lea, Christine H. Flood, "Fast Splittable
 * Pseudorandom Number Generators" (OOPSLA 2014).
 */
#include "kernel/program/random.h"

#include <arch/atomic.h>
#include <arch/clock.h>

#include "kernel/lib/string.h"

#define GOLDEN_GAMMA 0x9e3779b97f4a7c15ULL

static u64 state; /* atomic */

static u64 mixed(u64 z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

void random_bytes(void *to, size_t size)
{
	u8 *byte = to;

	atomic_fetch_add(&state, mixed(clock_ns()));
	while (size > 0) {
		const u64 word = mixed(atomic_fetch_add(&state, GOLDEN_GAMMA));
		const size_t part = MIN(size, sizeof(word));

		memcpy(byte, &word, part);
		byte += part;
		size -= part;
	}
}
