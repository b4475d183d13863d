/* Words of the command line that name registers of virtio devices. */
#include "kernel/virtio/virtio_mmio.h"

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
