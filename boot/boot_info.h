/*
 * What any loader tells us, in one neutral form. Multiboot2 (GRUB under BIOS and UEFI) and PVH fill it; the rest of the
 * kernel never sees their formats.
 *
 * It is copied out of the loader's memory before anything can overwrite that, and holds no pointer into it. Ranges
 * arrive as the firmware has them: unsorted, overlapping, unaligned, more than anyone expected; mm/memblock.c makes
 * sense of them.
 */
#pragma once

#include "kernel/types.h"

enum boot_protocol { BOOT_MULTIBOOT2, BOOT_PVH, BOOT_HOSTED };
enum boot_firmware { FIRMWARE_BIOS, FIRMWARE_UEFI, FIRMWARE_NONE };

enum mem_kind {
	MEM_RAM,      /* usable */
	MEM_RESERVED, /* firmware's, devices', unusable, persistent: never touched */
	MEM_ACPI,     /* tables, ACPI NVS (e820 3 and 4): RAM, kept until reclaimed on purpose */
	MEM_LOADER,   /* RAM that holds what the loader left: kept */
	MEM_BAD,
};

struct mem_range {
	phys_t start, end; /* [start, end), bytes, as reported */
	enum mem_kind kind;
};

enum boot_fb_type { BOOT_FB_NONE, BOOT_FB_RGB, BOOT_FB_TEXT }; /* as multiboot2 numbers them, but for 0 */

struct boot_framebuffer {
	phys_t addr;
	u32 pitch, width, height; /* pixels, or characters of text */
	u8 bpp, type;
	u8 red_shift, red_bits, green_shift, green_bits, blue_shift, blue_bits;
};

/* A file that the loader put into memory beside us; its range is listed as MEM_LOADER too. */
struct boot_module {
	phys_t start;
	u64 size;
};

enum { BOOT_MODULES_MAX = 16, BOOT_RANGES_MAX = 4096, BOOT_LOADER_NAME_MAX = 64, BOOT_CMDLINE_MAX = 4096 };

struct boot_info {
	enum boot_protocol protocol;
	enum boot_firmware firmware;
	char loader[BOOT_LOADER_NAME_MAX];
	char cmdline[BOOT_CMDLINE_MAX];
	size_t cmdline_len;
	phys_t rsdp;       /* 0: not told, search for it */
	u8 rsdp_copy[36];  /* multiboot2 hands over a copy instead of an address */
	u32 rsdp_copy_len; /* 0: none */
	struct boot_framebuffer framebuffer;
	struct boot_module module[BOOT_MODULES_MAX];
	size_t modules;
	struct mem_range range[BOOT_RANGES_MAX];
	size_t ranges;
	size_t ranges_lost; /* beyond BOOT_RANGES_MAX: said on the console */
	unsigned faults;    /* oddities found while parsing; the first BOOT_FAULTS_SAID are named on the console */
};

/* Add a range; drops empty ones and counts those that do not fit. RAM above what fits is lost, never misread. */
void boot_info_add_range(struct boot_info *info, phys_t start, u64 size, enum mem_kind kind);

/* What a type of the BIOS's e820 map stands for; both protocols hand these on (ACPI specification 6.5, 15.2). */
enum mem_kind mem_kind_of_e820(u32 type);

/* Note a module and keep its memory. Beyond BOOT_MODULES_MAX only the memory is kept. */
void boot_info_add_module(struct boot_info *info, phys_t start, u64 size);

/* Count an oddity and name it: who found it, what it is, the offending value. A hostile table cannot flood the console.
 */
enum { BOOT_FAULTS_SAID = 16 };
void boot_info_fault(struct boot_info *info, const char *who, const char *what, u64 value);

/*
 * Parsers: pure functions over (pointer, length) that read nothing beyond. What is wrong is named with printk() and
 * skipped. 0, or -EINVAL when nothing usable is left (wrong magic, truncated before the first tag).
 */
int multiboot2_parse(const void *data, size_t len, struct boot_info *info);

/* PVH: the start info block, and a way to reach what it points to (NULL if it is out of reach or too long). */
typedef const void *(*pvh_map_fn)(phys_t addr, size_t len, void *ctx);
int pvh_parse(phys_t start_info, pvh_map_fn map, void *ctx, struct boot_info *info);

/* The machine's, after the entry code has run. */
extern struct boot_info boot_info;
