/*
 * Page faults of the kernel: arch code catches them, and mm/ knows what they mean. Shared by the
 * real and the hosted arch.
 */
#pragma once

#include "kernel/lib/types.h"

enum fault_result {
	FAULT_RETRY, /* the access is legal by now; repeat it */
	FAULT_BUG,   /* the access is illegal; panic with fault_describe() */
};

/*
 * Make an access to `addr` that faulted legal: a huge mapping gets its page, or another CPU has
 * made it legal meanwhile. Interrupts off; any context but NMI. `interruptible` says that
 * interrupts were on at the access; they may then be on again while a page is cleared.
 */
enum fault_result fault_resolve(virt_t addr, bool write, bool exec, bool interruptible);

/*
 * Describe the access in words, for example "write to a read-only tail of the huge page ..." or
 * "read of the guard below stack ...". The text is always terminated.
 */
void fault_describe(virt_t addr, bool write, bool exec, char *buf, size_t size);
