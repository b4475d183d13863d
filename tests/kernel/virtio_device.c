/*
 * A virtio balloon in software: see virtio_device.h. It reads the rings as the specification lays
 * them out (virtio 1.2, 2.7), without the driver's structures.
 */
#include "tests/kernel/virtio_device.h"

#include <arch/pgtable.h>

#include "kernel/lib/format.h"
#include "kernel/lib/string.h"

enum { QUEUE_INFLATE = 0, QUEUE_DEFLATE = 1, QUEUE_STATS = 2, QUEUE_SHOWN = 3, ENTRIES = 32 };
enum { NEXT = 1, WRITE = 2 };

#define OFFERS (1ULL << 0 | 1ULL << 1 | 1ULL << 5 | VIRTIO_VERSION_1)

static struct soft_balloon *soft_of(struct virtio_device *dev)
{
	return (struct soft_balloon *)(void *)((char *)dev -
					       __builtin_offsetof(struct soft_balloon, dev));
}

static u8 status(struct virtio_device *dev)
{
	struct soft_balloon *soft = soft_of(dev);

	if (soft->wild && random_below(soft->random, 32) == 0)
		return (u8)random_below(soft->random, 0x100);
	return soft->stubborn ? (u8)(soft->status | 0x40) : soft->status;
}

static void set_status(struct virtio_device *dev, u8 value)
{
	soft_of(dev)->status = value;
}

static u64 features(struct virtio_device *dev)
{
	struct soft_balloon *soft = soft_of(dev);
	u64 offers = soft->offers;

	if (soft->wild)
		offers ^= 1ULL << random_below(soft->random, 64) |
			  1ULL << random_below(soft->random, 8);
	return offers;
}

static void accept(struct virtio_device *dev, u64 agreed)
{
	soft_of(dev)->agreed = agreed;
}

static u32 queue_most(struct virtio_device *dev, u16 queue)
{
	struct soft_balloon *soft = soft_of(dev);

	if (soft->wild && random_below(soft->random, 4) == 0)
		return (u32)random_below(soft->random, 0x10000);
	return queue < SOFT_QUEUES ? ENTRIES : 0;
}

static int queue_enable(struct virtio_device *dev, struct virtq *q)
{
	struct soft_balloon *soft = soft_of(dev);

	if (soft->wild && random_below(soft->random, 32) == 0)
		return -EINVAL;
	soft->ring[q->number] = q->ring;
	soft->size[q->number] = q->size;
	return 0;
}

/* Number `at` of the frame, of 16, 32 or 64 bits. */
static u16 read16(const u8 *frame, u32 at)
{
	return atomic_load_acquire((const u16 *)(const void *)(frame + at));
}

static u32 read32(const u8 *frame, u32 at)
{
	return *(const u32 *)(const void *)(frame + at);
}

static u64 read64(const u8 *frame, u32 at)
{
	return *(const u64 *)(const void *)(frame + at);
}

static void write16(u8 *frame, u32 at, u16 value)
{
	atomic_store_release((u16 *)(void *)(frame + at), value);
}

static void write32(u8 *frame, u32 at, u32 value)
{
	*(u32 *)(void *)(frame + at) = value;
}

/* Each figure is a tag of 16 bits and a value of 64. */
static void take_figures(struct soft_balloon *soft, phys_t start, u32 bytes)
{
	const u8 *at = phys_to_virt(start);

	soft->faults += bytes % 10 != 0 || bytes == 0;
	soft->figures = bytes / 10;
	soft->messages_of_figures++;
	for (u32 i = 0; i < soft->figures; i++, at += 10) {
		const u16 tag = (u16)(at[0] | at[1] << 8);

		soft->faults += tag >= SOFT_FIGURES;
		if (tag < SOFT_FIGURES)
			memcpy(&soft->figure[tag], at + 2, sizeof(u64));
	}
}

