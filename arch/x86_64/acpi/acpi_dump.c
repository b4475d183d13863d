/*
 * The text that acpidump writes (ACPICA, "acpidump" and "acpixtract", 2010-2023), turned back into
 * tables:
 *
 *	APIC @ 0x000000007FFE2F7B
 *	    0000: 41 50 49 43 78 00 00 00 03 ED 42 4F 43 48 53 20  APICx.....BOCHS
 *	    0010: ...
 *	                                                  (an empty line, or the next table)
 *
 * A line of bytes is an offset, a colon, and up to 16 pairs of hexadecimal digits separated by
 * single blanks; the rest of the line is for people. Offsets are ignored, and bytes are taken in
 * order. Any other text between tables is skipped, so that a dump survives being sent by mail.
 * Every read lies below `end`, every write inside `room`.
 */
#include "arch/x86_64/acpi/acpi_dump.h"
#include "kernel/lib/string.h"
#include "kernel/lib/words.h"

enum { LINE_BYTES = 16, SIGNATURE = 4 };

/*
 * Take the next line as *line and *len, without its newline, and advance dump->at past it. False at
 * the end.
 */
static bool take_line(struct acpi_dump *dump, const char **line, size_t *len)
{
	const char *at = dump->at;

	if (at == dump->end)
		return false;
	while (at < dump->end && *at != '\n')
		at++;
	*line = dump->at;
	*len = (size_t)(at - dump->at);
	dump->at = at < dump->end ? at + 1 : at;
	return true;
}

/* "SIGN @ 0x...", where SIGN is four characters that a signature may contain. */
static bool is_heading(const char *line, size_t len)
{
	for (size_t i = 0; i < SIGNATURE; i++)
		if (i >= len || line[i] < '!' || line[i] > 'Z')
			return false;
	return len >= SIGNATURE + 5 && memcmp(line + SIGNATURE, " @ 0x", 5) == 0;
}

/* Put a line's bytes into `room` and return their number; 0 if it is not a line of bytes. */
static size_t take_bytes(const char *line, size_t len, u8 *room, size_t left)
{
	size_t at = 0, n = 0;

	while (at < len && line[at] == ' ')
		at++;
	if (at == len || digit_value(line[at]) >= 16)
		return 0;
	while (at < len && digit_value(line[at]) < 16)
		at++;
	if (at == len || line[at++] != ':')
		return 0;
	while (n < LINE_BYTES && n < left && at + 2 < len && line[at] == ' ' &&
	       digit_value(line[at + 1]) < 16 && digit_value(line[at + 2]) < 16) {
		room[n++] = (u8)(digit_value(line[at + 1]) << 4 | digit_value(line[at + 2]));
		at += 3;
	}
	return n;
}

bool acpi_dump_next(struct acpi_dump *dump, struct acpi_table *out)
{
	const char *line, *before;
	size_t len, n;

	do {
		if (!take_line(dump, &line, &len))
			return false;
	} while (!is_heading(line, len));
	*out = (struct acpi_table){.data = dump->room};
	for (before = dump->at; take_line(dump, &line, &len); before = dump->at) {
		n = take_bytes(line, len, dump->room, dump->left);
		if (n == 0)
			break;
		dump->room += n;
		dump->left -= n;
		out->len += n;
	}
	if (is_heading(line, len))
		dump->at = before; /* no empty line between two tables */
	return true;
}
