/*
 * Page faults of the kernel: arch code catches them, and mm/ knows what they mean. Shared by the
 * real and the hosted arch.
 */
#pragma once

#include "kernel/lib/types.h"

enum fault_result {
	FAULT_RETRY, /* the access is legal by now; repeat it */
	/* the access is illegal; panic with fault_describe() */
	FAULT_BUG, /* for a reason that the address shows */
	/* among the addresses of huge mappings */
	FAULT_HUGE_NOWHERE, /* where no mapping is */
	FAULT_HUGE_BEYOND,  /* beyond the end of one */

	FAULT_HUGE_EXEC,      /* an instruction was fetched */
	FAULT_HUGE_CONTEXT,   /* a first touch, and not in ordinary code */
	FAULT_HUGE_READ_ONLY, /* a write, and the page is read-only */
	FAULT_HUGE_NO_ACCESS, /* where nothing may be accessed (HUGE_NONE) */
};

/*
 * Make an access to `addr` that faulted legal: a huge mapping gets its page, or another CPU has
 * made it legal meanwhile. Interrupts off; any context but NMI. `interruptible` says that
 * interrupts were on at the access; they may then be on again while a page is cleared.
 */
enum fault_result fault_resolve(virt_t addr, bool write, bool exec, bool interruptible);

/*
 * Describe the access in words, for example "write to a read-only tail of the huge page ..." or
 * "read of the guard below stack ...". `why` is what fault_resolve() returned for it. The text is
 * always terminated.
 */
void fault_describe(enum fault_result why, virt_t addr, bool write, bool exec, char *buf,
		    size_t size);
