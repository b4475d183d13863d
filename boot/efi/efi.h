/*
 * What BOOTX64.EFI uses of UEFI, and no more ("UEFI Specification 2.10"; the sections are named).
 * Members that nothing here uses are void pointers that keep the others in their places.
 */
#pragma once

#include "kernel/lib/types.h"

#define EFIAPI __attribute__((ms_abi))

typedef u64 efi_status; /* 0: success; others are errors or warnings (appendix D) */

/* 2.3.1: the 16 bytes of a GUID in memory, as two words */
struct efi_guid {
	u64 low, high;
};

/* 12.4 */
struct efi_text_output {
	void *reset;
	efi_status(EFIAPI *output)(struct efi_text_output *self, const u16 *text);
};

/* 7.2: types of memory and ways to allocate it */
enum { EFI_LOADER_CODE = 1, EFI_LOADER_DATA = 2, EFI_CONVENTIONAL = 7 };
enum { EFI_MAX_ADDRESS = 1, EFI_ADDRESS = 2 };

/* An entry of the memory map. The next one is as far away as GetMemoryMap() says (7.2.3). */
struct efi_memory {
	u32 type;
	u64 start, virtual_start, pages, attributes;
};

/* 4.4 */
struct efi_boot_services {
	u8 header[24];
	void *tpl[2];
	efi_status(EFIAPI *allocate_pages)(u32 how, u32 type, u64 pages, u64 *address);
	void *free_pages;
	efi_status(EFIAPI *get_memory_map)(u64 *size, void *map, u64 *key, u64 *entry,
					   u32 *version);
	void *pool_events_and_install[11];
	efi_status(EFIAPI *handle_protocol)(void *handle, const struct efi_guid *,
					    void **interface);
	void *until_exit[9];
	efi_status(EFIAPI *exit_boot_services)(void *image, u64 key);
	void *until_locate[10];
	efi_status(EFIAPI *locate_protocol)(const struct efi_guid *, void *, void **interface);
};

/* 4.6 */
struct efi_configuration {
	struct efi_guid guid;
	const void *table;
};

/* 4.3 */
struct efi_system_table {
	u8 header[24];
	void *vendor;
	u64 revision;
	void *input[2];
	void *output_handle;
	struct efi_text_output *output;
	void *error_output[2];
	void *runtime;
	struct efi_boot_services *boot;
	u64 configurations;
	const struct efi_configuration *configuration;
};

/* 9.1 */
struct efi_loaded_image {
	u64 revision;
	void *parent, *system_table;
	void *device;
	void *path, *reserved;
	u32 options_size;
	const u8 *options;
};

/* 13.5 */
struct efi_file {
	u64 revision;
	efi_status(EFIAPI *open)(struct efi_file *self, struct efi_file **opened, const u16 *name,
				 u64 mode, u64 attributes);
	efi_status(EFIAPI *close)(struct efi_file *self);
	efi_status(EFIAPI *remove)(struct efi_file *self); /* closes it, too */
	efi_status(EFIAPI *read)(struct efi_file *self, u64 *size, void *buffer);
	efi_status(EFIAPI *write)(struct efi_file *self, u64 *size, const void *buffer);
	efi_status(EFIAPI *get_position)(struct efi_file *self, u64 *position);
	efi_status(EFIAPI *set_position)(struct efi_file *self, u64 position);
};

enum { EFI_FILE_READ = 1, EFI_FILE_WRITE = 2 };
#define EFI_FILE_CREATE (1ULL << 63)
#define EFI_FILE_END    (~0ULL) /* set_position() */

/* 13.4 */
struct efi_file_system {
	u64 revision;
	efi_status(EFIAPI *open_volume)(struct efi_file_system *self, struct efi_file **root);
};

/* 12.9 */
enum { EFI_PIXEL_RGB, EFI_PIXEL_BGR, EFI_PIXEL_MASKS, EFI_PIXEL_NONE };
struct efi_graphics_info {
	u32 version, width, height, format, masks[4], pixels_per_line;
};

struct efi_graphics_mode {
	u32 modes, mode;
	const struct efi_graphics_info *info;
	u64 info_size, address, size;
};

struct efi_graphics {
	void *query_mode, *set_mode, *blt;
	const struct efi_graphics_mode *mode;
};

/* Where firmware enters (efi.lds). */
efi_status EFIAPI efi_main(void *self, struct efi_system_table *table);
