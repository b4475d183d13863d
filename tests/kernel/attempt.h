/*
 * Attempts at accesses that should be impossible, for tests of the guarantees that the page tables
 * and CR4 give. The exception table catches the fault, so that the machine goes on.
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * True if the access happened, false if it faulted. attempt_call() calls `at` with the C calling
 * convention. Any context that may fault.
 */
bool attempt_write(virt_t at, u8 value);
bool attempt_read(virt_t at);
bool attempt_call(virt_t at);

/*
 * Prepare a populated page of the caller's, with a 4 KiB mapping, for such attempts. attempt_fill()
 * fills it with return instructions. attempt_give_to() then makes it read-only and executable,
 * either for the kernel or as a page of user mode; SMEP and SMAP keep the kernel from executing and
 * reading the latter.
 *
 * Only this CPU's TLB is flushed. Give the page back to the kernel and unmap it afterwards.
 */
enum attempt_owner { ATTEMPT_KERNEL, ATTEMPT_USER };
void attempt_fill(void *page);
void attempt_give_to(void *page, enum attempt_owner owner);
