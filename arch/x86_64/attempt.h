/*
 * Accesses that should be impossible, tried: for tests of what the page tables and CR4 promise. The exception table takes the
 * fault, so that the machine goes on.
 */
#pragma once

#include "kernel/types.h"

/* True if it happened, false if it faulted. `at` is called with the C calling convention. Any context that may fault. */
bool attempt_write(virt_t at, u8 value);
bool attempt_read(virt_t at);
bool attempt_call(virt_t at);

/*
 * A populated page of the caller's for such tries, with a mapping of 4 KiB: fill it with returns; then make it read-only and executable,
 * for the kernel or as a page of user mode, which SMEP and SMAP keep the kernel from executing and reading. Flushes this CPU only; leave it
 * as the kernel's and unmap it afterwards.
 */
enum attempt_owner { ATTEMPT_KERNEL, ATTEMPT_USER };
void attempt_fill(void *page);
void attempt_give_to(void *page, enum attempt_owner owner);
