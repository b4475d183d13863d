/*
 * The neutral form of the loader's information, and its list of ranges: see boot_info.h.
 *
 * Invariant: a byte that any reported range declares unusable is never lost from the list while a
 * RAM range that could cover it stays. When the list is full, RAM gives way.
 */
#include "boot/boot_info.h"

#include "kernel/core/printk.h"

struct boot_info boot_info;

static const char *const protocols[] = {
	[BOOT_MULTIBOOT2] = "multiboot2", [BOOT_PVH] = "PVH start info", [BOOT_HOSTED] = "hosted"};

int boot_info_fault(struct boot_info *info, const char *what, u64 value)
{
	if (info->faults++ < BOOT_FAULTS_SAID)
		pr_warn("%s: %s (0x%llx)", protocols[info->protocol], what, value);
	return -EINVAL;
}

/* Make room in a full list by dropping its last RAM range. False if there is none. */
static bool drop_ram_range(struct boot_info *info)
{
	for (size_t i = info->ranges; i-- > 0;) {
		if (info->range[i].kind != MEM_RAM)
			continue;
		info->range[i] = info->range[--info->ranges];
		return true;
	}
	return false;
}

void boot_info_add_range(struct boot_info *info, phys_t start, u64 size, enum mem_kind kind)
{
	phys_t end = start + size;

	if (end < start) {
		boot_info_fault(info,
				"memory range passes the end of the address space and was cut, at",
				start);
		end = ~0ULL;
	}
	if (start == end)
		return;
	if (info->ranges == BOOT_RANGES_MAX) {
		info->ranges_lost++;
		if (kind == MEM_RAM || !drop_ram_range(info))
			return;
	}
	info->range[info->ranges++] = (struct mem_range){.start = start, .end = end, .kind = kind};
}

enum mem_kind mem_kind_of_e820(u32 type)
{
	return type == 1 ? MEM_RAM : MEM_RESERVED;
}

struct boot_module *boot_info_add_module(struct boot_info *info, phys_t start, u64 size)
{
	struct boot_module *module;

	boot_info_add_range(info, start, size, MEM_LOADER);
	if (info->modules == BOOT_MODULES_MAX || start + size < start)
		return NULL;
	module = &info->module[info->modules++];
	module->start = start;
	module->size = size;
	module->text[0] = '\0';
	return module;
}
