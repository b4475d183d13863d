/*
 * The hosted machine's start-up. It takes the place of firmware, loader and architecture, with the
 * memory map of a PC.
 *
 *   0        640K   1M   2M   4M                3G      4G
 *   [ RAM    ]      [RAM |image| RAM ...        ]       [ RAM ... ]
 *
 * With -r it has the map, CPUs and nodes of a machine that a text describes (replay.h).
 */
#include <arch/boot.h>
#include <arch/tlb.h>

#include "arch/x86_64/acpi/acpi_machine.h"
#include "kernel/main.h"
#include "mm/map/memblock.h"
#include "tests/host/host.h"
#include "tests/host/replay.h"

struct host_config host_config = {
	.cpus = 4, .nodes = 1, .ram = MIB(768), .extra = "", .limit_s = 240};

#define LOW_END    KIB(640)
#define HIGH_START MIB(1)
#define HOLE_START GIB(3)
#define HOLE_END   GIB(4)

/* End of RAM; RAM that does not fit below the PCI hole goes above it. */
static phys_t memory_end(void)
{
	const u64 ram = host_config.ram;

	return ram <= HOLE_START ? ram : HOLE_END + (ram - HOLE_START);
}

static void add_ranges(void)
{
	boot_info_add_range(&boot_info, 0, LOW_END, MEM_RAM);
	boot_info_add_range(&boot_info, LOW_END, HIGH_START - LOW_END, MEM_RESERVED);
	boot_info_add_range(&boot_info, HIGH_START, MIN(host_config.ram, HOLE_START) - HIGH_START,
			    MEM_RAM);
	if (host_config.ram > HOLE_START)
		boot_info_add_range(&boot_info, HOLE_END, host_config.ram - HOLE_START, MEM_RAM);
}

/* Fill in boot_info's ranges. Returns the end of RAM. */
static phys_t describe_memory(void)
{
	phys_t end = memory_end();

	if (host_config.replay)
		replay_load(host_config.replay, &boot_info, &end);
	else
		add_ranges();
	return end;
}

void host_machine_init(void)
{
	host_clock_start();
	host_simulate_init();
	host_symbols_init();
	host_memory_init(describe_memory());
	host_signals_init();
	host_fault_init();
	host_cpu_enter(0);
}

void host_machine_run(const char *cmdline)
{
	if (host_config.trace)
		host_trace_open(host_config.trace);
	boot_info.protocol = BOOT_HOSTED;
	boot_info.firmware = FIRMWARE_NONE;
	format(boot_info.loader, sizeof(boot_info.loader), "hosted runner");
	format(boot_info.cmdline, sizeof(boot_info.cmdline), "end.strict=on %s %s",
	       host_config.extra, cmdline);
	boot_info.cmdline_len = strlen(boot_info.cmdline);
	kernel_main(&boot_info);
}

void arch_early_init(void)
{
	host_features_init();
}

void arch_console_init(void)
{
	/* console_write() works from the start */
}

/*
 * As on a PC, the first megabyte belongs to firmware, and the place of an image above it is
 * reserved.
 */
void arch_program_prepare(void)
{
}

void arch_program_construct(void)
{
}

void arch_reserve_memory(void)
{
	memblock_reserve(0, HIGH_START, OWNER_FIRMWARE);
	memblock_reserve(HOST_IMAGE_START, HOST_IMAGE_END, OWNER_IMAGE);
}

void arch_page_tables_init(void)
{
	phys_t root = memblock_alloc(PAGE_SIZE, PAGE_SIZE, 0, NODE_NONE);

	if (!root)
		memblock_too_little("the root page table");
	host_pgtable_set_root(root >> PAGE_SHIFT);
}

void arch_page_tables_load(void)
{
	tlb_flush_local_all();
}

/* The process's own code is the image here; the direct map holds no alias of it. */
bool arch_image_range(phys_t *start, phys_t *end_readonly)
{
	return false;
}

/*
 * Make nodes of equal size with borders on 2 MiB. Holes count towards the size, so the last nodes
 * may have less RAM.
 */
static void share_memory(void)
{
	const phys_t share = ALIGN_UP(memory_end() / host_config.nodes, MIB(2));

	cpu_count = host_config.cpus;
	node_count = host_config.nodes;
	for (node_t n = 0; n < node_count; n++)
		memblock_list_set_node(&memblock_memory, n * share,
				       n + 1 == node_count ? memory_end() : (n + 1) * share, n);
}

void arch_firmware_init(const struct boot_info *boot)
{
	if (host_config.replay)
		replay_firmware(host_config.cpus);
	else
		share_memory();
}

node_t arch_cpu_node(cpu_t cpu)
{
	if (host_config.replay)
		return cpu < cpu_count ? cpu_descs[cpu].node : 0;
	return (node_t)((u64)cpu * node_count / cpu_count);
}

u32 arch_cpu_hardware_id(cpu_t cpu)
{
	return host_config.replay && cpu < cpu_count ? cpu_descs[cpu].apic_id : cpu;
}

void arch_machine_measure(void)
{
}

void arch_machine_page(sheet_line_fn *line)
{
	arch_machine_name(line);
}

void arch_machine_name(sheet_line_fn *line)
{
	char text[REPLAY_LINE_MAX];

	line("cpu", "simulated: %u threads, %s backend", cpu_count, HOST_BACKEND);
	if (!host_config.replay)
		return;
	replay_describe(text, sizeof(text));
	line("replay", "%s; %s", text, host_config.replay);
}
