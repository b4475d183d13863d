/* Virtio devices on PCI (virtio 1.2, 4.1 "Virtio Over PCI Bus"). */
#pragma once

#include "kernel/virtio/virtio.h"

/* Find the first modern device of that virtio number. Returns false if there is none. */
bool virtio_pci_find(u16 kind, struct virtio_device *dev);
