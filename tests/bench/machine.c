/*
 * The machine page: see machine.h.
 */
#include "tests/bench/machine.h"

#include <arch/boot.h>

#include "boot/boot_info.h"
#include "kernel/command.h"
#include "kernel/main.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "mm/account.h"
#include "mm/clear.h"
#include "mm/directmap.h"
#include "mm/hvo.h"
#include "mm/memblock.h"
#include "mm/memmap_open.h"
#include "mm/mm.h"
#include "mm/pool.h"
#include "mm/watermark.h"

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
	print("  pages    %llu of 4K = free %llu + unopened %llu + per-cpu %llu + pool %llu + in use %llu\n"
	      "           + meta %llu + gated %llu + transit %llu + bad %llu + reserved %llu\n",
	      (unsigned long long)u.ram, (unsigned long long)u.free, (unsigned long long)u.unopened,
	      (unsigned long long)u.per_cpu, (unsigned long long)u.pool_free, (unsigned long long)u.in_use,
	      (unsigned long long)u.meta, (unsigned long long)u.gated, (unsigned long long)u.transit,
	      (unsigned long long)u.bad, (unsigned long long)u.reserved);
}

static void print_clear(void)
{
	const struct clear_how how = clear_how_selected();
	char extent[16];

	clear_extent_name(how.extent, extent, sizeof(extent));
	print("  clear    %s: %s below 256 KiB, %s up to 32 MiB, %s beyond", how.mode->name, how.insn[CLEAR_SMALL]->name,
	      how.insn[CLEAR_LARGE]->name, how.insn[CLEAR_GIANT]->name);
	if (how.extent != CLEAR_EXTENT)
		print("; extents: %s", extent);
	print("\n");
}

u64 machine_ready_ns(void)
{
	return kernel_ready_ns();
}

void machine_print(void)
{
	const struct memblock_totals totals = memblock_totals();
	const struct memmap_boot made = memmap_boot();
	const u64 ready = machine_ready_ns();
	struct mm_usage usage;

	mm_usage(&usage);
	print("\nAshlar: a memory subsystem and the least kernel around it\n\n");
	print("  boot     %s, loader %s\n", firmware_name(), boot_info.loader[0] ? boot_info.loader : "unnamed");
	print("  cpus     %u found, %u started, %u node%s\n", cpu_count, cpumask_weight(&cpus_online), node_count,
	      node_count == 1 ? "" : "s");
	arch_machine_print();
	print("  memory   %llu MiB RAM, span %llu MiB, holes %llu MiB, memmap in use %llu KiB\n",
	      (unsigned long long)(totals.ram_bytes >> 20), (unsigned long long)(totals.span_bytes >> 20),
	      (unsigned long long)(totals.hole_bytes >> 20), (unsigned long long)(usage.memmap_bytes >> 10));
	print("  map      direct map of %llu x 1G, %llu x 2M, %llu x 4K pages\n",
	      (unsigned long long)direct_map_counts.leaf[PT_PUD], (unsigned long long)direct_map_counts.leaf[PT_PMD],
	      (unsigned long long)direct_map_counts.leaf[PT_PAGE]);
	print("  hvo      %s\n", hvo_mode_selected()->name);
	print_clear();
	print_owners();
	zones_print(&mm_kernel, ZONES_SHOWN);
	print("  ready    %llu.%03llu ms after entry\n\n", (unsigned long long)(ready / NS_PER_MS),
	      (unsigned long long)(ready / NS_PER_US % 1000));
	print("BENCH boot firmware=%s cpus_found=%u cpus_started=%u nodes=%u ram_bytes=%llu ns_to_ready=%llu"
	      " memmap_bytes=%llu memmap=%s memmap_asked=%u%s memmap_threads=%u memmap_pages=%llu memmap_ns=%llu"
	      " hvo=%s pool_pages=%llu pool_ns=%llu\n",
	      firmware_name(), cpu_count, cpumask_weight(&cpus_online), node_count,
	      (unsigned long long)totals.ram_bytes, (unsigned long long)ready, (unsigned long long)usage.memmap_bytes,
	      made.way->name, made.asked.value, made.asked.percent ? "%" : "", made.slowest.threads,
	      (unsigned long long)made.slowest.sections * SECTION_FRAMES, (unsigned long long)made.slowest.ns, hvo_mode_selected()->name,
	      (unsigned long long)pool_2m.boot, (unsigned long long)pool_2m.boot_ns);
}

static int cmd_machine(const struct words *words)
{
	(void)words;
	machine_print();
	return 0;
}

COMMAND(machine, .help = "the machine: firmware, CPUs, memory, what is in use", .run = cmd_machine);
