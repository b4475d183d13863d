/*
 * A loop of two instructions that no kernel takes part in. An operation is one instruction. Where
 * QEMU counts instructions (-icount), it takes one nanosecond on a clock that is right, and more by
 * what interrupts take.
 */
#include "bench.h"

enum { ROUNDS = 100000 };

static uint64_t turn(unsigned thread, unsigned threads)
{
	uint64_t rounds = ROUNDS;

	__asm__ volatile("1: dec %0; jnz 1b" : "+r"(rounds)::"cc");
	return 2ULL * ROUNDS;
}

BENCH_MAIN({"loop", turn, NULL})
