/*
 * A range of the program's memory that a call transfers: one buffer, or the buffers of readv() and
 * writev() one after the other. Each transfer consumes the front of the span.
 *
 * The vector is read when the span is made, and each element again when the transfer comes to it.
 * A program that changes it meanwhile gets -EFAULT or a transfer to the new place.
 */
#pragma once

#include "kernel/program/user_copy.h"

enum { SPAN_VECTOR_MAX = 1024 };
#define SPAN_BYTES_MAX 0x7ffff000ULL /* a longer transfer is cut, as on Linux */

struct span {
	u64 total;    /* bytes left */
	user_t at;    /* the present buffer */
	u64 size;     /* bytes left of it */
	user_t next;  /* the following element of the vector */
	u32 left;     /* elements left */
	u64 end;      /* where a write to a regular file has ended in the file */
	bool kernel;  /* the buffer is the kernel's, the only one */
	bool no_wait; /* whatever the file's flags say (MSG_DONTWAIT) */
};

struct span span_of(user_t at, u64 size);

/* A buffer of the kernel, for a call that transfers from one file to another. */
struct span span_of_kernel(void *at, u64 size);

/*
 * The span of a struct iovec array. Returns 0, -EINVAL if there are too many elements or bytes, or
 * -EFAULT.
 */
int span_of_vector(struct span *span, user_t vector, u64 count);

/*
 * Copy `size` bytes from or to the front of the span, or zero them there. `size` is at most
 * span->total. Return 0 or -EFAULT; then a prefix may have been copied. Context: ordinary.
 */
int span_copy(struct span *span, enum copy how, void *kernel, u64 size);

/*
 * Transfer part after part, from byte `at` of a file on. Each lies in one page of the file, and
 * part() returns how many of its bytes it has transferred, 0 at the end of the file, or an error.
 * Returns the bytes of all parts, or an error if there were none. A thread that must end transfers
 * one part at most.
 */
typedef s64 span_part_fn(void *arg, struct span *span, u64 at, u64 bytes);
s64 span_each(struct span *span, u64 at, span_part_fn *part, void *arg);

static inline int span_read(struct span *span, void *to, u64 size)
{
	return span_copy(span, COPY_IN, to, size);
}
static inline int span_write(struct span *span, const void *from, u64 size)
{
	return span_copy(span, COPY_OUT, (void *)(uintptr_t)from, size);
}
static inline int span_zero(struct span *span, u64 size)
{
	return span_copy(span, COPY_ZERO, NULL, size);
}
