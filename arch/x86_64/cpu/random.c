/* RDRAND (Intel SDM vol. 1, 7.3.17 "Random Number Generator Instructions"). */
#include <arch/atomic.h>
#include <arch/random.h>

#include "arch/x86_64/cpu/cpuid.h"

enum { CPUID1_ECX_RDRAND = 1 << 30 };
enum { TRIES = 10 }; /* after so many refusals in a row the generator counts as broken */
enum { UNKNOWN, ABSENT, PRESENT };

static u32 known; /* CPUID is slow in a virtual machine; CPUs that race find the same */

static bool has_rdrand(void)
{
	u32 state = atomic_load_relaxed(&known);

	if (state == UNKNOWN) {
		state = cpuid(1, 0).ecx & CPUID1_ECX_RDRAND ? PRESENT : ABSENT;
		atomic_store_relaxed(&known, state);
	}
	return state == PRESENT;
}

bool random_hardware(u64 *value)
{
	bool taken = false;

	if (!has_rdrand())
		return false;
	for (int i = 0; i < TRIES && !taken; i++)
		__asm__ volatile("rdrand %0" : "=r"(*value), "=@ccc"(taken)::"cc");
	return taken;
}
