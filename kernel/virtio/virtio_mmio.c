/*
 * Virtio over MMIO: see virtio_mmio.h. All registers have 32 bits.
 */
#include "kernel/virtio/virtio_mmio.h"

#include <arch/memory.h>
#include <arch/mmio.h>
#include <arch/pgtable.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/lib/format.h"
#include "kernel/virtio/virtq.h"
#include "mm/mm.h"

enum {
	MAGIC = 0x000,
	VERSION = 0x004,
	DEVICE_ID = 0x008,
	DEVICE_FEATURES = 0x010,
	DEVICE_FEATURES_SELECT = 0x014,
	DRIVER_FEATURES = 0x020,
	DRIVER_FEATURES_SELECT = 0x024,
	QUEUE_SELECT = 0x030,
	QUEUE_SIZE_MOST = 0x034,
	QUEUE_SIZE = 0x038,
	QUEUE_READY = 0x044,
	QUEUE_NOTIFY = 0x050,
	STATUS = 0x070,
	QUEUE_DESC = 0x080,
	QUEUE_DRIVER = 0x090,
	QUEUE_DEVICE = 0x0a0,
	CONFIG = 0x100
};
enum { MAGIC_VALUE = 0x74726976, VERSION_MODERN = 2 };

/* Registers and the two words of configuration that drivers use; no device needs a page. */
enum { BYTES_LEAST = CONFIG + 8, BYTES_MOST = 4096 };

static u8 status(struct virtio_device *dev)
{
	return (u8)mmio_read32(dev->common, STATUS);
}

static void set_status(struct virtio_device *dev, u8 value)
{
	mmio_write32(dev->common, STATUS, value);
}

static u64 features(struct virtio_device *dev)
{
	u64 all;

	mmio_write32(dev->common, DEVICE_FEATURES_SELECT, 1);
	all = (u64)mmio_read32(dev->common, DEVICE_FEATURES) << 32;
	mmio_write32(dev->common, DEVICE_FEATURES_SELECT, 0);
	return all | mmio_read32(dev->common, DEVICE_FEATURES);
}

static void accept(struct virtio_device *dev, u64 agreed)
{
	for (u32 half = 0; half < 2; half++) {
		mmio_write32(dev->common, DRIVER_FEATURES_SELECT, half);
		mmio_write32(dev->common, DRIVER_FEATURES, (u32)(agreed >> 32 * half));
	}
}

static u32 queue_most(struct virtio_device *dev, u16 queue)
{
	mmio_write32(dev->common, QUEUE_SELECT, queue);
	return mmio_read32(dev->common, QUEUE_SIZE_MOST);
}

static void write64(struct virtio_device *dev, unsigned reg, u64 value)
{
	mmio_write32(dev->common, reg, (u32)value);
	mmio_write32(dev->common, reg + 4, (u32)(value >> 32));
}

static int queue_enable(struct virtio_device *dev, struct virtq *q)
{
	const phys_t ring = virt_to_phys(q->ring);

	mmio_write32(dev->common, QUEUE_SELECT, q->number);
	if (mmio_read32(dev->common, QUEUE_READY) != 0)
		return -EINVAL; /* it was reset, so no queue is in use */
	mmio_write32(dev->common, QUEUE_SIZE, q->size);
	write64(dev, QUEUE_DESC, ring);
	write64(dev, QUEUE_DRIVER, ring + VIRTQ_AVAILABLE);
	write64(dev, QUEUE_DEVICE, ring + VIRTQ_USED);
	mmio_write32(dev->common, QUEUE_READY, 1);
	return 0;
}

static void notify(struct virtio_device *dev, struct virtq *q)
{
	mmio_write32(dev->common, QUEUE_NOTIFY, q->number);
}

static u32 config_read(struct virtio_device *dev, u32 at)
{
	return mmio_read32(dev->common, CONFIG + at);
}

static void config_write(struct virtio_device *dev, u32 at, u32 value)
{
	mmio_write32(dev->common, CONFIG + at, value);
}

static const struct virtio_ops mmio_ops = {.status = status,
					   .set_status = set_status,
					   .features = features,
					   .accept = accept,
					   .queue_most = queue_most,
					   .queue_enable = queue_enable,
					   .notify = notify,
					   .config_read = config_read,
					   .config_write = config_write};

/* ---- finding ---- */

enum { PLACES_MOST = 32 };
static struct virtio_mmio_place places[PLACES_MOST];
static u32 places_count;

int virtio_mmio_parse(const char *text, struct virtio_mmio_place *place)
{
	int err = parse_u64(&text, &place->bytes);

	if (!err)
		err = *text++ == '@' ? parse_u64(&text, &place->start) : -EINVAL;
	if (!err)
		err = *text++ == ':' ? parse_u64(&text, &place->interrupt) : -EINVAL;
	if (err)
		return err;
	if (*text)
		return -EINVAL;
	if (place->start == 0 || !IS_ALIGNED(place->start, sizeof(u32)) ||
	    place->bytes < BYTES_LEAST || place->bytes > BYTES_MOST)
		return -ERANGE;
	return 0;
}

static bool is_named(const struct virtio_mmio_place *place)
{
	for (u32 i = 0; i < places_count; i++)
		if (places[i].start == place->start)
			return true;
	return false;
}

/* Each word names one more place; without a value it takes back all that were named before. */
static int parse_place(const struct option *opt, const char *value)
{
	struct virtio_mmio_place place;
	int err;

	if (!*value) {
		places_count = 0;
		return 0;
	}
	err = virtio_mmio_parse(value, &place);
	if (err || is_named(&place))
		return err;
	if (places_count == PLACES_MOST)
		return -ERANGE;
	places[places_count++] = place;
	return 0;
}

/* The place that was named last. */
static void show_place(const struct option *opt, char *buf, size_t size)
{
	const struct virtio_mmio_place *last = places_count ? &places[places_count - 1] : NULL;

	if (last)
		format(buf, size, "%llu@0x%llx:%llu", last->bytes, last->start, last->interrupt);
	else
		buf[0] = '\0';
}

static const struct option option_virtio_mmio TABLE_ENTRY(option_table) = {
	.name = "virtio_mmio.device",
	.values = "bytes@address:interrupt",
	.help = "registers of a virtio device, e.g. virtio_mmio.device=512@0xfeb00000:5",
	.parse = parse_place,
	.show = show_place,
	.boot_only = true};

static bool take_device(const struct virtio_mmio_place *place, u16 kind, struct virtio_device *dev)
{
	volatile void __iomem *regs = mmio_map(place->start, place->bytes);

	if (!regs)
		return false;
	if (mmio_read32(regs, MAGIC) != MAGIC_VALUE || mmio_read32(regs, DEVICE_ID) != kind ||
	    mmio_read32(regs, VERSION) != VERSION_MODERN) {
		mmio_unmap(regs, place->bytes);
		return false;
	}
	*dev = (struct virtio_device){.ops = &mmio_ops, .common = regs};
	format(dev->name, sizeof(dev->name), "MMIO at %llx", place->start);
	return true;
}

bool virtio_mmio_find(u16 kind, struct virtio_device *dev)
{
	for (u32 i = 0; i < places_count; i++)
		if (take_device(&places[i], kind, dev))
			return true;
	return false;
}
