/*
 * Numbers that are alike in every run: Marsaglia, "Xorshift RNGs", 2003-07. The state is any but 0.
 *
 * And where random operations get their choices: from such numbers, or, for fuzzing, from bytes
 * that somebody else thought of (tests/fuzz/ops_fuzz.c). The operations and what is checked are the
 * same.
 */
#pragma once

#include "kernel/lib/types.h"

static inline u64 next_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

struct random_source {
	u64 state;
	const u8 *data; /* if not NULL, these bytes are the choices, 0 when they are used up */
	size_t len, at;
};

static inline u64 random_below(struct random_source *r, u64 below)
{
	u64 value = 0;

	if (!r->data)
		return (next_random(&r->state) >> 11) % below;
	for (u64 span = below - 1; span; span >>= 8)
		value = value << 8 | (r->at < r->len ? r->data[r->at++] : 0);
	return value % below;
}

extern u64 soak_seed; /* seed= */

static inline bool random_is_used_up(const struct random_source *r)
{
	return r->data && r->at >= r->len;
}

/*
 * As many operations as these bytes choose, inside a running case: pages, pools and sections of an
 * arena against the reference allocator (mm_random_test.c); huge mappings of the machine
 * (huge_map_random_test.c), this CPU alone. What is wrong fails the case.
 */
void random_allocations(const u8 *data, size_t len);
void random_mappings(const u8 *data, size_t len);
