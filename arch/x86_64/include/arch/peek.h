/* Loads that may fail. */
#pragma once

#include "kernel/types.h"

/*
 * Read 8 bytes at an aligned kernel address that may not be mapped. True and the value, or false if it faulted.
 * Any context, NMI included.
 */
bool peek_u64(const void *addr, u64 *value);
