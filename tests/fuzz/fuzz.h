/* What every harness has: the function that libFuzzer, or replay.c, calls with an input, and a way to say that it failed. */
#pragma once

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(int condition)
{
	if (!condition)
		abort();
}
