/*
 * For every harness: any value, what is assumed, what is proved, and stand-ins for what the product
 * calls. A variable that is not initialised has any value.
 *
 * PROVE() begins a harness. run.py reads its row: the options of CBMC, beginning with the number of
 * turns of a loop, the bug of seeds.txt or of ../mutants that the harness must find, and the bound
 * in words.
 */
#pragma once

#include "kernel/lib/string.h"
#include "kernel/lib/types.h"

#define PROVE(name, options, seed, bound) void prove_##name(void)

#define assume(condition) __CPROVER_assume(condition)
#define prove(condition)  __CPROVER_assert(condition, #condition)
#define ANY(type)                                                                                  \
	({                                                                                         \
		type any_;                                                                         \
		any_;                                                                              \
	})
#define ANY_BELOW(type, end)                                                                       \
	({                                                                                         \
		type below_;                                                                       \
		assume(below_ < (end));                                                            \
		below_;                                                                            \
	})
#define ANY_BOOL ((bool)(ANY(u8) & 1))

/*
 * `len` bytes of any contents, at most `most`, that end where their object ends: a read of one byte
 * too many is an error.
 */
#define ANY_BYTES(name, len, most)                                                                 \
	u8 name##_room[most];                                                                      \
	const size_t len = ANY_BELOW(size_t, (most) + 1);                                          \
	u8 *const name = name##_room + ((most)-len)

/* A stand-in for memmove() that moves whole records. */
#define MOVER(name, type)                                                                          \
	static void *name(void *to, const void *from, size_t bytes)                                \
	{                                                                                          \
		type *a = to;                                                                      \
		const type *b = from;                                                              \
		const size_t count = bytes / sizeof(type);                                         \
                                                                                                   \
		for (size_t i = 0; i < count; i++)                                                 \
			a[a > b ? count - 1 - i : i] = b[a > b ? count - 1 - i : i];               \
		return to;                                                                         \
	}

#define __builtin_memcpy memcpy /* which CBMC knows */

/* CBMC knows the other functions of strings. */
size_t strnlen(const char *text, size_t most)
{
	size_t n = 0;

	while (n < most && text[n])
		n++;
	return n;
}

enum log_level;

void printk(enum log_level level, const char *format, ...)
{
}

#ifndef OWN_PANIC
/* A broken invariant is what must not happen. */
__noreturn void panic(const char *format, ...)
{
	__CPROVER_assert(0, "no panic");
	assume(0);
	for (;;)
		;
}
#endif
