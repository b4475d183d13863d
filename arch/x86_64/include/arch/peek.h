/* Loads that may fail. */
#pragma once

#include "kernel/lib/types.h"

/*
 * Read 8 bytes at an aligned kernel address that may not be mapped. Returns true and sets *value,
 * or false if the read faulted. Any context, NMI included.
 */
bool peek_u64(const void *addr, u64 *value);
