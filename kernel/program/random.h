/*
 * Random bytes for programs. They differ from run to run and pass for random, but they are derived
 * from the clock and a counter: no secret may depend on them.
 */
#pragma once

#include "kernel/lib/types.h"

/* Fill `size` bytes. Any CPU, any context. */
void random_bytes(void *to, size_t size);
