/* RDRAND (Intel SDM vol. 1, 7.3.17 "Random Number Generator Instructions"). */
#include <arch/random.h>

#include "arch/x86_64/cpu/cpu.h"

enum { TRIES = 10 }; /* after so many refusals in a row the generator counts as broken */

bool random_hardware(u64 *value)
{
	bool taken = false;

	for (int i = 0; cpu_features.rdrand && i < TRIES && !taken; i++)
		__asm__ volatile("rdrand %0" : "=r"(*value), "=@ccc"(taken)::"cc");
	return taken;
}
