/*
 * A virtio device as its driver sees it, on any bus (virtio 1.2, 2 "Basic Facilities of a Virtio
 * Device", 3.1 "Device Initialization"). Only modern devices are driven, and only polled.
 *
 *	virtio_pci.c, virtio_mmio.c   find a device and its registers
 *	virtio_regs.c                 operations on registers
 *	virtio.c                      status and features, and the end of a device that misbehaves
 *	virtq.c                       queues
 *	balloon.c                     a driver; the other is kernel/program/files_out.c
 *
 * Nothing that a device says is trusted. A value is read once and checked before it is used. A
 * device that breaks a rule is named, reset and never used again (virtio_give_up()).
 *
 * One CPU at a time uses a device and its queues.
 */
#pragma once

#include "kernel/lib/types.h"

struct virtio_device;
struct virtio_layout;
struct virtq;

/* The operations of a driver on its device. */
struct virtio_ops {
	u8 (*status)(struct virtio_device *dev);
	void (*set_status)(struct virtio_device *dev, u8 status);
	u64 (*features)(struct virtio_device *dev);
	void (*accept)(struct virtio_device *dev, u64 features);
	/* the most entries of a queue; 0: there is no such queue */
	u32 (*queue_most)(struct virtio_device *dev, u16 queue);
	/* 0, or -EINVAL if the device says nonsense about the queue */
	int (*queue_enable)(struct virtio_device *dev, struct virtq *q);
	void (*notify)(struct virtio_device *dev, struct virtq *q);
	/* a word of the device's own configuration, little-endian, at a multiple of 4 */
	u32 (*config_read)(struct virtio_device *dev, u32 at);
	void (*config_write)(struct virtio_device *dev, u32 at, u32 value);
};

struct virtio_device {
	const struct virtio_ops *ops;
	char name[24];  /* for people: "PCI 00:03.0" */
	bool given_up;  /* virtio_give_up() was called */
	bool was_reset; /* and the device has said that it is reset */
	/* Of virtio_regs.c. */
	const struct virtio_layout *layout;
	volatile void __iomem *common, *notify, *config;
	u32 common_bytes, notify_bytes, notify_step, config_bytes;
};

#define VIRTIO_VERSION_1 (1ULL << 32)

/*
 * Reset the device and agree on features: those of `wanted` that it offers. VIRTIO_VERSION_1 is
 * always agreed on. Returns 0; -ENODEV if it does not reset, is no modern device, does not keep to
 * the agreement, or was given up before. *offered and *agreed receive features.
 */
int virtio_begin(struct virtio_device *dev, u64 wanted, u64 *offered, u64 *agreed);

/* Queues are set up; the device may begin. */
void virtio_ready(struct virtio_device *dev);

/*
 * Name the device and the rule that it broke, and reset it. Returns true if it has said that it is
 * reset: then it uses no memory any more. Otherwise everything that it was shown stays as it is for
 * ever. A second call changes nothing and returns the same.
 */
bool virtio_give_up(struct virtio_device *dev, const char *rule);

/* Reset a device that nobody needs any more. Returns as virtio_give_up(), and prints nothing. */
bool virtio_end(struct virtio_device *dev);
