/*
 * Why the last call of this CPU that failed did so: one word per CPU, written when a call fails and
 * at no other time, so that a call that succeeds costs nothing more.
 *
 *	page = pool_page_take(&pool_2m, NODE_NONE, POOL_ANY);
 *	if (!page)
 *		ashlar_warn("no page: %s", reason_text(last_reason()));
 *
 * The calls of mm/mm.h and mm/pools.h that allocate or map set it when they answer NULL, a negative
 * error, or fewer than were asked for. Ask at once: a later call, or the first touch of a page of a
 * huge mapping, may fail in part, succeed in another way, and leave its reason here.
 */
#pragma once

#include "kernel/lib/types.h"

enum reason {
	REASON_NONE, /* no call of this CPU has failed */

	/* something is used up */
	REASON_NO_MEMORY,    /* no free memory of that size in that place */
	REASON_NO_POOL_PAGE, /* the pool has no page that is free and promised to nobody else */
	REASON_NO_ADDRESSES, /* no free range of addresses is long enough */
	REASON_NO_MAPPINGS,  /* the page has as many mappings as can be counted */

	/* something is in the way */
	REASON_BUSY,    /* a page of the range cannot be moved, or another CPU changes the range */
	REASON_CONTEXT, /* there may be memory, but this context must not wait for it */
	REASON_CPU_LACKS, /* the CPU cannot map pages of that size */
	REASON_IS_RAM,    /* the range of device registers contains RAM */

	/* an argument is impossible */
	REASON_BAD_ORDER,
	REASON_BAD_USE,
	REASON_BAD_NODE,
	REASON_BAD_SIZE,      /* a size in bytes: 0, or too large */
	REASON_BAD_PAGE_SIZE, /* the size of a page or of a leaf */
	REASON_BAD_FLAGS,     /* the flags do not fit the page size */
	REASON_BAD_ADDRESS,   /* no mapping begins there, or it has no such range of whole pages */
	REASON_BAD_PAGE,      /* it heads no page in use */
	REASON_BAD_RANGE,     /* frames: none, not whole blocks, or not all RAM of one zone */
	REASON_BAD_PHYS,      /* no CPU has such a physical address */

	REASONS
};

/* Context: any. A handler sees the reason of the code that it interrupted. */
enum reason last_reason(void);

/* The reason in words, for the end of a sentence: "no free memory of that size in that place". */
const char *reason_text(enum reason reason);
