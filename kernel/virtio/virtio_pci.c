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
#include "kernel/virtio/virtio_regs.h"
#include "mm/mm.h"

enum { VENDOR = 0x1af4, MODERN = 0x1040, TRANSITIONAL_BALLOON = 0x1002, BALLOON = 5 };
enum { CAPABILITY_VENDOR = 9, CAPABILITIES_MOST = 48 };
enum { KIND_COMMON = 1, KIND_NOTIFY = 2, KIND_CONFIG = 4 };

enum { COMMON_BYTES = 56 };

const struct virtio_layout virtio_pci_layout = {.pci = true,
						.features_select = 0,
						.features = 4,
						.accept_select = 8,
						.accept = 12,
						.status = 20,
						.queue_select = 22,
						.queue_most = 24,
						.queue_size = 24,
						.queue_enable = 28,
						.notify_offset = 30,
						.descriptors = 32,
						.available = 40,
						.used = 48};

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
	dev->ops = &virtio_regs_ops;
	dev->layout = &virtio_pci_layout;
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
