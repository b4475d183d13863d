/*
 * Queues: see virtq.h. All numbers in memory are little-endian, as the processor's.
 */
#include "kernel/virtio/virtq.h"

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/pgtable.h>

#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/wait.h"
#include "mm/debug/leaks.h"
#include "mm/mm.h"

enum { DESCRIPTOR_NEXT = 1, DESCRIPTOR_WRITE = 2, AVAILABLE_NO_INTERRUPT = 1 };
enum { ANSWER_PERIODS = 4 };

struct descriptor {
	u64 start;
	u32 bytes;
	u16 flags, next;
};

struct available {
	u16 flags, index, ring[VIRTQ_SIZE];
};

struct used {
	u16 flags, index;
	struct {
		u32 id, bytes;
	} ring[VIRTQ_SIZE];
};

_Static_assert(sizeof(struct descriptor) * VIRTQ_SIZE <= VIRTQ_AVAILABLE, "room for descriptors");
_Static_assert(VIRTQ_AVAILABLE + sizeof(struct available) <= VIRTQ_USED, "room for requests");
_Static_assert(VIRTQ_USED + sizeof(struct used) <= PAGE_SIZE, "room for answers");

static struct available *available_of(const struct virtq *q)
{
	return (struct available *)(void *)(q->ring + VIRTQ_AVAILABLE);
}

static const struct used *used_of(const struct virtq *q)
{
	return (const struct used *)(void *)(q->ring + VIRTQ_USED);
}

int virtq_begin(struct virtq *q, struct virtio_device *dev, u16 number)
{
	u32 size = dev->ops->queue_most(dev, number);

	*q = (struct virtq){.dev = dev, .number = number};
	if (size == 0)
		return -ENODEV;
	size = MIN(size, (u32)VIRTQ_SIZE);
	while (size & (size - 1))
		size &= size - 1; /* down to a power of two */
	q->frame = page_alloc(0, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);
	if (!q->frame)
		return -ENOMEM;
	q->ring = page_address(q->frame);
	q->size = (u16)size;
	available_of(q)->flags = AVAILABLE_NO_INTERRUPT;
	leaks_keep(1);
	if (dev->ops->queue_enable(dev, q) < 0) {
		q->size = 0;
		virtio_give_up(dev, "it says nonsense about a queue");
		return -ENODEV;
	}
	return 0;
}

void virtq_end(struct virtq *q)
{
	if (!q->frame)
		return;
	ASSERT(q->dev->was_reset, "memory is freed that a device may write to");
	leaks_keep(-1ULL);
	page_free(q->frame);
	*q = (struct virtq){.dev = q->dev};
}

u32 virtq_most(const struct virtq *q)
{
	return q->size;
}

void virtq_send(struct virtq *q, const struct virtq_buffer *buffers, u32 count)
{
	struct descriptor *table = (struct descriptor *)(void *)q->ring;

	ASSERT(count > 0 && count <= q->size && q->made == q->answered,
	       "a request of %u buffers to a queue of %u", count, q->size);
	for (u32 i = 0; i < count; i++)
		table[i] = (struct descriptor){
			.start = buffers[i].start,
			.bytes = buffers[i].bytes,
			.flags = (u16)((i + 1 < count ? DESCRIPTOR_NEXT : 0) |
				       (buffers[i].device_writes ? DESCRIPTOR_WRITE : 0)),
			.next = (u16)(i + 1 < count ? i + 1 : 0)};
	available_of(q)->ring[q->made % q->size] = 0;
	q->made++;
	atomic_store_release(&available_of(q)->index, q->made);
	fence_full(); /* the device sees the request before the notification */
	q->dev->ops->notify(q->dev, q);
}

int virtq_poll(struct virtq *q)
{
	const struct used *used = used_of(q);
	u16 index;

	if (q->dev->given_up)
		return -EIO;
	index = atomic_load_acquire(&used->index);
	if (index == q->answered)
		return 0;
	if (index != q->made || q->made == q->answered) {
		virtio_give_up(q->dev, "it answers requests that were not made");
		return -EIO;
	}
	if (atomic_load_relaxed(&used->ring[q->answered % q->size].id) != 0) {
		virtio_give_up(q->dev, "it answers with a buffer that it was not given");
		return -EIO;
	}
	q->answered++;
	return 1;
}

int virtq_wait(struct virtq *q)
{
	struct wait wait = wait_begin(WAIT_JOB, "the answer of a virtio device");

	for (;;) {
		const int done = virtq_poll(q);

		if (done != 0)
			return done < 0 ? done : 0;
		if (wait.late >= ANSWER_PERIODS) {
			virtio_give_up(q->dev, "it does not answer");
			return -EIO;
		}
		wait_spin(&wait, CPU_NONE);
	}
}
