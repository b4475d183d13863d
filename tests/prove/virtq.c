/* The queue of a virtio device that writes anything anywhere into the frame. */
#include "tests/prove/prove.h"

#include "kernel/virtio/virtq.c"
#include "mm/memmap/page.h"

static u8 ring[PAGE_SIZE] __attribute__((aligned(4096)));

bool virtio_give_up(struct virtio_device *dev, const char *rule)
{
	return dev->given_up = true;
}

static u32 most(struct virtio_device *dev, u16 queue)
{
	return ANY(u32);
}

static int enable(struct virtio_device *dev, struct virtq *q)
{
	return ANY_BOOL ? 0 : -EINVAL;
}

static void notify(struct virtio_device *dev, struct virtq *q)
{
	__CPROVER_havoc_object(ring);
}

void leaks_keep(u64 pages)
{
}

struct page *page_alloc(unsigned order, enum page_use use, unsigned flags, node_t node)
{
	static struct page page;

	return ANY_BOOL ? &page : NULL;
}

void *page_address(const struct page *page)
{
	return ring;
}

PROVE(virtq, "66", "688-any-buffer-is-the-answer",
      "any queue, a request of up to 64 buffers, any answer")
{
	static const struct virtio_ops ops = {
		.queue_most = most, .queue_enable = enable, .notify = notify};
	static struct virtio_device dev = {.ops = &ops};
	struct virtq_buffer buffer[VIRTQ_SIZE];
	const u32 count = ANY(u32);
	const u16 requests = ANY(u16);
	struct virtq q;
	int done;

	if (virtq_begin(&q, &dev, 0) < 0) {
		prove(virtq_most(&q) == 0);
		return;
	}
	prove(q.size > 0 && q.size <= VIRTQ_SIZE && (q.size & (q.size - 1)) == 0);
	q.made = q.answered = requests;
	done = virtq_poll(&q);
	prove(done == (dev.given_up ? -EIO : 0) && q.made == q.answered);
	dev.given_up = false;
	assume(count > 0 && count <= virtq_most(&q));
	virtq_send(&q, buffer, count);
	prove(q.made == (u16)(requests + 1) && q.answered == requests);
	done = virtq_poll(&q);
	prove(done == -EIO || done == 0 || done == 1);
	prove(done == 1 ? q.made == q.answered : q.answered == requests);
	prove(done != 1 ||
	      (used_of(&q)->index == q.made && used_of(&q)->ring[requests % q.size].id == 0));
	prove((done == -EIO) == dev.given_up);
}
