/*
 * The text screen on a framebuffer of any pitch and size: see console_screen.h. Text is white: all
 * bits of a pixel, in any layout of colours.
 *
 * A stretch of characters is drawn one scan line after the other, so that stores run upwards
 * without gaps. A write-combining mapping turns such stores into bursts.
 *
 * Wide screens get the large font if that leaves 100 columns or more, so that the text can be read
 * from a photo.
 */
#include "kernel/console/console_fb.h"

#include "kernel/lib/string.h"

enum { SIDE_MAX = 32768, COLUMNS_ENOUGH = 100 };

static unsigned pixel_bytes(const struct boot_framebuffer *fb)
{
	return DIV_ROUND_UP(fb->bpp, 8u);
}

u64 fb_size(const struct boot_framebuffer *fb)
{
	const u32 bytes = pixel_bytes(fb);

	if (fb->type != BOOT_FB_RGB || fb->addr == 0 || fb->bpp < 15 || fb->bpp > 32)
		return 0;
	if (fb->width == 0 || fb->height == 0 || fb->width > SIDE_MAX || fb->height > SIDE_MAX)
		return 0;
	if (fb->pitch / bytes < fb->width || fb->pitch > SIDE_MAX * 8u)
		return 0;
	return (u64)fb->pitch * (fb->height - 1) + (u64)fb->width * bytes;
}

/* 2, 3 or 4 bytes; written and never read. */
static u8 *put_pixel(u8 *at, unsigned bytes, bool on)
{
	const u32 value = on ? ~0u : 0;

	if (bytes == 4) /* one store, at any alignment */
		__builtin_memcpy(at, &value, 4);
	else
		for (unsigned i = 0; i < bytes; i++)
			at[i] = (u8)value;
	return at + bytes;
}

static u8 *put_glyph_row(u8 *at, const struct fb_screen *fb, char c, unsigned y)
{
	const u8 *bits = font_row(fb->font, c, y);

	for (unsigned x = 0; x < fb->font->width; x++) {
		const bool on = bits && bits[x / 8] >> (7 - x % 8) & 1;

		at = put_pixel(at, pixel_bytes(&fb->mode), on);
	}
	return at;
}

static void fb_draw(struct screen *screen, unsigned row, unsigned first, unsigned last,
		    const char *text)
{
	const struct fb_screen *fb = container_of(screen, struct fb_screen, screen);

	for (unsigned y = 0; y < fb->font->height; y++) {
		u8 *at = fb->pixels + (size_t)(row * fb->font->height + y) * fb->mode.pitch +
			 (size_t)first * fb->font->width * pixel_bytes(&fb->mode);

		for (unsigned column = first; column <= last; column++)
			at = put_glyph_row(at, fb, text[column], y);
	}
}

/* Clear what the loader left around and behind the text. */
static void clear(const struct fb_screen *fb)
{
	for (u32 y = 0; y < fb->mode.height; y++)
		memset(fb->pixels + (size_t)y * fb->mode.pitch, 0,
		       (size_t)fb->mode.width * pixel_bytes(&fb->mode));
}

/*
 * Scan lines of the code in its white margin, in the middle of a black screen. The side is at most
 * that of the screen, so a module of a screen that is too small has no pixels.
 */
static void draw_code(const struct fb_screen *fb, const struct qr *qr)
{
	const unsigned modules = QR_SIDE + 2 * QR_QUIET, bytes = pixel_bytes(&fb->mode);
	const unsigned scale = MIN(fb->mode.width, fb->mode.height) / modules;
	const unsigned side = scale * modules;
	u8 *line = fb->pixels + (size_t)((fb->mode.height - side) / 2) * fb->mode.pitch +
		   (size_t)((fb->mode.width - side) / 2) * bytes;

	for (unsigned y = 0; y < side; y++, line += fb->mode.pitch) {
		u8 *at = line;

		for (unsigned x = 0; x < side; x++) {
			const unsigned row = y / scale - QR_QUIET, column = x / scale - QR_QUIET;
			const bool inside = row < QR_SIDE && column < QR_SIDE;

			at = put_pixel(at, bytes, !inside || !qr->module[row][column]);
		}
	}
}

static void fb_show(struct console *console, const struct qr *qr)
{
	struct fb_screen *fb = container_of(console, struct fb_screen, screen.console);

	clear(fb);
	screen_forget(&fb->screen);
	if (qr)
		draw_code(fb, qr);
}

static const struct font *choose_font(const struct boot_framebuffer *mode)
{
	static const struct font small = {font_small_start + PSF1_HEADER, 8, 16, 1},
				 large = {font_large_start + PSF2_HEADER, 16, 32, 2};

	if (mode->width / large.width >= COLUMNS_ENOUGH)
		return &large;
	return mode->width >= small.width && mode->height >= small.height ? &small : NULL;
}

bool fb_start(struct fb_screen *fb, const struct boot_framebuffer *boot, void *pixels)
{
	fb->mode = *boot;
	fb->pixels = pixels;
	fb->font = choose_font(boot);
	if (fb_size(boot) == 0 || !fb->font)
		return false;
	fb->screen.draw = fb_draw;
	fb->screen.console.show = fb_show;
	clear(fb);
	screen_start(&fb->screen, boot->width / fb->font->width, boot->height / fb->font->height);
	return true;
}
