/* Why calls fail: see reason.h. */
#include "kernel/core/reason.h"

#include "kernel/core/percpu.h"

static const char *const texts[REASONS] = {
	[REASON_NONE] = "no call has failed",
	[REASON_NO_MEMORY] = "no free memory of that size in that place",
	[REASON_NO_POOL_PAGE] = "no page of the pool is free and promised to nobody else",
	[REASON_NO_ADDRESSES] = "no free range of addresses is long enough",
	[REASON_NO_MAPPINGS] = "the page has as many mappings as can be counted",
	[REASON_BUSY] = "a page in the range cannot be moved, or another CPU changes the range",
	[REASON_CONTEXT] = "no memory is at hand, and this context must not wait for any",
	[REASON_CPU_LACKS] = "this CPU cannot map pages of that size",
	[REASON_IS_RAM] = "the range of device registers contains RAM",
	[REASON_BAD_ORDER] = "there are no pages of that order",
	[REASON_BAD_USE] = "there is no such use of a page",
	[REASON_BAD_NODE] = "there is no such node",
	[REASON_BAD_SIZE] = "the size is 0 or too large",
	[REASON_BAD_PAGE_SIZE] = "there are no such pages, or the page is smaller",
	[REASON_BAD_FLAGS] = "the flags do not fit the size of the pages",
	[REASON_BAD_ADDRESS] = "no mapping begins there, or it has no such range of whole pages",
	[REASON_BAD_PAGE] = "it heads no page in use",
	[REASON_BAD_RANGE] = "the range is not made of whole blocks, all RAM of one zone",
	[REASON_BAD_PHYS] = "no CPU has such a physical address",
};

enum reason last_reason(void)
{
	return this_cpu()->reason;
}

const char *reason_text(enum reason reason)
{
	return (unsigned)reason < REASONS ? texts[reason] : "there is no such reason";
}
