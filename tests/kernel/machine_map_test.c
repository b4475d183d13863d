/*
 * This machine's own map, nodes and zones against the firmware's words: nothing here is invented,
 * so a replayed machine (tests/host/replay.h) is judged by these cases as the one at hand is.
 */
#include <arch/boot.h>

#include "boot/boot_info.h"
#include "kernel/console/command.h"
#include "mm/debug/account.h"
#include "mm/memmap/zone.h"
#include "tests/kernel/test.h"

static bool is_general(enum mem_kind kind)
{
	return kind == MEM_RAM || kind == MEM_LOADER;
}

/* A frame is RAM if some range of RAM has all of it, and no other range any of it. */
static bool firmware_calls_it_ram(phys_t frame)
{
	bool ram = false;

	for (size_t i = 0; i < boot_info.ranges; i++) {
		const struct mem_range *range = &boot_info.range[i];

		if (is_general(range->kind))
			ram |= range->start <= frame && frame + PAGE_SIZE <= range->end;
		else if (range->start < frame + PAGE_SIZE && frame < range->end)
			return false;
	}
	return ram && frame < PHYS_LIMIT;
}

static const struct memblock_range *memory_at(phys_t phys)
{
	for (size_t i = 0; i < memblock_memory.count; i++)
		if (memblock_memory.range[i].start <= phys && phys < memblock_memory.range[i].end)
			return &memblock_memory.range[i];
	return NULL;
}

static void expect_as_firmware_says(phys_t frame)
{
	if (firmware_calls_it_ram(frame) != (memory_at(frame) != NULL))
		test_fail(__FILE__, __LINE__, "frame %llx: RAM for firmware %d, for the kernel %d",
			  frame, firmware_calls_it_ram(frame), memory_at(frame) != NULL);
}

/* The frame that holds a border, and those beside it. */
static void expect_around(phys_t border)
{
	const phys_t frame = ALIGN_DOWN(border, PAGE_SIZE);

	expect_as_firmware_says(frame);
	expect_as_firmware_says(frame + PAGE_SIZE);
	if (frame >= PAGE_SIZE)
		expect_as_firmware_says(frame - PAGE_SIZE);
}

TEST(mm_machine, ram_is_what_firmware_calls_ram)
{
	for (size_t i = 0; i < boot_info.ranges; i++) {
		expect_around(boot_info.range[i].start);
		expect_around(boot_info.range[i].end);
	}
}

TEST(mm_machine, zones_hold_the_ram_of_their_node)
{
	u64 ram = 0, of_nodes = 0, of_zones = 0;

	for (size_t i = 0; i < memblock_memory.count; i++)
		ram += memblock_memory.range[i].end - memblock_memory.range[i].start;
	for (node_t n = 0; n < mm_kernel.nodes; n++)
		of_nodes += memblock_node_bytes(n);
	for (u8 z = 0; z < mm_kernel.zones; z++)
		of_zones += mm_kernel.zone[z].ram << PAGE_SHIFT;
	EXPECT_EQ(of_nodes, ram);
	EXPECT_EQ(of_zones, ram);
}

/* PAGE_NODE asks for one node and no other. Nodes below 64 MiB may have nothing to give. */
static void expect_page_of(node_t node, unsigned order)
{
	struct page *page = page_alloc(order, USE_MOVABLE, PAGE_NODE, node);

	if (!page) {
		EXPECT(memblock_node_bytes(node) < MIB(64));
		return;
	}
	EXPECT(memory_at(page_to_pfn(page) << PAGE_SHIFT));
	if (memory_at(page_to_pfn(page) << PAGE_SHIFT))
		EXPECT_EQ(memory_at(page_to_pfn(page) << PAGE_SHIFT)->node, node);
	page_free(page);
}

TEST(mm_machine, each_node_gives_its_own_memory)
{
	for (node_t n = 0; n < mm_kernel.nodes; n++) {
		expect_page_of(n, 0);
		expect_page_of(n, BLOCK_ORDER);
		/* a very small one is not cut further for metadata memory of its own */
		EXPECT(memblock_node_bytes(n) >= MIB(16) || mm_kernel.node[n].meta_node != n);
	}
}

/* Each node looks for memory at itself first, and then from near to far. */
TEST(mm_machine, other_nodes_are_asked_by_distance)
{
	for (node_t n = 0; n < mm_kernel.nodes; n++) {
		const struct node *node = &mm_kernel.node[n];

		EXPECT_EQ(arch_node_distance(n, n), 10);
		EXPECT_EQ(node->fallback[0], n);
		for (node_t i = 1; i < mm_kernel.nodes; i++) {
			EXPECT(arch_node_distance(n, node->fallback[i]) >= 10);
			EXPECT(i == 1 || arch_node_distance(n, node->fallback[i - 1]) <=
						 arch_node_distance(n, node->fallback[i]));
		}
	}
}

TEST(mm_machine, every_cpu_is_on_a_node)
{
	for (cpu_t cpu = 0; cpu < cpu_count; cpu++) {
		EXPECT(arch_cpu_node(cpu) < mm_kernel.nodes);
		for (cpu_t other = 0; other < cpu; other++)
			EXPECT(arch_cpu_hardware_id(cpu) != arch_cpu_hardware_id(other));
	}
}

/*
 * tests/qemu/truth.py compares what is printed with the machine's description, because a kernel
 * that lost a CPU, a node or a range agrees with its own tables.
 */
TEST(mm_machine, it_says_what_it_found)
{
	static const char commands[] = "cpus; mem nodes";

	EXPECT_EQ(commands_run(commands, sizeof(commands) - 1, NULL), 0);
}

static unsigned lines;

static void count_line(const char *name, const char *fmt, ...)
{
	lines++;
}

/* As at the end of a run. tests/qemu/test_metal.py asks how long it takes. */
TEST(mm_machine, its_page_is_short)
{
	const u64 start = clock_ns();

	lines = 0;
	arch_machine_measure();
	arch_machine_page(count_line);
	print("# the machine page took %llu ns\n", clock_ns() - start);
	EXPECT(lines <= 8);
}

TEST(mm_machine, every_frame_is_accounted_for)
{
	EXPECT(account_machine());
}
