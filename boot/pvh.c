/*
 * PVH start info: the form in which QEMU -kernel, Firecracker and cloud-hypervisor start a kernel
 * (Xen, "x86/HVM direct boot ABI" and public/arch-x86/hvm/start_info.h).
 *
 * The block is a tree of physical addresses. Each is reached through the caller's map function,
 * which refuses addresses out of reach. Everything is copied out of the memory that the map
 * function returns; nothing read here is trusted.
 */
#include "boot/boot_info.h"

#include "kernel/lib/string.h"

#define PVH_MAGIC 0x336ec578

struct start_info {
	u32 magic, version, flags, modules;
	u64 module_list, cmdline, rsdp;
	u64 memory_map; /* from here on: version 1 */
	u32 memory_map_entries, reserved;
};

struct start_info_module {
	u64 addr, size, cmdline, reserved;
};

struct start_info_range {
	u64 addr, size;
	u32 type, reserved;
};

/* More than any machine has; a longer list is wrong and is cut. */
enum {
	PVH_MODULES_MAX = 64,
	PVH_RANGES_MAX = 65536,
	START_INFO_V0_SIZE = offsetof(struct start_info, memory_map)
};

struct reader {
	pvh_map_fn map;
	void *ctx;
	struct boot_info *info;
};

static bool read_bytes(const struct reader *r, phys_t addr, void *dst, size_t len)
{
	const void *src;

	if (addr + len < addr)
		return false;
	src = r->map(addr, len, r->ctx);
	if (!src)
		return false;
	memcpy(dst, src, len);
	return true;
}

/* Copy the text at `addr` (0: none) into buf, always terminated. Returns its length. */
static size_t read_text(const struct reader *r, phys_t addr, char *buf, size_t size)
{
	size_t i;
	char c;

	buf[0] = '\0';
	if (!addr)
		return 0;
	for (i = 0; read_bytes(r, addr + i, &c, 1); i++) {
		if (!c)
			return i;
		if (i == size - 1) {
			boot_info_fault(r->info, "a text is too long and was cut; it begins at",
					addr);
			return i;
		}
		buf[i] = c;
		buf[i + 1] = '\0';
	}
	boot_info_fault(r->info, "text runs out of reach", addr);
	return i;
}

static void add_module(const struct reader *r, const struct start_info_module *from)
{
	struct boot_module *module = boot_info_add_module(r->info, from->addr, from->size);

	if (module)
		read_text(r, from->cmdline, module->text, sizeof(module->text));
}

static void read_modules(const struct reader *r, const struct start_info *start)
{
	struct start_info_module module;
	u32 count = start->modules;

	if (count > PVH_MODULES_MAX) {
		boot_info_fault(r->info, "impossible number of modules, cut", count);
		count = PVH_MODULES_MAX;
	}
	for (u32 i = 0; i < count; i++) {
		if (!read_bytes(r, start->module_list + i * sizeof(module), &module,
				sizeof(module))) {
			boot_info_fault(r->info, "module list is out of reach", start->module_list);
			return;
		}
		add_module(r, &module);
	}
}

static void read_memory_map(const struct reader *r, const struct start_info *start)
{
	struct start_info_range range;
	u32 count = start->memory_map_entries;

	if (count == 0 || start->memory_map == 0)
		boot_info_fault(r->info, "no memory map", start->memory_map);
	if (count > PVH_RANGES_MAX) {
		boot_info_fault(r->info, "impossible number of memory ranges, cut", count);
		count = PVH_RANGES_MAX;
	}
	for (u32 i = 0; i < count; i++) {
		if (!read_bytes(r, start->memory_map + i * sizeof(range), &range, sizeof(range))) {
			boot_info_fault(r->info,
					"memory map is out of reach after this many ranges", i);
			return;
		}
		boot_info_add_range(r->info, range.addr, range.size, mem_kind_of_e820(range.type));
	}
}

int pvh_parse(phys_t start_info, pvh_map_fn map, void *ctx, struct boot_info *info)
{
	const struct reader r = {.map = map, .ctx = ctx, .info = info};
	struct start_info start = {0};

	info->protocol = BOOT_PVH;
	info->firmware = FIRMWARE_NONE;
	memcpy(info->loader, "PVH", sizeof("PVH"));
	if (!read_bytes(&r, start_info, &start, START_INFO_V0_SIZE))
		return boot_info_fault(info, "block is out of reach", start_info);
	if (start.magic != PVH_MAGIC)
		return boot_info_fault(info, "wrong magic", start.magic);
	if (start.version >= 1 && !read_bytes(&r, start_info, &start, sizeof(start)))
		return boot_info_fault(info, "version 1 block is truncated", start_info);
	info->cmdline_len = read_text(&r, start.cmdline, info->cmdline, sizeof(info->cmdline));
	info->rsdp = start.rsdp;
	if (start.version == 0)
		boot_info_fault(info,
				"version 0 carries no memory map; use a loader with version 1 or "
				"multiboot2",
				start.version);
	else
		read_memory_map(&r, &start);
	read_modules(&r, &start);
	return 0;
}
