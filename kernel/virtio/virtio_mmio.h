/*
 * Virtio devices at addresses that the command line names, as for Linux (virtio 1.2, 4.2 "Virtio
 * Over MMIO"):
 *
 *	virtio_mmio.device=512@0xfeb00000:5     bytes @ address : interrupt
 *
 * QEMU's microvm adds such words itself if it has no ACPI. Otherwise its devices stand in the DSDT,
 * whose language the kernel does not interpret.
 */
#pragma once

#include "kernel/virtio/virtio.h"

struct virtio_mmio_place {
	phys_t start;
	u64 bytes, interrupt; /* interrupt: not used, because devices are polled */
};

/*
 * Parse the value of such a word. The interrupt must be a number. Returns 0; -EINVAL if it is
 * malformed; -ERANGE if registers cannot be there.
 */
int virtio_mmio_parse(const char *text, struct virtio_mmio_place *place);

/* Find the first modern device of that virtio number. Returns false if there is none. */
bool virtio_mmio_find(u16 kind, struct virtio_device *dev);
