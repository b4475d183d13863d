/*
 * Status and features of virtio devices: see virtio.h.
 */
#include "kernel/virtio/virtio.h"

#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/core/wait.h"

enum {
	STATUS_ACKNOWLEDGE = 1,
	STATUS_DRIVER = 2,
	STATUS_DRIVER_OK = 4,
	STATUS_FEATURES_OK = 8,
};
enum { RESET_PERIODS = 2 };

/* Returns false if the device does not say in time that it is reset. */
static bool reset(struct virtio_device *dev)
{
	struct wait wait = wait_begin(WAIT_ANSWER, "a virtio device to reset");

	dev->ops->set_status(dev, 0);
	while (dev->ops->status(dev) != 0) {
		if (wait.late >= RESET_PERIODS)
			return false;
		wait_spin(&wait, CPU_NONE);
	}
	return true;
}

int virtio_begin(struct virtio_device *dev, u64 wanted, u64 *offered, u64 *agreed)
{
	if (dev->given_up || !reset(dev)) {
		virtio_give_up(dev, "it does not reset");
		return -ENODEV;
	}
	dev->ops->set_status(dev, STATUS_ACKNOWLEDGE | STATUS_DRIVER);
	*offered = dev->ops->features(dev);
	if (!(*offered & VIRTIO_VERSION_1)) {
		virtio_give_up(dev, "it is older than virtio 1");
		return -ENODEV;
	}
	*agreed = *offered & (wanted | VIRTIO_VERSION_1);
	dev->ops->accept(dev, *agreed);
	dev->ops->set_status(dev, STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK);
	if (!(dev->ops->status(dev) & STATUS_FEATURES_OK)) {
		virtio_give_up(dev, "it refuses features that it offers");
		return -ENODEV;
	}
	return 0;
}

void virtio_ready(struct virtio_device *dev)
{
	dev->ops->set_status(dev, STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK |
					  STATUS_DRIVER_OK);
}

bool virtio_end(struct virtio_device *dev)
{
	if (!dev->was_reset)
		dev->was_reset = reset(dev);
	dev->given_up = true;
	return dev->was_reset;
}

bool virtio_give_up(struct virtio_device *dev, const char *rule)
{
	if (!dev->given_up) {
		virtio_end(dev);
		pr_warn("virtio: %s: %s; the device is %s", dev->name, rule,
			dev->was_reset
				? "reset and not used any more"
				: "not used any more, but does not reset: the memory that it "
				  "was shown is kept from everybody");
	}
	return dev->was_reset;
}
