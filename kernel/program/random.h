/* Random numbers for programs. */
#pragma once

#include "kernel/lib/types.h"

/*
 * Fill memory of the kernel with random bytes: the CPU's own (RDRAND), or without these a sequence
 * that begins with the time and is good for tests only. Context: any.
 */
void random_fill(void *to, size_t size);
