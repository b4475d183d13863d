/*
 * The reader of cpio images. A good image is built by hand and then broken field by field. Each
 * image ends where its buffer's contents end, and is read twice with different bytes behind it.
 */
#include "kernel/lib/format.h"
#include "kernel/lib/string.h"
#include "kernel/program/cpio.h"
#include "kernel/run/test.h"

enum { IMAGE_MAX = 4096, HEADER = 110 };

/* Position of a number in the header, in the order of the format. */
enum { AT_MODE = 6 + 8, AT_LINKS = 6 + 4 * 8, AT_SIZE = 6 + 6 * 8, AT_NAME_SIZE = 6 + 11 * 8 };

static u8 image[IMAGE_MAX];
static size_t length;

static void pad(void)
{
	while (length % 4)
		image[length++] = 0;
}

/* Returns the position of the entry. */
static size_t add(const char *name, u32 mode, const char *text)
{
	const size_t at = length;
	char header[HEADER + 1];

	format(header, sizeof(header), "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
	       1, mode, 0, 0, 1, 7, (u32)strlen(text), 0, 0, 0, 0, (u32)strlen(name) + 1, 0);
	memcpy(image + length, header, HEADER);
	length += HEADER;
	memcpy(image + length, name, strlen(name) + 1);
	length += strlen(name) + 1;
	pad();
	memcpy(image + length, text, strlen(text));
	length += strlen(text);
	pad();
	return at;
}

static void begin(void)
{
	memset(image, 0, sizeof(image));
	length = 0;
}

static void set_number(size_t entry, size_t field, u32 value)
{
	char text[9];

	format(text, sizeof(text), "%08x", value);
	memcpy(image + entry + field, text, 8);
}

/* Read to the end. Returns the number of entries; *error receives the reader's. */
static unsigned count(const char **error)
{
	struct cpio_reader reader = cpio_reader(image, length);
	struct cpio_entry entry;
	unsigned n = 0;

	while (cpio_next(&reader, &entry))
		n++;
	*error = reader.error;
	EXPECT(reader.done == !reader.error);
	EXPECT(!cpio_next(&reader, &entry));
	return n;
}

/* The image must be refused with these words in the message, after `entries` good entries. */
static void refused(unsigned entries, const char *words)
{
	const char *error;

	EXPECT_EQ(count(&error), entries);
	REQUIRE(error);
	for (const char *at = error; *at; at++) {
		if (strncmp(at, words, strlen(words)) == 0)
			return;
	}
	test_fail(__FILE__, __LINE__, "refused with \"%s\", without \"%s\"", error, words);
}

TEST(program_cpio, names_lose_their_root)
{
	struct cpio_reader reader;
	struct cpio_entry entry;

	begin();
	add(".", 0040755, "");
	add("./", 0040755, "");
	add("././/a/..b", 0100644, "");
	add("TRAILER!!!", 0, "");
	reader = cpio_reader(image, length);
	REQUIRE(cpio_next(&reader, &entry));
	EXPECT(strcmp(entry.name, "a/..b") == 0);
	EXPECT(!cpio_next(&reader, &entry) && reader.done);
}

TEST(program_cpio, bad_names_are_refused)
{
	static const char *const bad[] = {"..", "../a", "a/..", "a/../b", "/.."};
	size_t at;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		begin();
		add(bad[i], 0100644, "");
		refused(0, "..");
	}
	begin();
	at = add("name", 0100644, "");
	add("TRAILER!!!", 0, "");
	set_number(at, AT_NAME_SIZE, 0);
	refused(0, "without a name");
	set_number(at, AT_NAME_SIZE, 4);
	refused(0, "in the wrong place");
	set_number(at, AT_NAME_SIZE, 6);
	refused(0, "in the wrong place");
	set_number(at, AT_NAME_SIZE, 0xffffffff);
	refused(0, "inside a name");
	length = IMAGE_MAX;
	set_number(at, AT_NAME_SIZE, CPIO_NAME_MAX + 2);
	refused(0, "more than 1024");
}

TEST(program_cpio, bad_headers_are_refused)
{
	size_t at;

	begin();
	add("good", 0100644, "1");
	refused(1, "without its last entry");
	at = add("name", 0100644, "text");
	add("TRAILER!!!", 0, "");
	set_number(at, AT_SIZE, 0xffffffff);
	refused(1, "beyond the end");
	image[at + AT_SIZE] = 'g';
	refused(1, "not hexadecimal");
	image[at + 5] = '2';
	refused(1, "070701");
	EXPECT(!cpio_is(image + at, length - at));
	EXPECT(!cpio_is(image, 5));
}

TEST(program_cpio, hard_links_without_contents_are_refused)
{
	const char *error;
	size_t at;

	begin();
	at = add("name", 0100644, "");
	add("TRAILER!!!", 0, "");
	set_number(at, AT_LINKS, 2);
	refused(0, "hard link");
	set_number(at, AT_MODE, 0040755); /* a folder has many */
	EXPECT_EQ(count(&error), 1);
	EXPECT(!error);
}

TEST(program_cpio, truncated_at_every_length_reads_nothing_beyond)
{
	static u8 whole[IMAGE_MAX];
	size_t all;

	begin();
	add("a.out", 0100755, "ELF");
	add("file", 0100644, "text of a file");
	add("TRAILER!!!", 0, "");
	all = length;
	memcpy(whole, image, sizeof(whole));
	for (length = 0; length < all; length++) {
		const char *error, *other;
		unsigned n;

		memcpy(image, whole, length);
		memset(image + length, 0, IMAGE_MAX - length);
		n = count(&error);
		memset(image + length, 0xff, IMAGE_MAX - length);
		EXPECT_EQ(count(&other), n);
		EXPECT(error == other);
		EXPECT(error || length >= all - 4); /* the last padding may be missing */
	}
}
