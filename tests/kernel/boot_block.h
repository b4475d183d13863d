/*
 * Building a loader's block by hand, for the cases of the boot parsers, in a buffer with a position
 * to write at.
 */
#pragma once

#include "boot/boot_info.h"
#include "kernel/lib/string.h"
#include "tests/kernel/test.h"

/*
 * Faults beyond this many are counted but not named. Cases about many bad blocks start here, to
 * keep the console readable.
 */
#define QUIET BOOT_FAULTS_SAID

enum { BLOCK_MAX = 1024 };

static u8 block[BLOCK_MAX] __attribute__((aligned(8)));
static size_t used;

static inline void reset(struct boot_info *i, unsigned faults)
{
	memset(i, 0, sizeof(*i));
	i->faults = faults;
}

static inline void put(const void *data, size_t len)
{
	memcpy(block + used, data, len);
	used += len;
}

static inline void put_u32(u32 value)
{
	put(&value, sizeof(value));
}

static inline void put_u64(u64 value)
{
	put(&value, sizeof(value));
}

static inline void set_u32(size_t at, u32 value)
{
	memcpy(block + at, &value, sizeof(value));
}

/* For what cases parse; it is large. */
extern struct boot_info shared_info;
