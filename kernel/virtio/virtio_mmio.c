/*
 * Virtio over MMIO: see virtio_mmio.h.
 */
#include "kernel/virtio/virtio_mmio.h"

#include <arch/mmio.h>
#include <arch/pgtable.h>

#include "kernel/core/cmdline.h"
#include "kernel/lib/format.h"
#include "kernel/virtio/virtio_regs.h"
#include "mm/mm.h"

enum { MAGIC = 0x000, VERSION = 0x004, DEVICE_ID = 0x008, QUEUE_NOTIFY = 0x050, CONFIG = 0x100 };
enum { MAGIC_VALUE = 0x74726976, VERSION_MODERN = 2 };

const struct virtio_layout virtio_mmio_layout = {.features_select = 0x14,
						 .features = 0x10,
						 .accept_select = 0x24,
						 .accept = 0x20,
						 .status = 0x70,
						 .queue_select = 0x30,
						 .queue_most = 0x34,
						 .queue_size = 0x38,
						 .queue_enable = 0x44,
						 .descriptors = 0x80,
						 .available = 0x90,
						 .used = 0xa0};

/* Registers and the two words of configuration that drivers use; no device needs a page. */
enum { BYTES_LEAST = CONFIG + 8, BYTES_MOST = 4096 };

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
	*dev = (struct virtio_device){.ops = &virtio_regs_ops,
				      .layout = &virtio_mmio_layout,
				      .common = regs,
				      .notify = (volatile u8 __iomem *)regs + QUEUE_NOTIFY,
				      .notify_bytes = sizeof(u32),
				      .config = (volatile u8 __iomem *)regs + CONFIG,
				      .config_bytes = (u32)place->bytes - CONFIG};
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
