/*
 * Reader of a cpio image: see cpio.h.
 *
 * Invariant: reader->at <= reader->size. Each size in a header is compared with what is left of the
 * image before it is added to a position, so no sum wraps.
 */
#include "kernel/program/cpio.h"

#include "kernel/lib/string.h"
#include "kernel/lib/words.h"

enum { MAGIC_LENGTH = 6, DIGITS = 8, HEADER_LENGTH = 110 };

/* Places of the numbers of a header that mean something here. */
enum number {
	NUMBER_MODE = 1,
	NUMBER_LINKS = 4,
	NUMBER_MTIME = 5,
	NUMBER_SIZE = 6,
	NUMBER_NAME_SIZE = 11,
	NUMBERS = 13
};

struct header {
	u32 number[NUMBERS];
};

static const char magic[] = "070701";

bool cpio_is(const void *image, u64 size)
{
	return size >= MAGIC_LENGTH && memcmp(image, magic, MAGIC_LENGTH) == 0;
}

struct cpio_reader cpio_reader(const void *image, u64 size)
{
	return (struct cpio_reader){.image = image, .size = size};
}

static bool parse_number(const u8 *text, u32 *out)
{
	u32 value = 0;

	for (unsigned i = 0; i < DIGITS; i++) {
		const u32 digit = digit_value((char)text[i]);

		if (digit >= 16)
			return false;
		value = value << 4 | digit;
	}
	*out = value;
	return true;
}

/* NULL, or the reason why there is no header at the reader's position. */
static const char *parse_header(const struct cpio_reader *reader, struct header *header)
{
	const u8 *text = reader->image + reader->at;

	if (reader->at == reader->size)
		return "cpio image ends without its last entry, " CPIO_LAST;
	if (reader->size - reader->at < HEADER_LENGTH)
		return "cpio image ends inside a header";
	if (memcmp(text, magic, MAGIC_LENGTH) != 0)
		return "cpio header does not begin with 070701 (format newc)";
	for (unsigned i = 0; i < NUMBERS; i++) {
		if (!parse_number(text + MAGIC_LENGTH + (size_t)i * DIGITS, &header->number[i]))
			return "cpio header has a number that is not hexadecimal";
	}
	return NULL;
}

/* The name without "/" and "./" at its beginning. */
static const char *skip_root(const char *name)
{
	for (;;) {
		if (name[0] == '/')
			name++;
		else if (name[0] == '.' && name[1] == '/')
			name += 2;
		else
			return name;
	}
}

static bool has_parent_part(const char *name)
{
	while (name) {
		if (name[0] == '.' && name[1] == '.' && (name[2] == '/' || name[2] == '\0'))
			return true;
		name = strchr(name, '/');
		if (name)
			name++;
	}
	return false;
}

static bool is_root(const char *name)
{
	return name[0] == '\0' || strcmp(name, ".") == 0;
}

/* Check the name that follows the header. NULL, with entry->name set, or the reason against it. */
static const char *parse_name(const struct cpio_reader *reader, u64 length,
			      struct cpio_entry *entry)
{
	const char *name = (const char *)reader->image + reader->at + HEADER_LENGTH;

	if (length > reader->size - reader->at - HEADER_LENGTH)
		return "cpio image ends inside a name";
	if (length < 2)
		return "cpio entry without a name";
	if (length - 1 > CPIO_NAME_MAX)
		return "cpio entry has a name of more than 1024 characters";
	if (strnlen(name, length) != length - 1)
		return "cpio entry has a name with its end in the wrong place";
	entry->name = skip_root(name);
	return has_parent_part(entry->name) ? "cpio entry has a name with .. in it" : NULL;
}

/*
 * Parse the entry at the reader's position and move the reader past it. NULL, or the reason why it
 * is refused; the reader has not moved then.
 */
static const char *parse_entry(struct cpio_reader *reader, struct cpio_entry *entry)
{
	struct header header;
	const char *wrong = parse_header(reader, &header);
	u64 data;

	if (wrong)
		return wrong;
	wrong = parse_name(reader, header.number[NUMBER_NAME_SIZE], entry);
	if (wrong)
		return wrong;
	entry->mode = header.number[NUMBER_MODE];
	entry->mtime = header.number[NUMBER_MTIME];
	entry->size = header.number[NUMBER_SIZE];
	data = ALIGN_UP(reader->at + HEADER_LENGTH + header.number[NUMBER_NAME_SIZE],
			CPIO_ALIGNMENT);
	if (data > reader->size || entry->size > reader->size - data)
		return "cpio entry has contents beyond the end of the image";
	if ((entry->mode & CPIO_TYPE) == CPIO_FILE && header.number[NUMBER_LINKS] > 1 &&
	    entry->size == 0)
		return "cpio entry is a hard link without contents";
	entry->data = reader->image + data;
	/* The last entry's padding may be missing. */
	reader->at = MIN(ALIGN_UP(data + entry->size, CPIO_ALIGNMENT), reader->size);
	return NULL;
}

bool cpio_next(struct cpio_reader *reader, struct cpio_entry *entry)
{
	do {
		*entry = (struct cpio_entry){.name = ""};
		if (reader->done || reader->error)
			return false;
		reader->error = parse_entry(reader, entry);
		if (reader->error)
			return false;
		reader->done = strcmp(entry->name, CPIO_LAST) == 0;
		if (reader->done)
			return false;
	} while (is_root(entry->name));
	return true;
}

size_t cpio_header(char *to, const char *name, u32 mode, u32 mtime, u32 size)
{
	const size_t used = HEADER_LENGTH + strlen(name) + 1;
	const u32 number[NUMBERS] = {[NUMBER_MODE] = mode,
				     [NUMBER_LINKS] = 1,
				     [NUMBER_MTIME] = mtime,
				     [NUMBER_SIZE] = size,
				     [NUMBER_NAME_SIZE] = (u32)(used - HEADER_LENGTH)};

	memcpy(to, magic, MAGIC_LENGTH);
	for (unsigned i = 0; i < NUMBERS * DIGITS; i++)
		to[MAGIC_LENGTH + i] =
			"0123456789abcdef"[number[i / DIGITS] >> (28 - i % DIGITS * 4) & 15];
	memcpy(to + HEADER_LENGTH, name, used - HEADER_LENGTH);
	memset(to + used, 0, ALIGN_UP(used, CPIO_ALIGNMENT) - used);
	return ALIGN_UP(used, CPIO_ALIGNMENT);
}
