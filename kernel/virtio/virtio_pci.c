/*
 * Virtio over PCI: see virtio_pci.h. Capabilities of the vendor's kind say in which BAR, and where
 * in it, the device has its registers. Each such piece is mapped by itself; nothing beyond the
 * length that the device gave is ever accessed.
 */
#include "kernel/virtio/virtio_pci.h"

#include <arch/mmio.h>
#include <arch/pci.h>
#include <arch/pgtable.h>

#include "kernel/lib/format.h"
#include "kernel/virtio/virtq.h"
#include "mm/mm.h"

enum { VENDOR = 0x1af4, MODERN = 0x1040, TRANSITIONAL_BALLOON = 0x1002, BALLOON = 5 };
enum { CAPABILITY_VENDOR = 9, CAPABILITIES_MOST = 48 };
enum { KIND_COMMON = 1, KIND_NOTIFY = 2, KIND_CONFIG = 4 };

/* Offsets in the common configuration. */
enum {
	DEVICE_FEATURE_SELECT = 0,
	DEVICE_FEATURE = 4,
	DRIVER_FEATURE_SELECT = 8,
	DRIVER_FEATURE = 12,
	DEVICE_STATUS = 20,
	QUEUE_SELECT = 22,
	QUEUE_SIZE = 24,
	QUEUE_ENABLE = 28,
	QUEUE_NOTIFY_OFF = 30,
	QUEUE_DESC = 32,
	QUEUE_DRIVER = 40,
	QUEUE_DEVICE = 48,
	COMMON_BYTES = 56
};

static u8 status(struct virtio_device *dev)
{
	return mmio_read8(dev->common, DEVICE_STATUS);
}

static void set_status(struct virtio_device *dev, u8 value)
{
	mmio_write8(dev->common, DEVICE_STATUS, value);
}

static u64 features(struct virtio_device *dev)
{
	u64 all;

	mmio_write32(dev->common, DEVICE_FEATURE_SELECT, 1);
	all = (u64)mmio_read32(dev->common, DEVICE_FEATURE) << 32;
	mmio_write32(dev->common, DEVICE_FEATURE_SELECT, 0);
	return all | mmio_read32(dev->common, DEVICE_FEATURE);
}

static void accept(struct virtio_device *dev, u64 agreed)
{
	for (u32 half = 0; half < 2; half++) {
		mmio_write32(dev->common, DRIVER_FEATURE_SELECT, half);
		mmio_write32(dev->common, DRIVER_FEATURE, (u32)(agreed >> 32 * half));
	}
}

static u32 queue_most(struct virtio_device *dev, u16 queue)
{
	mmio_write16(dev->common, QUEUE_SELECT, queue);
	return mmio_read16(dev->common, QUEUE_SIZE);
}

/* Registers of 64 bits are written in halves, as 4.1.3.1 allows. */
static void write64(struct virtio_device *dev, unsigned reg, u64 value)
{
	mmio_write32(dev->common, reg, (u32)value);
	mmio_write32(dev->common, reg + 4, (u32)(value >> 32));
}

static int queue_enable(struct virtio_device *dev, struct virtq *q)
{
	const phys_t ring = virt_to_phys(q->ring);
	u64 at;

	mmio_write16(dev->common, QUEUE_SELECT, q->number);
	mmio_write16(dev->common, QUEUE_SIZE, q->size);
	if (mmio_read16(dev->common, QUEUE_SIZE) != q->size)
		return -EINVAL; /* it would use a ring of another length */
	at = (u64)mmio_read16(dev->common, QUEUE_NOTIFY_OFF) * dev->notify_step;
	if (at + sizeof(u16) > dev->notify_bytes)
		return -EINVAL;
	q->notify_at = (u32)at;
	write64(dev, QUEUE_DESC, ring);
	write64(dev, QUEUE_DRIVER, ring + VIRTQ_AVAILABLE);
	write64(dev, QUEUE_DEVICE, ring + VIRTQ_USED);
	mmio_write16(dev->common, QUEUE_ENABLE, 1);
	return 0;
}

static void notify(struct virtio_device *dev, struct virtq *q)
{
	mmio_write16(dev->notify, q->notify_at, q->number);
}

static u32 config_read(struct virtio_device *dev, u32 at)
{
	return at + sizeof(u32) <= dev->config_bytes ? mmio_read32(dev->config, at) : 0;
}

