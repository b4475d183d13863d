/*
 * Random numbers that are the same in every run: Marsaglia, "Xorshift RNGs", 2003-07. The state may
 * be anything but 0.
 *
 * Also the source from which random operations get their choices: these numbers or, for fuzzing,
 * bytes from a fuzzer (tests/fuzz/ops_fuzz.c). The operations and the checks are the same.
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
	const u8 *data; /* if not NULL, these bytes are the choices, followed by zeros */
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

extern u64 soak_seed; /* the option test.seed= */

static inline bool random_is_used_up(const struct random_source *r)
{
	return r->data && r->at >= r->len;
}

/*
 * Do as many operations as these bytes choose, inside a running case, on this CPU alone.
 * random_allocations() compares pages, pools and sections of an arena with the reference allocator
 * (mm_random_test.c). random_mappings() works on huge mappings of the machine
 * (huge_map_random_test.c). random_balloon() is a virtio device that answers with these bytes
 * (virtio_balloon_test.c). Errors fail the case.
 */
void random_allocations(const u8 *data, size_t len);
void random_balloon(const u8 *data, size_t len);
void random_mappings(const u8 *data, size_t len);
