/* The parser of console=; see console.h for the syntax. A pure function over the text. */
#include "kernel/console/console_wish.h"
#include "kernel/core/cmdline.h"
#include "kernel/lib/string.h"

enum { PORT_LAST = 0xfff8, BAUD_MAX = 115200 };

static const struct {
	const char *word, *name;
	enum console_kind kind;
	u64 addr;
} words[] = {
	{"auto", NULL, CON_AUTO, 0},           {"none", NULL, CON_NONE, 0},
	{"com1", "COM1", CON_PORT, 0x3f8},     {"com2", "COM2", CON_PORT, 0x2f8},
	{"com3", "COM3", CON_PORT, 0x3e8},     {"com4", "COM4", CON_PORT, 0x2e8},
	{"port", "port", CON_PORT, 0},         {"mmio", "mmio", CON_MMIO, 0},
	{"spcr", "UART of SPCR", CON_SPCR, 0}, {"pci", "UART on PCI", CON_PCI, 0},
	{"screen", "screen", CON_SCREEN, 0},   {"kbd", "keyboard", CON_KEYBOARD, 0},
};

/* Parse the word at *text, up to a colon, a comma or the end, and move *text past it. */
static bool take_word(const char **text, struct console_wish *wish)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const size_t len = strlen(words[i].word);
		const char after = strncmp(*text, words[i].word, len) == 0 ? (*text)[len] : 'x';

		if (after != '\0' && after != ',' && after != ':')
			continue;
		*wish = (struct console_wish){.kind = words[i].kind,
					      .name = words[i].name,
					      .addr = words[i].addr,
					      .stride = 1};
		*text += len;
		return true;
	}
	return false;
}

/* Parse the number after a colon at *text, if there is one, and move *text past it. */
static bool take_number(const char **text, u64 *value)
{
	const char *at = *text + 1;

	if (**text != ':' || parse_u64(&at, value) != 0)
		return false;
	*text = at;
	return true;
}

/* Address, stride and speed, as far as the kind has them and none is known. */
static bool take_rest(const char **text, struct console_wish *wish)
{
	const bool port = wish->kind == CON_PORT, memory = wish->kind == CON_MMIO;
	u64 value;

	if ((port || memory) && !wish->addr)
		if (!take_number(text, &wish->addr) || wish->addr == 0 ||
		    (port && wish->addr > PORT_LAST))
			return false;
	if (memory && take_number(text, &value)) {
		wish->stride = (unsigned)value;
		if (value != 1 && value != 2 && value != 4)
			return false;
	}
	if ((port || memory) && take_number(text, &value)) {
		wish->baud = (u32)value;
		if (value == 0 || value > BAUD_MAX || BAUD_MAX % value)
			return false;
	}
	return **text != ':'; /* a number too many, or a malformed one */
}

int console_wishes_parse(const char *text, struct console_wish wish[CONSOLE_WISHES_MAX])
{
	int n = 0;

	for (;;) {
		struct console_wish next;

		if (!take_word(&text, &next) || !take_rest(&text, &next) || (*text && *text != ','))
			return -EINVAL;
		if (n == CONSOLE_WISHES_MAX)
			return -E2BIG;
		wish[n++] = next;
		if (!*text++)
			return n;
	}
}
