/* The machine page; see machine.h. */
#include "tests/bench/machine.h"

#include <arch/boot.h>

#include "boot/boot_info.h"
#include "kernel/console/command.h"
#include "kernel/core/boot_stages.h"
#include "kernel/run/machine_page.h"
#include "mm/hugetlb/pool.h"
#include "mm/zone/watermark.h"
#include "tests/bench/insns.h"
#include "tests/bench/measure.h"
#include "tests/bench/memmap_bench.h"

enum { ZONES_SHOWN = 8 };

static const char *firmware_name(void)
{
	if (boot_info.protocol == BOOT_PVH)
		return "pvh";
	return boot_info.firmware == FIRMWARE_UEFI ? "uefi" : "bios";
}

static void print_owners(void)
{
	struct mm_usage u;

	mm_usage(&u);
	print("  pages    %llu of 4K = free %llu + unopened %llu + per-cpu %llu + pool %llu + in "
	      "use %llu\n"
	      "           + meta %llu + gated %llu + transit %llu + bad %llu + reserved %llu\n",
	      u.ram, u.free, u.unopened, u.per_cpu, u.pool_free, u.in_use, u.meta, u.gated,
	      u.transit, u.bad, u.reserved);
}

static void print_clear(void)
{
	const struct clear_how how = clear_how_selected();
	char extent[16];

	extent_name(how.extent, extent, sizeof(extent));
	print("  clear    %s: %s below 256 KiB, %s up to 32 MiB, %s beyond", how.mode->name,
	      how.insn[CLEAR_SMALL]->name, how.insn[CLEAR_LARGE]->name,
	      how.insn[CLEAR_GIANT]->name);
	if (how.extent != CLEAR_EXTENT)
		print("; extents: %s", extent);
	print("\n");
}

/* The time to ready, and the stages that it consists of, on one line. */
static void print_ready(void)
{
	const struct boot_stage *stages = boot_stages.stage;
	const u64 ready = boot_stages.ns;

	print("  ready    %llu.%03llu ms after entry:", ready / NS_PER_MS,
	      ready / NS_PER_US % 1000);
	for (size_t i = 0; i < boot_stages.ended; i++)
		print("%s %s %llu.%03llu", i ? " +" : "", stages[i].name, stages[i].ns / NS_PER_MS,
		      stages[i].ns / NS_PER_US % 1000);
	print("\n\n");
}

/* The keys of the stages in the BENCH boot record. */
static void print_stage_keys(void)
{
	for (size_t i = 0; i < boot_stages.ended; i++)
		print(" %s_ns=%llu", boot_stages.stage[i].name, boot_stages.stage[i].ns);
}

void machine_print(void)
{
	const u64 ram = memblock_list_bytes(&memblock_memory, 0, ~0ULL, OWNER_ANY);
	const u64 span = memblock_memory.range[memblock_memory.count - 1].end;
	const struct memmap_boot made = memmap_boot;
	const struct memmap_opened slowest = memmap_bench_slowest(made.opened);
	struct mm_usage usage;

	mm_usage(&usage);
	print("\nAshlar: a memory subsystem and the least kernel around it\n\n");
	print("  boot     %s, loader %s\n", firmware_name(),
	      boot_info.loader[0] ? boot_info.loader : "unnamed");
	print("  cpus     %u found, %u started, %u node%s\n", cpu_count,
	      cpumask_weight(&cpus_online), node_count, node_count == 1 ? "" : "s");
	arch_machine_name(sheet_line);
	print("  memory   %llu MiB RAM, span %llu MiB, holes %llu MiB, memmap in use %llu KiB\n",
	      ram >> 20, span >> 20, (span - ram) >> 20, usage.memmap_bytes >> 10);
	print("  hvo      %s\n", hvo_mode_selected()->name);
	print_clear();
	print_owners();
	zones_print(&mm_kernel, ZONES_SHOWN);
	print_ready();
	print("BENCH boot firmware=%s cpus_found=%u cpus_started=%u nodes=%u ram_bytes=%llu "
	      "memmap=%s memmap_asked=%u%s hvo=%s pool_pages=%llu pool_1g_pages=%llu "
	      "pool_bare=%llu ns_to_ready=%llu memmap_bytes=%llu memmap_threads=%u "
	      "memmap_pages=%llu memmap_ns=%llu pool_ns=%llu pool_1g_ns=%llu",
	      firmware_name(), cpu_count, cpumask_weight(&cpus_online), node_count, ram,
	      made.way->name, made.asked.value, made.asked.percent ? "%" : "",
	      hvo_mode_selected()->name, pool_2m.boot, pool_1g.boot,
	      pool_2m.boot_bare + pool_1g.boot_bare, boot_stages.ns, usage.memmap_bytes,
	      slowest.threads, slowest.sections * SECTION_FRAMES, slowest.ns, pool_2m.boot_ns,
	      pool_1g.boot_ns);
	print_stage_keys();
	print("\n");
}

static int cmd_machine(const struct words *words)
{
	machine_print();
	return 0;
}

COMMAND(machine, .help = "the machine: firmware, CPUs, memory, what is in use", .run = cmd_machine);
