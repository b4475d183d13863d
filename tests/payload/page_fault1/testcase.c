/*
 * page_fault1 as will-it-scale defines it (Blanchard, "anonymous memory page fault"): map a region,
 * write to each of its pages, and unmap it. The code knows nothing of the kernel.
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
