/*
 * Capabilities of virtio devices on PCI, which say where registers are: those that say nonsense are
 * refused, and of the others no more is mapped than the kernel may ever use.
 */
#include "kernel/virtio/virtio_pci.h"

#include <arch/memory.h>

#include "kernel/virtio/virtio_regs.h"
#include "kernel/virtio/virtq.h"
#include "mm/mm.h"
#include "tests/kernel/test.h"

enum { COMMON = 56 };

/* Registers that every PC has. They are mapped here, and never read. */
#define REGISTERS 0xfec00000ULL

static struct virtio_pci_piece piece_at(u64 base, u32 offset, u32 bytes)
{
	return (struct virtio_pci_piece){
		.bar = {.in_memory = true, .base = base}, .offset = offset, .bytes = bytes};
}

static void expect_nonsense(struct virtio_pci_piece piece)
{
	EXPECT(!virtio_pci_cut(&piece, COMMON));
}

static void expect_not_mapped(struct virtio_pci_piece piece)
{
	EXPECT(virtio_pci_cut(&piece, COMMON));
	EXPECT(!virtio_pci_map(&piece));
}

TEST(virtio_pci, capabilities_that_say_nonsense_are_refused)
{
	struct virtio_pci_piece ports = piece_at(REGISTERS, 0, COMMON);

	ports.bar.in_memory = false;
	expect_nonsense(ports);
	expect_nonsense(piece_at(0, 0x1000, COMMON));         /* no BAR */
	expect_nonsense(piece_at(REGISTERS, 0, 0));           /* no registers */
	expect_nonsense(piece_at(REGISTERS, 0, COMMON - 1));  /* too few */
	expect_nonsense(piece_at(REGISTERS, 2, COMMON));      /* between two of them */
	expect_nonsense(piece_at(~0xfffULL, 0x1000, COMMON)); /* around the end of numbers */
	expect_not_mapped(piece_at(~0xfffULL, 0, COMMON));    /* where nothing can be */
	expect_not_mapped(piece_at(1ULL << 60, 0xfffffffc, ~0U));
}

TEST(virtio_pci, registers_in_ram_are_refused)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	struct virtio_pci_piece in_ram;

	EXPECT(page);
	if (!page)
		return;
	said_begin();
	expect_not_mapped(piece_at(page_pfn(page) << PAGE_SHIFT, 0, COMMON));
	in_ram = piece_at(PAGE_SIZE, (u32)(page_pfn(page) << PAGE_SHIFT) - PAGE_SIZE, COMMON);
	if (page_pfn(page) << PAGE_SHIFT < GIB(4))
		expect_not_mapped(in_ram); /* by its offset */
	said_end();
	EXPECT(said_says("mmio_map() of * is refused: frame * is RAM"));
	page_free(page);
}

TEST(virtio_pci, of_a_long_piece_a_part_is_mapped)
{
	struct virtio_pci_piece piece = piece_at(REGISTERS, 0x1000, ~0U);

	EXPECT(virtio_pci_cut(&piece, COMMON));
	EXPECT_EQ(piece.bytes, VIRTIO_PCI_PIECE_MOST);
	EXPECT_EQ(piece.offset, 0x1000);
}

/* The registers are ordinary memory, so the device answers with what was written there. */
TEST(virtio_pci, a_queue_is_enabled_if_its_device_says_nothing_impossible)
{
	enum { STATUS = 20, SELECT = 22, SIZE = 24, ENABLE = 28, NOTIFY = 30, RINGS = 32 };
	_Alignas(u64) u16 common[COMMON / sizeof(u16)] = {[NOTIFY / 2] = 3};
	struct page *ring = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	struct virtio_device dev = {.layout = &virtio_pci_layout,
				    .common = (volatile void __iomem *)common,
				    .notify_step = 4,
				    .notify_bytes = 13};
	struct virtq q = {.number = 5, .size = 64};
	u64 rings[3];

	REQUIRE(ring);
	q.ring = page_address(ring);
	EXPECT_EQ(virtio_regs_ops.queue_enable(&dev, &q), -EINVAL); /* told beyond its registers */
	EXPECT_EQ(common[ENABLE / 2], 0);
	dev.notify_bytes = 14;
	EXPECT_EQ(virtio_regs_ops.queue_enable(&dev, &q), 0);
	EXPECT_EQ(q.notify_at, 12);
	EXPECT_EQ(common[SELECT / 2], 5);
	EXPECT_EQ(common[SIZE / 2], 64);
	EXPECT_EQ(virtio_regs_ops.queue_most(&dev, 5), 64);
	EXPECT_EQ(common[ENABLE / 2], 1);
	memcpy(rings, &common[RINGS / 2], sizeof(rings));
	EXPECT_EQ(rings[0], virt_to_phys(q.ring));
	EXPECT_EQ(rings[1], rings[0] + VIRTQ_AVAILABLE);
	EXPECT_EQ(rings[2], rings[0] + VIRTQ_USED);
	virtio_regs_ops.set_status(&dev, 0x8f);
	EXPECT_EQ(common[STATUS / 2], 0x8f);
	virtio_regs_ops.accept(&dev, 3ULL << 32 | 7);
	EXPECT_EQ(common[8 / 2], 1); /* the upper half */
	EXPECT_EQ(common[12 / 2], 3);
	common[4 / 2] = 9; /* both halves */
	EXPECT_EQ(virtio_regs_ops.features(&dev), 9ULL << 32 | 9);
	EXPECT_EQ(virtio_regs_ops.queue_enable(&dev, &q), -EINVAL); /* in use already */
	page_free(ring);
}
