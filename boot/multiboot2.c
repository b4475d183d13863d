/*
 * Multiboot2 boot information, as GRUB passes it ("Multiboot2 Specification version 2.0", 3.4 "Boot
 * information format"; EFI memory descriptors: UEFI specification 2.10, 7.2.3 GetMemoryMap()).
 *
 *	total size | reserved | tag | pad to 8 | tag | pad to 8 | ... | end tag (0, 8)
 *	tag: type u32 | size u32, header included | data
 *
 * Invariants: every read lies below `len`. It is checked against the tag's own size, and the tag's
 * size against the block's. A tag with wrong contents is reported and skipped; a size that makes
 * the next tag impossible to find ends the walk. Of several tags of one type the first counts,
 * except that all modules count.
 *
 * Memory: the EFI map is preferred to the BIOS-like one, because it distinguishes boot services
 * (now RAM) from runtime services, and has attributes.
 */
#include "boot/boot_info.h"

#include "kernel/core/printk.h"
#include "kernel/lib/string.h"

enum {
	TAG_END = 0,
	TAG_CMDLINE = 1,
	TAG_LOADER = 2,
	TAG_MODULE = 3,
	TAG_MEMORY_MAP = 6,
	TAG_FRAMEBUFFER = 8,
	TAG_EFI32_TABLE = 11,
	TAG_EFI64_TABLE = 12,
	TAG_RSDP_OLD = 14,
	TAG_RSDP_NEW = 15,
	TAG_EFI_MEMORY_MAP = 17,
	TAG_EFI_BOOT_SERVICES = 18,
	TAG_COUNT = 22,
};

enum { EFI_MEMORY_WB = 1 << 3, EFI_MEMORY_SP = 1 << 18 };

enum {
	TAG_HEADER = 8,
	INFO_HEADER = 8,
	EFI_DESCRIPTOR_MIN = 40,
	E820_ENTRY_MIN = 24,
	RSDP_V1_SIZE = 20,
	RSDP_V2_SIZE = 36
};

/* Bytes after its header that are read of a tag of each type; a shorter tag is skipped. */
static const u8 least[TAG_COUNT] = {
	[TAG_MODULE] = 8,       [TAG_MEMORY_MAP] = 8,          [TAG_EFI_MEMORY_MAP] = 8,
	[TAG_FRAMEBUFFER] = 24, [TAG_RSDP_OLD] = RSDP_V1_SIZE, [TAG_RSDP_NEW] = RSDP_V2_SIZE};

/* Bytes of one tag after its header, or part of them. */
struct span {
	const u8 *data;
	size_t len;
};

