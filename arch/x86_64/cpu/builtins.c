/*
 * Functions that the compiler calls where it may not use an instruction, here to count bits,
 * because POPCNT is not in the x86-64 baseline. Names and meanings are those of libgcc (GCC
 * Internals, "The GCC low-level runtime library"), which is not linked.
 */
#include "kernel/lib/types.h"

int __popcountdi2(u64 value);

/*
 * Parallel sums of bits to pairs, nibbles and bytes; the multiplication adds up the bytes (Knuth,
 * TAOCP 4A, 7.1.3).
 */
__attribute__((weak)) int __popcountdi2(u64 value)
{
	value -= value >> 1 & 0x5555555555555555ULL;
	value = (value & 0x3333333333333333ULL) + (value >> 2 & 0x3333333333333333ULL);
	value = (value + (value >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (int)(value * 0x0101010101010101ULL >> 56);
}
