/* Words of the command line that name registers of virtio devices. */
#include "kernel/virtio/virtio_mmio.h"

#include <arch/memory.h>

#include "kernel/virtio/virtio_regs.h"
#include "kernel/virtio/virtq.h"
#include "mm/mm.h"
#include "tests/kernel/test.h"

static void expect_error(const char *text, int err)
{
	struct virtio_mmio_place place;

	EXPECT_EQ(virtio_mmio_parse(text, &place), err);
}

TEST(virtio_mmio, words_name_registers)
{
	struct virtio_mmio_place place;

	EXPECT_EQ(virtio_mmio_parse("512@0xfeb00e00:12", &place), 0);
	EXPECT_EQ(place.start, 0xfeb00e00);
	EXPECT_EQ(place.bytes, 512);
	EXPECT_EQ(virtio_mmio_parse("4K@0x1000:0", &place), 0);
	EXPECT_EQ(place.bytes, 4096);
}

TEST(virtio_mmio, words_that_name_none_are_refused)
{
	expect_error("", -EINVAL);
	expect_error("512", -EINVAL);
	expect_error("512@", -EINVAL);
	expect_error("512@0xfeb00000", -EINVAL);
	expect_error("512@0xfeb00000:", -EINVAL);
	expect_error("512@0xfeb00000:5x", -EINVAL);
	expect_error("512:0xfeb00000@5", -EINVAL);
	expect_error("512@0:5", -ERANGE);
	expect_error("512@0xfeb00002:5", -ERANGE);
	expect_error("260@0xfeb00000:5", -ERANGE); /* not all of the configuration */
	expect_error("264@0xfeb00000:5", 0);
	expect_error("1M@0xfeb00000:5", -ERANGE);
}

/* The registers are ordinary memory, so they say what was written there. */
TEST(virtio_mmio, a_device_is_told_of_its_queue)
{
	enum { SELECT = 0x30, SIZE = 0x38, READY = 0x44, NOTIFY = 0x50, DESCRIPTORS = 0x80 };
	struct page *ring = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	u32 regs[64] = {0};
	struct virtio_device dev = {.layout = &virtio_mmio_layout,
				    .common = (volatile void __iomem *)regs,
				    .notify = (volatile void __iomem *)&regs[NOTIFY / 4],
				    .notify_bytes = sizeof(u32)};
	struct virtq q = {.number = 5, .size = 64};

	REQUIRE(ring);
	q.ring = page_address(ring);
	EXPECT_EQ(virtio_regs_ops.queue_enable(&dev, &q), 0);
	EXPECT(regs[SELECT / 4] == 5 && regs[SIZE / 4] == 64 && regs[READY / 4] == 1);
	EXPECT_EQ(regs[DESCRIPTORS / 4], (u32)virt_to_phys(q.ring));
	virtio_regs_ops.notify(&dev, &q);
	EXPECT_EQ(regs[NOTIFY / 4], 5);
	page_free(ring);
}
