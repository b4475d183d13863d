/*
 * Static memory that cases and benchmarks share, because one of them runs at a time and the kernel
 * must end below 8 MiB (linker.ld). It does not come from the allocator, so the notes of a
 * benchmark do not change its measurements.
 *
 *	struct leg *legs = SCRATCH(struct leg, LEGS_MAX);
 */
#pragma once

#include "kernel/lib/types.h"

#define SCRATCH_BYTES KIB(560)

/* Room for `count` things, all zero, until the next case or benchmark asks. CPU 0. */
#define SCRATCH(type, count)                                                                       \
	({                                                                                         \
		_Static_assert(sizeof(type) * (count) <= SCRATCH_BYTES, "too much: " #type);       \
		(type *)scratch(sizeof(type) * (count));                                           \
	})

void *scratch(size_t bytes);
