/*
 * PSF fonts: see console_font.h.
 *
 *   PSF1   36 04 | mode | bytes per glyph | glyphs, 8 pixels wide | table: u16 code points, 0xffff
 *          after each glyph
 *   PSF2   72 b5 4a 86 | version, header size, flags, count, bytes per glyph, height, width |
 *          glyphs | table: UTF-8, 0xff after each glyph
 *
 * The table says which characters a glyph stands for. 0xfffe (PSF1) and 0xfe (PSF2) begin sequences
 * of combining characters, which are skipped. Only ASCII is kept; in UTF-8 these are the bytes
 * below 128. In a font without a table, glyphs are in the order of their characters. Every read
 * lies below `len`.
 */
#include "kernel/console/console_font.h"

#include "kernel/lib/string.h"

enum {
	PSF1_MAGIC = 0x0436,
	PSF1_HEADER = 4,
	PSF1_512 = 1,
	PSF1_TABLE = 6,
	PSF1_END = 0xffff,
	PSF1_SEQUENCE = 0xfffe
};
enum { PSF2_HEADER = 32, PSF2_TABLE = 1, PSF2_END = 0xff, PSF2_SEQUENCE = 0xfe };
enum { GLYPHS_MAX = 65534, GLYPH_NONE = 0xffff, WIDTH_MAX = 64, HEIGHT_MAX = 128 };

#define PSF2_MAGIC 0x864ab572u

/* A font before its table is read. */
struct layout {
	size_t glyphs_at, table_at; /* table_at 0: none */
	u32 count, size;            /* number of glyphs, bytes of each */
	unsigned unit;              /* bytes of a code unit in the table */
};

static u32 get_u32(const u8 *p)
{
	u32 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static int layout_psf1(const u8 *p, struct layout *out, struct font *font)
{
	*out = (struct layout){.glyphs_at = PSF1_HEADER,
			       .count = p[2] & PSF1_512 ? 512 : 256,
			       .size = p[3],
			       .unit = 2};
	font->width = 8;
	font->height = p[3];
	out->table_at = p[2] & PSF1_TABLE ? PSF1_HEADER + (size_t)out->count * out->size : 0;
	return 0;
}

static int layout_psf2(const u8 *p, struct layout *out, struct font *font)
{
	*out = (struct layout){.glyphs_at = get_u32(p + 8),
			       .count = get_u32(p + 16),
			       .size = get_u32(p + 20),
			       .unit = 1};
	font->height = get_u32(p + 24);
	font->width = get_u32(p + 28);
	if (out->count == 0 || out->count > GLYPHS_MAX || font->width > WIDTH_MAX ||
	    out->size > WIDTH_MAX * HEIGHT_MAX)
		return -EINVAL;
	out->table_at =
		get_u32(p + 12) & PSF2_TABLE ? out->glyphs_at + (size_t)out->count * out->size : 0;
	return 0;
}

/* Walk the table. The first glyph that claims a character gets it. */
static void read_table(const u8 *data, size_t len, const struct layout *layout, struct font *font)
{
	const u32 end = layout->unit == 2 ? PSF1_END : PSF2_END,
		  sequence = layout->unit == 2 ? PSF1_SEQUENCE : PSF2_SEQUENCE;
	bool skipping = false;
	u32 glyph = 0;

	for (size_t at = layout->table_at; at + layout->unit <= len && glyph < layout->count;
	     at += layout->unit) {
		const u32 c = layout->unit == 2 ? data[at] | (u32)data[at + 1] << 8 : data[at];

		if (c == end) {
			glyph++;
			skipping = false;
		} else if (c == sequence) {
			skipping = true;
		} else if (!skipping && c < FONT_CHARS && font->glyph[c] == GLYPH_NONE) {
			font->glyph[c] = (u16)glyph;
		}
	}
}

int font_open(const void *data, size_t len, struct font *font)
{
	const u8 *p = data;
	struct layout layout;
	int err = -EINVAL;

	*font = (struct font){0};
	if (len >= PSF2_HEADER && get_u32(p) == PSF2_MAGIC)
		err = layout_psf2(p, &layout, font);
	else if (len >= PSF1_HEADER && (p[0] | p[1] << 8) == PSF1_MAGIC)
		err = layout_psf1(p, &layout, font);
	if (err < 0)
		return err;
	font->row_bytes = DIV_ROUND_UP(font->width, 8);
	if (font->width == 0 || font->height == 0 || font->height > HEIGHT_MAX ||
	    layout.size != font->row_bytes * font->height || layout.glyphs_at > len ||
	    (len - layout.glyphs_at) / layout.size < layout.count)
		return -EINVAL;
	font->glyphs = p + layout.glyphs_at;
	for (unsigned c = 0; c < FONT_CHARS; c++)
		font->glyph[c] = layout.table_at || c >= layout.count ? GLYPH_NONE : (u16)c;
	if (layout.table_at)
		read_table(p, len, &layout, font);
	return 0;
}

const u8 *font_row(const struct font *font, char c, unsigned y)
{
	const unsigned code = (u8)c;

	if (c == ' ' || code >= FONT_CHARS || font->glyph[code] == GLYPH_NONE)
		return NULL;
	return font->glyphs + ((size_t)font->glyph[code] * font->height + y) * font->row_bytes;
}
