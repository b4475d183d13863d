/* A framebuffer as a screen of text. */
#pragma once

#include "boot/boot_info.h"
#include "kernel/console/console_font.h"
#include "kernel/console/console_screen.h"

struct fb_screen {
	struct screen screen;
	struct boot_framebuffer mode;
	u8 *pixels;
	const struct font *font;
};

/* Bytes from the first pixel to the end of the last; 0 if the framebuffer cannot be drawn on. */
u64 fb_size(const struct boot_framebuffer *fb);

/*
 * Take `pixels` as the framebuffer that `boot` describes, choose the font that suits it, and start
 * the screen. False if no font fits.
 */
bool fb_start(struct fb_screen *fb, const struct boot_framebuffer *boot, void *pixels);
