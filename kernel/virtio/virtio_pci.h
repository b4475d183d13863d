/* Virtio devices on PCI (virtio 1.2, 4.1 "Virtio Over PCI Bus"). */
#pragma once

#include <arch/pci.h>

#include "kernel/virtio/virtio.h"

/* Where a capability says that registers are, and how many bytes of them are mapped at most. */
struct virtio_pci_piece {
	struct pci_bar bar;
	u32 offset, bytes;
};
enum { VIRTIO_PCI_PIECE_MOST = 1 << 20 };

/*
 * Cut the piece down to VIRTIO_PCI_PIECE_MOST bytes. Returns false if the capability says nonsense:
 * no BAR, a BAR of ports, no room for `least` bytes, or an address that is not aligned to 4 bytes
 * or wraps around.
 */
bool virtio_pci_cut(struct virtio_pci_piece *piece, u32 least);

/* Map a piece that was cut. NULL if no machine has the address, or it is RAM. */
volatile void __iomem *virtio_pci_map(const struct virtio_pci_piece *piece);

/* Find the first modern device of that virtio number. Returns false if there is none. */
bool virtio_pci_find(u16 kind, struct virtio_device *dev);
