/*
 * page_fault1, as will-it-scale defines it (Blanchard, "anonymous memory page fault"): a region is
 * mapped, each of its pages is written to, and it is unmapped. It knows nothing of the kernel.
 */
#include "testcase.h"

bool testcase(unsigned long long *iterations)
{
	while (!stop_asked()) {
		volatile char *c = map_anonymous(MEMSIZE);

		if (!c)
			return false;
		for (unsigned long i = 0; i < MEMSIZE; i += PAGE_BYTES) {
			c[i] = 0;
			++*iterations;
		}
		unmap((void *)c, MEMSIZE);
	}
	return true;
}
