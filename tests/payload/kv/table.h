/*
 * A key-value table from 64-bit keys to 64-bit values, with open addressing and linear probing, in
 * memory that the caller provides. The code knows nothing of the kernel, so the same file compiles
 * in any C program.
 */
#pragma once

#include "kernel/lib/types.h"

struct kv_slot {
	u64 key; /* 0: empty */
	u64 value;
};

struct kv {
	struct kv_slot *slot;
	u64 slots; /* a power of two */
	u64 used;
};

/* Initialise a table in `bytes` zeroed bytes at `memory`. `bytes` is a power of two. */
void kv_init(struct kv *kv, void *memory, u64 bytes);

/*
 * Set a key's value. Returns false if the table is seven eighths full, where a probe would take
 * long. `key` is not 0.
 */
bool kv_put(struct kv *kv, u64 key, u64 value);

/* The place of a key's value, or NULL if the key is not in the table. */
u64 *kv_get(const struct kv *kv, u64 key);
