/*
 * The registers of a virtio device in memory. PCI and MMIO have the same ones, in other places and
 * widths, so one set of operations serves both.
 */
#pragma once

#include "kernel/virtio/virtio.h"

/* Offsets from virtio_device.common. Fields of 64 bits are written in halves (4.1.3.1). */
struct virtio_layout {
	/*
	 * PCI: the status has 8 bits and a queue's fields have 16. A size can be read back, and
	 * notify_offset, times notify_step, says where a queue is notified. MMIO: all have 32 bits.
	 */
	bool pci;
	u8 features_select, features, accept_select, accept, status;
	u8 queue_select, queue_most, queue_size, queue_enable, notify_offset;
	u8 descriptors, available, used;
};

extern const struct virtio_ops virtio_regs_ops;
extern const struct virtio_layout virtio_pci_layout;  /* virtio 1.2, 4.1.4.3 */
extern const struct virtio_layout virtio_mmio_layout; /* 4.2.2 */