static u32 get_u32(const u8 *p)
{
	u32 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static u64 get_u64(const u8 *p)
{
	u64 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/*
 * Copy the text of a tag into buf, always terminated. Returns its length; text that was cut is
 * reported.
 */
static size_t copy_text(struct boot_info *info, struct span tag, char *buf, size_t size)
{
	size_t len = strnlen((const char *)tag.data, tag.len);

	if (len == tag.len)
		boot_info_fault(info, "text is not terminated", len);
	if (len >= size) {
		boot_info_fault(info, "text is too long and was cut", len);
		len = size - 1;
	}
	memcpy(buf, tag.data, len);
	buf[len] = '\0';
	return len;
}

/* Position of the module, and then its text. */
static void parse_module(struct boot_info *info, struct span tag)
{
	struct boot_module *module;
	struct span text;
	u32 start, end;

	start = get_u32(tag.data);
	end = get_u32(tag.data + 4);
	if (end < start) {
		boot_info_fault(info, "module ends before it starts", start);
		return;
	}
	text = (struct span){tag.data + 8, tag.len - 8};
	module = boot_info_add_module(info, start, end - start);
	if (module && text.len)
		copy_text(info, text, module->text, sizeof(module->text));
}

static void parse_framebuffer(struct boot_info *info, struct span tag)
{
	struct boot_framebuffer *fb = &info->framebuffer;

	if (tag.data[21] == 0) /* indexed colours, which no driver here supports */
		return;
	fb->addr = get_u64(tag.data);
	fb->pitch = get_u32(tag.data + 8);
	fb->width = get_u32(tag.data + 12);
	fb->height = get_u32(tag.data + 16);
	fb->bpp = tag.data[20];
	fb->type = tag.data[21];
}

static void parse_rsdp(struct boot_info *info, struct span tag, u32 size)
{
	memcpy(info->rsdp_copy, tag.data, size);
	info->rsdp_copy_len = size;
}

/*
 * Parse either memory map: the size of an entry (by design it may exceed the known part), a
 * version, and the entries, each of which is given to `add`. A remainder shorter than an entry is
 * reported.
 */
static void parse_entries(struct boot_info *info, struct span tag, u32 min,
			  void (*add)(struct boot_info *info, const u8 *entry))
{
	const u32 size = get_u32(tag.data);

	if (size < min) {
		boot_info_fault(info, "memory map entry size too small", size);
		return;
	}
	if ((tag.len - 8) % size)
		boot_info_fault(info, "memory map ends within an entry, rest ignored",
				(tag.len - 8) % size);
	for (size_t at = 8; at + size <= tag.len; at += size)
		add(info, tag.data + at);
}

static void add_e820(struct boot_info *info, const u8 *e)
{
	boot_info_add_range(info, get_u64(e), get_u64(e + 8), mem_kind_of_e820(get_u32(e + 16)));
}

const char *efi_memory_unfit(u64 attributes)
{
	if (attributes & EFI_MEMORY_SP)
		return "for a special purpose (EFI_MEMORY_SP)";
	return attributes & EFI_MEMORY_WB ? NULL : "not cacheable (without EFI_MEMORY_WB)";
}

static void add_efi(struct boot_info *info, const u8 *e)
{
	const u64 start = get_u64(e + 8), pages = get_u64(e + 24);
	const enum mem_kind kind = mem_kind_of_efi(get_u32(e));
	const char *unfit = kind == MEM_RAM ? efi_memory_unfit(get_u64(e + 32)) : NULL;
	const size_t at = info->ranges;

	if (pages > ~0ULL >> PAGE_SHIFT) {
		boot_info_fault(info, "EFI memory range with impossible number of pages", pages);
		return;
	}
	if (unfit && pages && info->faults++ < BOOT_FAULTS_SAID)
		pr_warn("memory: %llu KiB at %llx are %s and not used", pages * 4, start, unfit);
	boot_info_add_range(info, start, pages << PAGE_SHIFT, unfit ? MEM_RESERVED : kind);
	if (info->ranges == at)
		return;
	info->range[at].efi_type = (u8)(get_u32(e) + 1);
	info->range[at].efi_attributes = get_u32(e + 32) & 0xffffff;
}

/* Find all tags: store the first of each type in `tags`, and parse modules on the way. */
static void walk_tags(const u8 *block, size_t len, struct boot_info *info,
		      struct span tags[TAG_COUNT])
{
	size_t at = INFO_HEADER;

	while (len - at >= TAG_HEADER) {
		const u32 type = get_u32(block + at), size = get_u32(block + at + 4);
		const struct span tag = {block + at + TAG_HEADER, size - TAG_HEADER};

		if (size < TAG_HEADER || size > len - at) {
			boot_info_fault(info, "tag with impossible size, rest ignored", size);
			return;
		}
		if (type == TAG_END)
			return;
		if (type < TAG_COUNT && tag.len < least[type])
			boot_info_fault(info, "tag too short: type", type);
		else if (type == TAG_MODULE)
			parse_module(info, tag);
		else if (type < TAG_COUNT && tags[type].data)
			boot_info_fault(info, "tag appears twice, the first counts: type", type);
		else if (type < TAG_COUNT)
			tags[type] = tag;
		if (ALIGN_UP((u64)size, 8) > len - at)
			break;
		at += ALIGN_UP((u64)size, 8);
	}
	boot_info_fault(info, "no end tag within size", len);
}

static bool has_ram(const struct boot_info *info)
{
	for (size_t i = 0; i < info->ranges; i++) {
		if (info->range[i].kind == MEM_RAM)
			return true;
	}
	return false;
}

static void parse_memory(struct boot_info *info, const struct span tags[TAG_COUNT])
{
	if (tags[TAG_EFI_MEMORY_MAP].data)
		parse_entries(info, tags[TAG_EFI_MEMORY_MAP], EFI_DESCRIPTOR_MIN, add_efi);
	if (!has_ram(info) && tags[TAG_MEMORY_MAP].data)
		parse_entries(info, tags[TAG_MEMORY_MAP], E820_ENTRY_MIN, add_e820);
	if (!has_ram(info))
		boot_info_fault(info, "no memory map with RAM in it", info->ranges);
}

static void parse_known(struct boot_info *info, const struct span tags[TAG_COUNT])
{
	if (tags[TAG_CMDLINE].data)
		info->cmdline_len =
			copy_text(info, tags[TAG_CMDLINE], info->cmdline, sizeof(info->cmdline));
	if (tags[TAG_LOADER].data)
		copy_text(info, tags[TAG_LOADER], info->loader, sizeof(info->loader));
	if (tags[TAG_FRAMEBUFFER].data)
		parse_framebuffer(info, tags[TAG_FRAMEBUFFER]);
	if (tags[TAG_RSDP_NEW].data)
		parse_rsdp(info, tags[TAG_RSDP_NEW], RSDP_V2_SIZE);
	if (!info->rsdp_copy_len && tags[TAG_RSDP_OLD].data)
		parse_rsdp(info, tags[TAG_RSDP_OLD], RSDP_V1_SIZE);
	if (tags[TAG_EFI32_TABLE].data || tags[TAG_EFI64_TABLE].data ||
	    tags[TAG_EFI_MEMORY_MAP].data)
		info->firmware = FIRMWARE_UEFI;
	if (tags[TAG_EFI_BOOT_SERVICES].data)
		boot_info_fault(info, "loader left EFI boot services running", 0);
}

int multiboot2_parse(const void *data, size_t len, struct boot_info *info)
{
	struct span tags[TAG_COUNT] = {{NULL, 0}};
	size_t total;

	info->protocol = BOOT_MULTIBOOT2;
	info->firmware = FIRMWARE_BIOS;
	if (len < INFO_HEADER + TAG_HEADER)
		return boot_info_fault(info, "information block too short", len);
	total = get_u32(data);
	if (total < INFO_HEADER + TAG_HEADER)
		return boot_info_fault(info, "information block claims impossible size", total);
	if (total > len) {
		boot_info_fault(info, "information block claims more than there is", total);
		total = len;
	}
	walk_tags(data, total, info, tags);
	parse_known(info, tags);
	parse_memory(info, tags);
	return 0;
}
