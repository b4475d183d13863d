/* Backtraces of interrupted code; backtrace_capture() is in <arch/console.h>. */
#pragma once

#include "kernel/lib/types.h"

struct trap_frame;

/*
 * The address at which `frame` was taken, then its callers, innermost first; at most `max`. Returns
 * how many were stored. Any context.
 */
size_t backtrace_of(const struct trap_frame *frame, virt_t *out, size_t max);
