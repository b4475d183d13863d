/*
 * A split virtqueue with one request at a time (virtio 1.2, 2.7 "Split Virtqueues").
 *
 *   one frame   [descriptors 0 .. size - 1][available ring]      [used ring]
 *               0                          1024                  2048
 *               written by the kernel      written by the kernel written by the device
 *
 * A request is a chain of buffers that begins at descriptor 0, and its answer is the entry of the
 * used ring that names descriptor 0. The device cannot make the kernel believe that a request has
 * ended that was never made, or that it has ended twice.
 *
 * The kernel never reads back what it wrote into the frame, because the device can write there,
 * too.
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/virtio/virtio.h"

/* The most buffers of a request: so many entries are asked for, if the device has as many. */
enum { VIRTQ_SIZE = 64 };

struct virtq_buffer {
	phys_t start;
	u32 bytes;
	bool device_writes;
};

struct virtq {
	struct virtio_device *dev;
	u16 number;
	u16 size;      /* a power of two */
	u16 made;      /* requests made so far, modulo 2^16 */
	u16 answered;  /* requests answered so far */
	u32 notify_at; /* of the bus: what to write where */
	struct page *frame;
	u8 *ring; /* the frame */
};

enum { VIRTQ_AVAILABLE = 1024, VIRTQ_USED = 2048 };

/*
 * Set up queue `number`. Returns 0; -ENODEV if the device has none or says nonsense about it;
 * -ENOMEM.
 */
int virtq_begin(struct virtq *q, struct virtio_device *dev, u16 number);

/* Free the frame. The device was reset, so that it writes no more. */
void virtq_end(struct virtq *q);

/* How many buffers a request may have; 0 if the queue was not set up. */
u32 virtq_most(const struct virtq *q);

/* Make a request of 1 to virtq_most() buffers. The answer to the last one has come. */
void virtq_send(struct virtq *q, const struct virtq_buffer *buffers, u32 count);

/* 1: the request was answered; 0: not yet; -EIO: the device has broken a rule and was given up. */
int virtq_poll(struct virtq *q);

/* Wait for the answer. Returns 0, or -EIO; a device that does not answer is given up. */
int virtq_wait(struct virtq *q);