static void take_buffer(struct soft_balloon *soft, u16 queue, phys_t start, u32 bytes, u16 flags)
{
	if (queue == QUEUE_SHOWN) {
		soft->faults += !(flags & WRITE) || !IS_ALIGNED(start, MIB(2)) ||
				!IS_ALIGNED(bytes, MIB(2)) || bytes == 0;
		if (soft->shown_count < SOFT_RUNS) {
			soft->shown[soft->shown_count].start = start;
			soft->shown[soft->shown_count++].bytes = bytes;
		}
		soft->shown_frames += bytes >> PAGE_SHIFT;
		return;
	}
	if (queue == QUEUE_STATS) {
		soft->faults += (flags & WRITE) != 0;
		take_figures(soft, start, bytes);
		return;
	}
	soft->faults += (flags & WRITE) || bytes % sizeof(u32) != 0;
	if (queue == QUEUE_INFLATE)
		soft->told_in += bytes / sizeof(u32);
	else
		soft->told_out += bytes / sizeof(u32);
}

/* Walk the chain of a request. Returns the number of its first descriptor. */
static u32 take_request(struct soft_balloon *soft, u16 queue)
{
	const u8 *frame = soft->ring[queue];
	const u32 first =
		read16(frame, VIRTQ_AVAILABLE + 4 + soft->seen[queue] % soft->size[queue] * 2);
	u32 at = first;

	for (u32 i = 0; i < ENTRIES && at < soft->size[queue]; i++) {
		const u16 flags = read16(frame, at * 16 + 12);

		take_buffer(soft, queue, read64(frame, at * 16), read32(frame, at * 16 + 8), flags);
		if (!(flags & NEXT))
			return first;
		at = read16(frame, at * 16 + 14);
	}
	soft->faults++;
	return first;
}

static void answer(struct soft_balloon *soft, u16 queue, u32 id, u16 steps)
{
	u8 *frame = soft->ring[queue];
	const u32 entry = VIRTQ_USED + 4 + soft->seen[queue] % soft->size[queue] * 8;

	write32(frame, entry, id);
	write32(frame, entry + 4, 0);
	soft->seen[queue] = (u16)(soft->seen[queue] + steps);
	write16(frame, VIRTQ_USED + 2, soft->seen[queue]);
}

static void scribble(struct soft_balloon *soft, u16 queue)
{
	u8 *frame = soft->ring[queue];

	for (u64 writes = random_below(soft->random, 64); writes > 0; writes--)
		write16(frame, (u32)random_below(soft->random, PAGE_SIZE / 2) * 2,
			(u16)random_below(soft->random, 0x10000));
}

static void notify(struct virtio_device *dev, struct virtq *q)
{
	struct soft_balloon *soft = soft_of(dev);
	u32 first;

	if (soft->meanwhile)
		soft->meanwhile();
	if (soft->manner == SOFT_RANDOM) {
		if (random_below(soft->random, 4) == 0)
			scribble(soft, q->number);
		soft->pages =
			(u32)random_below(soft->random, 1ULL << random_below(soft->random, 32));
		answer(soft, q->number, random_below(soft->random, 16) == 0,
		       random_below(soft->random, 16) == 0 ? (u16)random_below(soft->random, 3)
							   : 1);
		return;
	}
	first = take_request(soft, q->number);
	if (q->number == QUEUE_STATS)
		return; /* kept until soft_balloon_ask_figures() */
	switch (soft->manner) {
	case SOFT_SILENT:
		break;
	case SOFT_AHEAD:
		answer(soft, q->number, first, 2);
		break;
	case SOFT_WRONG_NAME:
		answer(soft, q->number, first + 1, 1);
		break;
	default:
		answer(soft, q->number, first, 1);
	}
}

static u32 config_read(struct virtio_device *dev, u32 at)
{
	return at == 0 ? soft_of(dev)->pages : soft_of(dev)->actual;
}

static void config_write(struct virtio_device *dev, u32 at, u32 value)
{
	if (at == 4)
		soft_of(dev)->actual = value;
}

static const struct virtio_ops soft_ops = {.status = status,
					   .set_status = set_status,
					   .features = features,
					   .accept = accept,
					   .queue_most = queue_most,
					   .queue_enable = queue_enable,
					   .notify = notify,
					   .config_read = config_read,
					   .config_write = config_write};

void soft_balloon_ask_figures(struct soft_balloon *soft)
{
	answer(soft, QUEUE_STATS, 0, 1);
}

void soft_balloon_init(struct soft_balloon *soft)
{
	*soft = (struct soft_balloon){.dev.ops = &soft_ops, .offers = OFFERS};
	format(soft->dev.name, sizeof(soft->dev.name), "a case's");
}
