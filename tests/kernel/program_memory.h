/*
 * Calls on the memory of a program_box, for cases: what ring 3 would do with mmap() and pointers.
 */
#pragma once

#include "kernel/program/user_copy.h"
#include "tests/kernel/program_box.h"

enum { PRIVATE = 0x22, FIXED = 0x32, POPULATE = 0x8022, HUGETLB = 0x40022, NORESERVE = 0x4022 };
enum { R = 1, W = 2, RW = 3, MAYMOVE = 1, MOVE_FIXED = 3 };
enum { DONTNEED = 4, HUGEPAGE = 14, NOHUGEPAGE = 15, COLLAPSE = 25 };
enum { GUARD_INSTALL = 102, GUARD_REMOVE = 103 };

#define NO_FILE (~0ULL)

static inline s64 map_at(u64 at, u64 size, u64 rights, u64 flags)
{
	return program_call("mmap", at, size, rights, flags, NO_FILE, 0);
}

static inline s64 unmap(u64 at, u64 size)
{
	return program_call("munmap", at, size);
}

static inline int put(u64 at, u64 value)
{
	return user_write(at, &value, sizeof(value));
}

/* The word at an address; ~0: it cannot be read. */
static inline u64 get(u64 at)
{
	u64 value;

	return user_read(&value, at, sizeof(value)) < 0 ? ~0ULL : value;
}
