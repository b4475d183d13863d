/* The brim of memory: see brim.h. */
#include "tests/kernel/brim.h"

#include "mm/page/pcp_drain.h"

void brim_begin(enum fail_site site, u32 nth, enum fail_again again)
{
	for (unsigned i = 0; i < mm_kernel.zones; i++)
		pcp_disable(&mm_kernel.zone[i]);
	fail_arm(&mm_kernel.fail, site, nth, again);
}

bool brim_end(void)
{
	const bool failed = fail_disarm(&mm_kernel.fail);

	for (unsigned i = 0; i < mm_kernel.zones; i++)
		pcp_enable(&mm_kernel.zone[i]);
	return failed;
}
