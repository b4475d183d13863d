/*
 * Page faults of the kernel: arch code catches them, mm/ knows what they mean. Shared by the real and the hosted arch.
 */
#pragma once

#include "kernel/types.h"

enum fault_result {
	FAULT_RETRY, /* the access is legal by now: do it again */
	FAULT_BUG,   /* it is not: panic with fault_describe() */
};

/*
 * Make an access to `addr` that faulted legal: a huge mapping gets its page; or another CPU has done it meanwhile. Interrupts off; any
 * context but NMI. `interruptible`: they were on at the access, and may be on again while a page is cleared.
 */
enum fault_result fault_resolve(virt_t addr, bool write, bool exec, bool interruptible);

/* What the access was, in words: "write to a read-only tail of page ...", "stack guard ...". Always terminates. */
void fault_describe(virt_t addr, bool write, bool exec, char *buf, size_t size);
