/*
 * The one checked copy between the kernel and a program's memory.
 *
 * The kernel never follows a program's pointer. It looks the address up in the page tables, brings
 * the page as a touch would, and copies through the direct map. While it copies, the thread pins
 * the page (thread.h), so that no other thread's munmap() frees it. SMAP stays on throughout.
 *
 * All functions return 0 or -EFAULT, and check the whole range against USER_START and USER_END
 * first. After -EFAULT a prefix may have been copied. Context: ordinary.
 */
#pragma once

#include "kernel/lib/string.h"
#include "kernel/lib/types.h"

typedef u64 user_t; /* an address that a program supplied */

enum copy { COPY_IN, COPY_OUT, COPY_ZERO }; /* from the program, to it, zeros to it */
int user_copy(enum copy how, void *kernel, user_t at, u64 size);

static inline int user_read(void *to, user_t from, u64 size)
{
	return user_copy(COPY_IN, to, from, size);
}
static inline int user_write(user_t to, const void *from, u64 size)
{
	return user_copy(COPY_OUT, (void *)(uintptr_t)from, to, size);
}

/* The copy itself, of kernel's memory: `kernel` may be NULL with COPY_ZERO. */
/* NOLINTBEGIN(clang-analyzer-unix.cstring.NullArg): `how` is not followed */
static inline void copy_bytes(enum copy how, void *kernel, void *bytes, u64 size)
{
	if (how == COPY_IN)
		memcpy(kernel, bytes, size);
	else if (how == COPY_OUT)
		memcpy(bytes, kernel, size);
	else
		memset(bytes, 0, size);
}
/* NOLINTEND(clang-analyzer-unix.cstring.NullArg) */

/*
 * A text of at most size - 1 bytes and its end. Returns its length, -EFAULT, or -ENAMETOOLONG if it
 * does not end in time.
 */
s64 user_read_text(char *to, user_t from, u64 size);

/* One atomic access to an aligned word, for futexes. */
int user_load_u32(user_t from, u32 *value);
/*
 * Load an aligned word without waiting for anything, for holders of a lock and reports. False if
 * the page is not there, or a call is changing its area. Context: ordinary.
 */
bool user_peek_u32(user_t from, u32 *value);
/* Replace `old` by `new`; *found receives what was there. */
int user_cas_u32(user_t at, u32 old, u32 new, u32 *found);
