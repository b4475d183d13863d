/* Registers of virtio devices: see virtio_regs.h. */
#include "kernel/virtio/virtio_regs.h"

#include <arch/memory.h>
#include <arch/mmio.h>

#include "kernel/virtio/virtq.h"

static u8 status(struct virtio_device *dev)
{
	const unsigned reg = dev->layout->status;

	return dev->layout->pci ? mmio_read8(dev->common, reg) : (u8)mmio_read32(dev->common, reg);
}

static void set_status(struct virtio_device *dev, u8 value)
{
	if (dev->layout->pci)
		mmio_write8(dev->common, dev->layout->status, value);
	else
		mmio_write32(dev->common, dev->layout->status, value);
}

static u64 features(struct virtio_device *dev)
{
	u64 all;

	mmio_write32(dev->common, dev->layout->features_select, 1);
	all = (u64)mmio_read32(dev->common, dev->layout->features) << 32;
	mmio_write32(dev->common, dev->layout->features_select, 0);
	return all | mmio_read32(dev->common, dev->layout->features);
}

static void accept(struct virtio_device *dev, u64 agreed)
{
	for (u32 half = 0; half < 2; half++) {
		mmio_write32(dev->common, dev->layout->accept_select, half);
		mmio_write32(dev->common, dev->layout->accept, (u32)(agreed >> 32 * half));
	}
}

/* A field of a queue. */
static u32 get(const struct virtio_device *dev, unsigned reg)
{
	return dev->layout->pci ? mmio_read16(dev->common, reg) : mmio_read32(dev->common, reg);
}

static void put(const struct virtio_device *dev, volatile void __iomem *regs, unsigned reg,
		u16 value)
{
	if (dev->layout->pci)
		mmio_write16(regs, reg, value);
	else
		mmio_write32(regs, reg, value);
}

static u32 queue_most(struct virtio_device *dev, u16 queue)
{
	put(dev, dev->common, dev->layout->queue_select, queue);
	return get(dev, dev->layout->queue_most);
}

static void write64(struct virtio_device *dev, unsigned reg, u64 value)
{
	mmio_write32(dev->common, reg, (u32)value);
	mmio_write32(dev->common, reg + 4, (u32)(value >> 32));
}

static int queue_enable(struct virtio_device *dev, struct virtq *q)
{
	const struct virtio_layout *at = dev->layout;
	const phys_t ring = virt_to_phys(q->ring);
	u64 notify_at = 0;

	put(dev, dev->common, at->queue_select, q->number);
	if (get(dev, at->queue_enable) != 0)
		return -EINVAL; /* it was reset, so no queue is in use */
	put(dev, dev->common, at->queue_size, q->size);
	if (at->pci && get(dev, at->queue_size) != q->size)
		return -EINVAL; /* it would use a ring of another length */
	if (at->pci)
		notify_at = (u64)get(dev, at->notify_offset) * dev->notify_step;
	if (notify_at + sizeof(u16) > dev->notify_bytes)
		return -EINVAL;
	q->notify_at = (u32)notify_at;
	write64(dev, at->descriptors, ring);
	write64(dev, at->available, ring + VIRTQ_AVAILABLE);
	write64(dev, at->used, ring + VIRTQ_USED);
	put(dev, dev->common, at->queue_enable, 1);
	return 0;
}

static void notify(struct virtio_device *dev, struct virtq *q)
{
	put(dev, dev->notify, q->notify_at, q->number);
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

const struct virtio_ops virtio_regs_ops = {.status = status,
					   .set_status = set_status,
					   .features = features,
					   .accept = accept,
					   .queue_most = queue_most,
					   .queue_enable = queue_enable,
					   .notify = notify,
					   .config_read = config_read,
					   .config_write = config_write};
