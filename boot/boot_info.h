/*
 * The information that any loader passes to the kernel, in one neutral form. The Multiboot2 (GRUB
 * under BIOS and UEFI) and PVH parsers fill it in; the rest of the kernel never sees their formats.
 *
 * The data is copied out of the loader's memory before anything can overwrite that memory, and
 * holds no pointer into it. Ranges are as the firmware reports them: unsorted, overlapping,
 * unaligned, in any number. mm/map/memblock.c sorts them out.
 */
#pragma once

#include "kernel/lib/types.h"

enum boot_protocol { BOOT_MULTIBOOT2, BOOT_PVH, BOOT_HOSTED };
enum boot_firmware { FIRMWARE_BIOS, FIRMWARE_UEFI, FIRMWARE_NONE };

enum mem_kind {
	MEM_RAM,      /* usable */
	MEM_RESERVED, /* of firmware, ACPI included, or devices; bad; persistent: never touched */
	MEM_LOADER,   /* RAM that holds data from the loader: kept */
};

struct mem_range {
	phys_t start, end; /* [start, end), bytes, as reported */
	enum mem_kind kind;
	u32 efi_type : 8, efi_attributes : 24; /* of UEFI's map: type + 1, low bits; else 0 */
};

/* numbered as in multiboot2, except BOOT_FB_NONE */
enum boot_fb_type { BOOT_FB_NONE, BOOT_FB_RGB, BOOT_FB_TEXT };

struct boot_framebuffer {
	phys_t addr;
	u32 pitch, width, height; /* pitch in bytes; the others in pixels or characters */
	u8 bpp, type;
};

enum { BOOT_MODULE_TEXT_MAX = 256 };

/*
 * A file that the loader put into memory beside the kernel. Its range is also listed as MEM_LOADER.
 */
struct boot_module {
	phys_t start;
	u64 size;
	char text[BOOT_MODULE_TEXT_MAX]; /* the words behind the file's name; empty: none */
};

enum {
	BOOT_MODULES_MAX = 16,
	BOOT_RANGES_MAX = 4096,
	BOOT_LOADER_NAME_MAX = 64,
	BOOT_CMDLINE_MAX = 4096
};

struct boot_info {
	enum boot_protocol protocol;
	enum boot_firmware firmware;
	char loader[BOOT_LOADER_NAME_MAX];
	char cmdline[BOOT_CMDLINE_MAX];
	size_t cmdline_len;
	phys_t rsdp;       /* 0: not given, must be searched for */
	u8 rsdp_copy[36];  /* multiboot2 hands over a copy instead of an address */
	u32 rsdp_copy_len; /* 0: none */
	struct boot_framebuffer framebuffer;
	struct boot_module module[BOOT_MODULES_MAX];
	size_t modules;
	struct mem_range range[BOOT_RANGES_MAX];
	size_t ranges;
	size_t ranges_lost; /* ranges beyond BOOT_RANGES_MAX; reported on the console */
	/* oddities found while parsing; the first BOOT_FAULTS_SAID are printed */
	unsigned faults;
};

/*
 * Add a range. Empty ranges are dropped, and ranges that do not fit are counted. When the list is
 * full, RAM is lost, but never a range that makes RAM unusable while a RAM range is left to drop.
 */
void boot_info_add_range(struct boot_info *info, phys_t start, u64 size, enum mem_kind kind);

/*
 * The meaning of a type of the BIOS's e820 map, which both protocols pass on (ACPI specification
 * 6.5, 15.2).
 */
enum mem_kind mem_kind_of_e820(u32 type);

/*
 * The meaning of a type of UEFI's memory map after ExitBootServices() (UEFI 2.10, 7.2): code and
 * data of the loader (1, 2) and of boot services (3, 4) are then RAM like conventional memory (7).
 * The parts that hold the kernel and its data are reserved separately.
 */
static inline enum mem_kind mem_kind_of_efi(u32 type)
{
	return (type >= 1 && type <= 4) || type == 7 ? MEM_RAM : MEM_RESERVED;
}

/*
 * Why RAM with these attributes of UEFI's memory map is not used, in words; NULL: it is used
 * (UEFI 2.10, 7.2.3). Memory for a special purpose, such as a device's own, is for its driver.
 */
const char *efi_memory_unfit(u64 attributes);

/*
 * Record a module and keep its memory. Returns its record, whose text is empty. Beyond
 * BOOT_MODULES_MAX only the memory is kept, and NULL is returned.
 */
struct boot_module *boot_info_add_module(struct boot_info *info, phys_t start, u64 size);

/*
 * Count an oddity, and print the protocol, the oddity and the offending value. At most
 * BOOT_FAULTS_SAID are printed, so a hostile table cannot flood the console. Returns -EINVAL, for a
 * parser that gives up.
 */
enum { BOOT_FAULTS_SAID = 16 };
int boot_info_fault(struct boot_info *info, const char *what, u64 value);

/*
 * Parsers: pure functions over (pointer, length) that read nothing beyond it. A faulty part is
 * reported with boot_info_fault() and skipped. Returns 0, or -EINVAL if nothing usable is left
 * (wrong magic, truncated before the first tag).
 */
int multiboot2_parse(const void *data, size_t len, struct boot_info *info);

/*
 * PVH: takes the start info block, and a function that maps the memory the block points to (NULL if
 * it is out of reach or too long).
 */
typedef const void *(*pvh_map_fn)(phys_t addr, size_t len, void *ctx);
int pvh_parse(phys_t start_info, pvh_map_fn map, void *ctx, struct boot_info *info);

/* The machine's boot information, valid after the entry code has run. */
extern struct boot_info boot_info;
