/*
 * Reader of a cpio image of format "newc", the format of an initrd. Pure: it reads nothing beyond
 * the image, changes nothing, and takes nothing in the image for granted.
 *
 *	entry: header (110 characters) | name and a zero byte | pad to 4 | contents | pad to 4
 *	header: "070701", then 13 numbers of 8 hexadecimal digits
 *
 * The last entry is called TRAILER!!!, and what follows it is ignored.
 *
 *	struct cpio_reader reader = cpio_reader(image, size);
 *	struct cpio_entry entry;
 *
 *	while (cpio_next(&reader, &entry))
 *		...
 *	if (reader.error)
 *		pr_err("%s, in entry \"%s\" at %llu", reader.error, entry.name, reader.at);
 *
 * Source: GNU cpio, "cpio 2.13", manual page cpio(5) of FreeBSD, "New ASCII Format".
 */
#pragma once

#include "kernel/lib/types.h"

enum { CPIO_NAME_MAX = 1024, CPIO_ALIGNMENT = 4 };
#define CPIO_LAST "TRAILER!!!" /* the name of the last entry */

/* Bits of cpio_entry.mode, those of stat(2). */
enum {
	CPIO_TYPE = 0170000,
	CPIO_FOLDER = 0040000,
	CPIO_FILE = 0100000,
	CPIO_LINK = 0120000, /* symbolic: the contents are its target, without a zero byte */
	CPIO_EXECUTE = 0111,
};

struct cpio_entry {
	/*
	 * In the image, terminated, at most CPIO_NAME_MAX characters. It is not empty, begins with
	 * no "/" or "./", and has no part "..". "" in an entry that was refused before its name.
	 */
	const char *name;
	u32 mode;
	const void *data; /* in the image, at any alignment */
	u64 size;         /* bytes */
	u32 mtime;        /* seconds since 1970 */
};

struct cpio_reader {
	const u8 *image;
	u64 size;
	u64 at;            /* of the next entry; after an error, of the entry that is wrong */
	const char *error; /* NULL: none */
	bool done;         /* the last entry was read */
};

/* Does the image begin like one of format newc? */
bool cpio_is(const void *image, u64 size);

/* A reader before the first entry. The image must stay in place while it and its entries live. */
struct cpio_reader cpio_reader(const void *image, u64 size);

/*
 * The next entry. False after the last one, and false with reader->error if the next one is wrong;
 * the reader then stays where it is. Hard links are refused, because only one of them has contents.
 * The entry of the root folder itself (".") is skipped. Any context.
 */
bool cpio_next(struct cpio_reader *reader, struct cpio_entry *entry);

/*
 * Write the header and the name of an entry, a multiple of CPIO_ALIGNMENT bytes and at most
 * CPIO_HEADER_MAX. Returns how many.
 */
enum { CPIO_HEADER_MAX = 112 + CPIO_NAME_MAX + 4 };
size_t cpio_header(char *to, const char *name, u32 mode, u32 mtime, u32 size);
