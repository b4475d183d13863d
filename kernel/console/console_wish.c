/* The parser of console=; see console.h for the syntax. A pure function over the text. */
#include "kernel/console/console_wish.h"
#include "kernel/core/cmdline.h"
#include "kernel/lib/string.h"

static const struct {
	const char *name;
	enum console_kind kind;
	u64 addr;
} words[] = {
	{"auto", CON_AUTO, 0}, {"none", CON_NONE, 0},     {"com1", CON_COM, 1},
	{"com2", CON_COM, 2},  {"com3", CON_COM, 3},      {"com4", CON_COM, 4},
	{"port", CON_PORT, 0}, {"mmio", CON_MMIO, 0},     {"spcr", CON_SPCR, 0},
	{"pci", CON_PCI, 0},   {"screen", CON_SCREEN, 0}, {"kbd", CON_KEYBOARD, 0},
};

/* Parse the word at *text, up to a colon, a comma or the end, and move *text past it. */
static bool take_word(const char **text, struct console_wish *wish)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const size_t len = strlen(words[i].name);
		const char after = strncmp(*text, words[i].name, len) == 0 ? (*text)[len] : 'x';

		if (after != '\0' && after != ',' && after != ':')
			continue;
		*wish = (struct console_wish){
			.kind = words[i].kind, .addr = words[i].addr, .stride = 1};
		*text += len;
		return true;
	}
	return false;
}

/*
 * Parse ":NUMBER" if there is one; *found says whether. False if the text after the colon is not a
 * number.
 */
static bool take_number(const char **text, u64 *value, bool *found)
{
	*found = **text == ':';
	if (!*found)
		return true;
	(*text)++;
	return parse_u64(text, value) == 0;
}

static bool take_baud(const char **text, struct console_wish *wish)
{
	u64 baud = 0;
	bool found;

	if (!take_number(text, &baud, &found) ||
	    (found && (baud == 0 || baud > 115200 || 115200 % baud)))
		return false;
	wish->baud = (u32)baud;
	return true;
}

static bool take_address(const char **text, struct console_wish *wish, u64 last)
{
	bool found;

	return take_number(text, &wish->addr, &found) && found && wish->addr && wish->addr <= last;
}

static bool take_stride(const char **text, struct console_wish *wish)
{
	u64 stride = 1;
	bool found;

	if (!take_number(text, &stride, &found) || (stride != 1 && stride != 2 && stride != 4))
		return false;
	wish->stride = (unsigned)stride;
	return true;
}

static bool take_rest(const char **text, struct console_wish *wish)
{
	switch (wish->kind) {
	case CON_COM:
		return take_baud(text, wish);
	case CON_PORT:
		return take_address(text, wish, 0xfff8) && take_baud(text, wish);
	case CON_MMIO:
		return take_address(text, wish, ~0ULL) && take_stride(text, wish) &&
		       take_baud(text, wish);
	default:
		return true;
	}
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

bool console_wished(const struct console_wish *wish, unsigned wishes, enum console_kind kind)
{
	for (unsigned i = 0; i < wishes; i++)
		if (wish[i].kind == kind)
			return true;
	return false;
}