static void config_write(struct virtio_device *dev, u32 at, u32 value)
{
	if (at + sizeof(u32) <= dev->config_bytes)
		mmio_write32(dev->config, at, value);
}

static const struct virtio_ops pci_ops = {.status = status,
					  .set_status = set_status,
					  .features = features,
					  .accept = accept,
					  .queue_most = queue_most,
					  .queue_enable = queue_enable,
					  .notify = notify,
					  .config_read = config_read,
					  .config_write = config_write};

/* ---- finding ---- */

static u8 read8(const struct pci_place *at, unsigned reg)
{
	return (u8)(pci_read(at, reg) >> reg % 4 * 8);
}

static phys_t piece_start(const struct virtio_pci_piece *piece)
{
	return piece->bar.base + piece->offset;
}

bool virtio_pci_cut(struct virtio_pci_piece *piece, u32 least)
{
	const phys_t start = piece_start(piece);

	piece->bytes = MIN(piece->bytes, (u32)VIRTIO_PCI_PIECE_MOST);
	return piece->bar.in_memory && piece->bar.base != 0 && piece->bytes >= least &&
	       IS_ALIGNED(start, sizeof(u32)) && start >= piece->bar.base;
}

volatile void __iomem *virtio_pci_map(const struct virtio_pci_piece *piece)
{
	return mmio_map(piece_start(piece), piece->bytes);
}

/* The registers that a capability describes, at least `least` bytes; *regs stays NULL if not. */
static void take_piece(const struct pci_place *at, unsigned cap, u32 least,
		       volatile void __iomem **regs, u32 *bytes)
{
	struct virtio_pci_piece piece;

	if (*regs)
		return; /* an earlier capability counts */
	piece = (struct virtio_pci_piece){.bar = pci_bar(at, read8(at, cap + 4)),
					  .offset = pci_read(at, cap + 8),
					  .bytes = pci_read(at, cap + 12)};
	if (virtio_pci_cut(&piece, least))
		*regs = virtio_pci_map(&piece);
	*bytes = piece.bytes;
}

static void take_capability(const struct pci_place *at, unsigned cap, struct virtio_device *dev)
{
	switch (read8(at, cap + 3)) {
	case KIND_COMMON:
		take_piece(at, cap, COMMON_BYTES, &dev->common, &dev->common_bytes);
		break;
	case KIND_NOTIFY:
		if (!dev->notify)
			dev->notify_step = pci_read(at, cap + 16);
		take_piece(at, cap, sizeof(u16), &dev->notify, &dev->notify_bytes);
		break;
	case KIND_CONFIG:
		take_piece(at, cap, sizeof(u32), &dev->config, &dev->config_bytes);
		break;
	default:
		break;
	}
}

static void unmap_piece(volatile void __iomem *regs, u32 bytes)
{
	if (regs)
		mmio_unmap(regs, bytes);
}

static bool take_device(const struct pci_place *at, struct virtio_device *dev)
{
	unsigned cap = read8(at, PCI_CAPABILITIES) & 0xfc;

	for (unsigned i = 0; cap != 0 && i < CAPABILITIES_MOST; i++) {
		if (read8(at, cap) == CAPABILITY_VENDOR)
			take_capability(at, cap, dev);
		cap = read8(at, cap + 1) & 0xfc;
	}
	if (!dev->common || !dev->notify || !dev->config) {
		unmap_piece(dev->common, dev->common_bytes);
		unmap_piece(dev->notify, dev->notify_bytes);
		unmap_piece(dev->config, dev->config_bytes);
		return false;
	}
	pci_command(at, PCI_ENABLE_MEMORY | PCI_ENABLE_MASTER, 0);
	dev->ops = &pci_ops;
	format(dev->name, sizeof(dev->name), "PCI %02x:%02x.%u", at->next >> 8, at->next >> 3 & 31,
	       at->next & 7);
	return true;
}

bool virtio_pci_find(u16 kind, struct virtio_device *dev)
{
	struct pci_place at = PCI_FIRST;

	for (; pci_next(&at); at.next++) {
		const u32 id = pci_read(&at, PCI_ID);

		*dev = (struct virtio_device){0};
		if ((id & 0xffff) == VENDOR &&
		    (id >> 16 == MODERN + (u32)kind ||
		     (kind == BALLOON && id >> 16 == TRANSITIONAL_BALLOON)) &&
		    take_device(&at, dev))
			return true;
	}
	return false;
}
