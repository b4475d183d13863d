/*
 * Declarations for every harness: the function that libFuzzer, or replay.c, calls with an input,
 * and a check that reports a failure.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define require(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/*
 * A copy of the input in a block of its exact size, so that a read of one byte too many is
 * detected. The caller frees it.
 */
static inline void *exact_copy(const void *data, size_t size)
{
	void *copy = malloc(size ? size : 1);

	return memcpy(copy, data, size);
}
