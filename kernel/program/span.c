/* Ranges that calls transfer: see span.h. */
#include "kernel/program/span.h"

#include "kernel/program/thread.h"

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
	return (struct span){.total = size, .at = (uintptr_t)at, .size = size, .kernel = true};
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

int span_copy(struct span *span, enum copy how, void *kernel, u64 size)
{
	u8 *byte = kernel;

	while (size > 0) {
		int err = turn(span);
		const u64 part = MIN(size, span->size);

		if (!err && span->kernel)
			copy_bytes(how, byte, (void *)(uintptr_t)span->at, part);
		else if (!err)
			err = user_copy(how, byte, span->at, part);
		if (err)
			return err;
		span->at += part;
		span->size -= part;
		span->total -= part;
		byte = byte ? byte + part : NULL;
		size -= part;
	}
	return 0;
}

s64 span_each(struct span *span, u64 at, span_part_fn *part, void *arg)
{
	u64 done = 0;

	while (span->total > 0) {
		const s64 bytes = part(arg, span, at, MIN(span->total, PAGE_SIZE - at % PAGE_SIZE));

		if (bytes < 0 && done == 0)
			return bytes;
		if (bytes <= 0)
			break;
		at += (u64)bytes;
		done += (u64)bytes;
		if (thread_must_end(thread_current()))
			break;
	}
	return (s64)done;
}
