/*
 * Scan codes to bytes: see console_keyboard.h. Pure.
 */
#include "kernel/console/console_keyboard.h"

#include "kernel/lib/string.h"

enum {
	KEY_RELEASED = 0x80,
	KEY_EXTENDED = 0xe0,
	KEY_LEFT_SHIFT = 0x2a,
	KEY_RIGHT_SHIFT = 0x36,
	KEY_CONTROL = 0x1d
};
enum { KEY_CAPS = 0x3a };

/* Codes 0x00..0x3f; 0: types nothing. */
static const char plain[64] = "\0\033"
			      "1234567890-=\b\t"
			      "qwertyuiop[]\r\0asdfghjkl;'`\0\\zxcvbnm,./\0*\0 ";
static const char shifted[64] = "\0\033"
				"!@#$%^&*()_+\b\t"
				"QWERTYUIOP{}\r\0ASDFGHJKL:\"~\0|ZXCVBNM<>?\0*\0 ";

/* Keys with the prefix 0xe0, and the same codes on the numeric pad. */
static const struct {
	u8 code;
	const char *text;
} cursor[] = {{0x48, "\033[A"},  {0x50, "\033[B"},  {0x4d, "\033[C"},
	      {0x4b, "\033[D"},  {0x47, "\033[H"},  {0x4f, "\033[F"},
	      {0x53, "\033[3~"}, {0x49, "\033[5~"}, {0x51, "\033[6~"}};

static unsigned type_text(const char *text, char out[KEY_BYTES_MAX])
{
	const unsigned len = (unsigned)strlen(text);

	/* the caller gets bytes and their number */
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
	memcpy(out, text, len);
	return len;
}

/* Shift and control act while held; caps lock toggles. True if the code belongs to one of them. */
static bool note_modifier(struct keyboard *k, u8 key, bool released, bool extended)
{
	if (key == KEY_CONTROL)
		k->control = !released;
	else if ((key == KEY_LEFT_SHIFT || key == KEY_RIGHT_SHIFT) && !extended)
		k->shift = !released;
	else if (key == KEY_CAPS)
		k->caps ^= !released;
	else
		/* a shift that the keyboard makes up around extended keys */
		return (key == KEY_LEFT_SHIFT || key == KEY_RIGHT_SHIFT) && extended;
	return true;
}

static char letter(const struct keyboard *k, u8 key)
{
	const char low = plain[key];
	const bool is_letter = low >= 'a' && low <= 'z';

	if (k->control && is_letter)
		return (char)(low - 'a' + 1);
	return k->shift != (k->caps && is_letter) ? shifted[key] : low;
}

unsigned keyboard_decode(struct keyboard *k, u8 code, char out[KEY_BYTES_MAX])
{
	const bool extended = k->extended, released = code & KEY_RELEASED;
	const u8 key = code & (u8)~KEY_RELEASED;

	k->extended = code == KEY_EXTENDED;
	if (k->extended || note_modifier(k, key, released, extended) || released)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(cursor); i++)
		if (cursor[i].code == key)
			return type_text(cursor[i].text, out);
	if (key >= sizeof(plain) || (extended && plain[key] != '\r' && plain[key] != '/'))
		return 0;
	out[0] = letter(k, key);
	return out[0] != '\0';
}
