/*
 * The screen: a framebuffer that the loader set up (EFI GOP or VBE), or the VGA's text mode.
 *
 * A screen below 4 GiB is written through the boot page tables from the first moment. Once the
 * kernel's tables are loaded, any screen is written through a mapping of its own, write-combining
 * for a framebuffer. VGA text is looked for only without UEFI, because under UEFI the card may be
 * in any mode.
 *
 * Source: UEFI 2.10, 12.9 "Graphics Output Protocol"; IBM, "PS/2 Hardware Interface Technical
 * Reference, Video Subsystems", 1992, graphics controller's miscellaneous register (alphanumeric
 * mode, memory map).
 */
#include <arch/memory.h>

#include "arch/x86_64/consoles/console_screen.h"
#include "arch/x86_64/cpu/io.h"
#include "kernel/console/console_fb.h"
#include "kernel/core/printk.h"
#include "mm/map/memblock.h"
#include "mm/map/vmap.h"

enum {
	GRAPHICS_INDEX = 0x3ce,
	GRAPHICS_DATA = 0x3cf,
	GRAPHICS_MISC = 6,
	MISC_GRAPHICS = 1,
	MISC_MAP = 0xc
};
enum {
	MAP_COLOUR_TEXT = 0xc,
	CRTC_INDEX = 0x3d4,
	CRTC_DATA = 0x3d5,
	CRTC_CURSOR = 0x0a,
	CURSOR_OFF = 0x20
};
enum { VGA_COLUMNS = 80, VGA_ROWS = 25, VGA_GREY_ON_BLACK = 0x0700, VGA_CELL = 2 };

#define VGA_TEXT 0xb8000

static struct fb_screen fb;            /* its screen also serves VGA text */
static struct boot_framebuffer device; /* type BOOT_FB_NONE: no screen */
static volatile u16 *cells;            /* of VGA text */

static u64 device_size(void)
{
	return device.type == BOOT_FB_TEXT ? (u64)device.pitch * device.height : fb_size(&device);
}

static void text_draw(struct screen *screen, unsigned row, unsigned first, unsigned last,
		      const char *text)
{
	volatile u16 *line = cells + row * (device.pitch / VGA_CELL);

	for (unsigned column = first; column <= last; column++)
		line[column] = (u16)(VGA_GREY_ON_BLACK | (u8)text[column]);
}

static bool text_start(void *memory)
{
	cells = memory;
	for (u32 i = 0; i < device.height * (device.pitch / VGA_CELL); i++)
		cells[i] = VGA_GREY_ON_BLACK | ' ';
	outb(CRTC_INDEX, CRTC_CURSOR);
	outb(CRTC_DATA, CURSOR_OFF);
	fb.screen.draw = text_draw;
	screen_start(&fb.screen, device.width, device.height);
	return true;
}

static bool start(void *memory)
{
	if (device.type == BOOT_FB_TEXT)
		return text_start(memory);
	return fb_start(&fb, &device, memory);
}

/*
 * Is there a VGA in colour text mode, as a BIOS leaves it? Ports that no device decodes read as all
 * ones, which means graphics.
 */
static bool vga_in_text_mode(void)
{
	u8 misc;

	outb(GRAPHICS_INDEX, GRAPHICS_MISC);
	misc = inb(GRAPHICS_DATA);
	return !(misc & MISC_GRAPHICS) && (misc & MISC_MAP) == MAP_COLOUR_TEXT;
}

static void find_device(const struct boot_info *info)
{
	device = info->framebuffer;
	if (device.type == BOOT_FB_TEXT &&
	    (device.width == 0 || device.height == 0 || device.pitch < device.width * VGA_CELL))
		device.type = BOOT_FB_NONE;
	if (device.type == BOOT_FB_RGB && fb_size(&device) == 0) {
		pr_warn("console: a framebuffer of %ux%u, %u bits, %u bytes a line cannot be used",
			device.width, device.height, device.bpp, device.pitch);
		device.type = BOOT_FB_NONE;
		return;
	}
	if (device.type == BOOT_FB_NONE && info->firmware != FIRMWARE_UEFI && vga_in_text_mode())
		device = (struct boot_framebuffer){.addr = VGA_TEXT,
						   .pitch = VGA_COLUMNS * VGA_CELL,
						   .width = VGA_COLUMNS,
						   .height = VGA_ROWS,
						   .type = BOOT_FB_TEXT};
}

bool console_screen_init(void)
{
	find_device(&boot_info);
	if (device.type == BOOT_FB_NONE)
		return false;
	if (device.addr >= EARLY_PHYS_LIMIT || device_size() > EARLY_PHYS_LIMIT - device.addr)
		return true; /* out of reach for now */
	if (!start(phys_to_virt(device.addr))) {
		device.type = BOOT_FB_NONE;
		return false;
	}
	console_register(&fb.screen.console);
	return true;
}

void console_screen_reserve(void)
{
	if (device.type != BOOT_FB_NONE)
		memblock_reserve(device.addr, device.addr + device_size(), OWNER_FIRMWARE);
}

void console_screen_leave(void)
{
	fb.screen.console.dead = true;
}

void console_screen_map(void)
{
	void *mapped;

	if (device.type == BOOT_FB_NONE)
		return;
	mapped = vmap_phys(device.addr, device_size(),
			   device.type == BOOT_FB_TEXT ? PT_UNCACHED : PT_WRITE_COMBINING);
	if (!mapped)
		return;
	fb.screen.console.dead = false;
	if (fb.screen.draw) {
		cells = mapped;
		fb.pixels = mapped;
	} else if (start(mapped)) {
		console_register(&fb.screen.console);
	}
	if (device.type == BOOT_FB_RGB)
		pr_info("console: framebuffer of %ux%u, %u bits, at %llx: %u columns, %u rows",
			device.width, device.height, device.bpp, device.addr, fb.screen.columns,
			fb.screen.rows);
	else
		pr_info("console: VGA text, %u columns, %u rows", fb.screen.columns,
			fb.screen.rows);
}
