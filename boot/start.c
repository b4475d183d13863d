/*
 * The first C code of the boot CPU: turn the loader's data into boot_info and enter the kernel.
 * Runs on the boot page tables, interrupts off, boot stack, GS base set (boot/entry.S).
 *
 * Reach: physical memory below EARLY_PHYS_LIMIT, through the direct map. A block beyond that limit
 * is refused.
 */
#include <arch/boot.h>
#include <arch/memory.h>

#include "boot/boot_info.h"
#include "kernel/core/printk.h"
#include "kernel/core/verdict.h"
#include "kernel/main.h"

#define MULTIBOOT2_BOOT_MAGIC 0x36d76289
/* No loader writes more; a larger size is wrong and is cut to this. */
#define MULTIBOOT2_INFO_MAX MIB(16)

__noreturn void boot_start(u32 protocol, u32 magic, phys_t block);

/* There is nothing to boot from: report the reason on any console, and end the run. */
static __noreturn void boot_refuse(const char *why, u64 value)
{
	print("ASHLAR-BEGIN\n");
	arch_early_init();
	arch_console_init();
	pr_err("cannot boot: %s (%llx)", why, value);
	verdict_end_with(VERDICT_FAIL);
}

static const void *map_early(phys_t addr, size_t len, void *ctx)
{
	if (addr == 0 || addr >= EARLY_PHYS_LIMIT || len > EARLY_PHYS_LIMIT - addr)
		return NULL;
	return phys_to_virt(addr);
}

static void start_multiboot2(phys_t block)
{
	const u32 *header = map_early(block, 8, NULL);
	u64 len;

	if (!header || !IS_ALIGNED(block, 8))
		boot_refuse("multiboot2 information block at an impossible address", block);
	len = MIN((u64)*header, MIN(MULTIBOOT2_INFO_MAX, EARLY_PHYS_LIMIT - block));
	if (multiboot2_parse(header, len, &boot_info) < 0)
		boot_refuse("no usable multiboot2 information block", block);
	boot_info_add_range(&boot_info, block, len, MEM_LOADER);
}

void boot_start(u32 protocol, u32 magic, phys_t block)
{
	if (protocol == BOOT_PVH) {
		if (pvh_parse(block, map_early, NULL, &boot_info) < 0)
			boot_refuse("no usable PVH start info block", block);
	} else if (magic == MULTIBOOT2_BOOT_MAGIC) {
		start_multiboot2(block);
	} else {
		boot_refuse("wrong boot magic: loaded by something that speaks neither multiboot2 "
			    "nor PVH",
			    magic);
	}
	if (boot_info.faults > BOOT_FAULTS_SAID)
		pr_warn("boot information has %u faults; only the first %d are named",
			boot_info.faults, BOOT_FAULTS_SAID);
	kernel_main(&boot_info);
}
