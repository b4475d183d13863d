/* Ranges that calls transfer: see span.h. */
#include "kernel/program/span.h"

#include "kernel/lib/string.h"

struct iovec {
	user_t base;
	u64 size;
};

struct span span_of(user_t at, u64 size)
{
	size = MIN(size, SPAN_BYTES_MAX);
	return (struct span){.total = size, .at = at, .size = size};
}

struct span span_of_kernel(void *at, u64 size)
{
	return (struct span){.total = size, .kernel = at};
}

int span_of_vector(struct span *span, user_t vector, u64 count)
{
	struct iovec element;

	if (count > SPAN_VECTOR_MAX)
		return -EINVAL;
	*span = (struct span){.next = vector, .left = (u32)count};
	for (u64 i = 0; i < count; i++) {
		const int err = user_read(&element, vector + i * sizeof(element), sizeof(element));

		if (err)
			return err;
		if ((s64)element.size < 0 || (s64)(span->total + element.size) < 0)
			return -EINVAL;
		span->total += element.size;
	}
	span->total = MIN(span->total, SPAN_BYTES_MAX);
	return 0;
}

/* Make the present buffer the first that has bytes left. */
static int turn(struct span *span)
{
	struct iovec element;

	while (span->size == 0) {
		int err;

		if (span->left == 0)
			return -EFAULT;
		err = user_read(&element, span->next, sizeof(element));
		if (err)
			return err;
		span->next += sizeof(element);
		span->left--;
		span->at = element.base;
		span->size = element.size;
	}
	return 0;
}

static void consume(struct span *span, u64 size)
{
	span->at += size;
	span->size -= size;
	span->total -= size;
}

/* The front of a buffer of the kernel. */
static void *consume_kernel(struct span *span, u64 size)
{
	u8 *front = span->kernel;

	span->kernel += size;
	span->total -= size;
	return front;
}

int span_read(struct span *span, void *to, u64 size)
{
	u8 *byte = to;

	if (span->kernel) {
		memcpy(to, consume_kernel(span, size), size);
		return 0;
	}
	while (size > 0) {
		int err = turn(span);
		u64 part;

		if (err)
			return err;
		part = MIN(size, span->size);
		err = user_read(byte, span->at, part);
		if (err)
			return err;
		consume(span, part);
		byte += part;
		size -= part;
	}
	return 0;
}

int span_write(struct span *span, const void *from, u64 size)
{
	const u8 *byte = from;

	if (span->kernel) {
		memcpy(consume_kernel(span, size), from, size);
		return 0;
	}
	while (size > 0) {
		int err = turn(span);
		u64 part;

		if (err)
			return err;
		part = MIN(size, span->size);
		err = user_write(span->at, byte, part);
		if (err)
			return err;
		consume(span, part);
		byte += part;
		size -= part;
	}
	return 0;
}

int span_zero(struct span *span, u64 size)
{
	if (span->kernel) {
		memset(consume_kernel(span, size), 0, size);
		return 0;
	}
	while (size > 0) {
		int err = turn(span);
		u64 part;

		if (err)
			return err;
		part = MIN(size, span->size);
		err = user_zero(span->at, part);
		if (err)
			return err;
		consume(span, part);
		size -= part;
	}
	return 0;
}
