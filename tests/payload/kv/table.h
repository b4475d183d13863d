/*
 * A key-value table in memory: 64-bit keys to 64-bit values, open addressing with linear probing,
 * in memory that the caller gives it. Nothing here knows the kernel: the same file compiles in any
 * C program.
 */
#pragma once

#include "kernel/lib/types.h"

struct kv_slot {
	u64 key; /* 0: empty */
	u64 value;
};

struct kv {
	struct kv_slot *slot;
	u64 slots; /* power of two */
	u64 used;
};

/* `bytes` at `memory`, zeroed, a power of two. */
void kv_init(struct kv *kv, void *memory, u64 bytes);

/* False if the table is full to seven eighths (a probe would take long). `key` is not 0. */
bool kv_put(struct kv *kv, u64 key, u64 value);

/* The value's place, or NULL. */
u64 *kv_get(const struct kv *kv, u64 key);
