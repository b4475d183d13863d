/*
 * The reader of cpio images. A good image is built and then broken field by field.
 * tests/fuzz/cpio_fuzz.c cuts images anywhere.
 */
#include "kernel/program/cpio.h"
#include "tests/kernel/cpio_build.h"
#include "tests/kernel/test.h"

enum { IMAGE_MAX = 4096 };

/* Position of a number in the header, in the order of the format. */
enum { AT_MODE = 6 + 8, AT_LINKS = 6 + 4 * 8, AT_SIZE = 6 + 6 * 8, AT_NAME_SIZE = 6 + 11 * 8 };

static u8 image[IMAGE_MAX];
static size_t length;

/* Returns the position of the entry. */
static size_t add(const char *name, u32 mode, const char *text)
{
	const size_t at = length;

	length = cpio_append(image, length, name, mode, text, strlen(text));
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
	if (!text_has(error, words))
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

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		begin();
		add(bad[i], 0100644, "");
		refused(0, "..");
	}
}

TEST(program_cpio, bad_headers_are_refused)
{
	static const struct {
		size_t at;
		u32 value;
		const char *words;
	} bad[] = {
		{AT_NAME_SIZE, 0, "without a name"},
		{AT_NAME_SIZE, 4, "in the wrong place"},
		{AT_NAME_SIZE, 6, "in the wrong place"},
		{AT_NAME_SIZE, 0xffffffff, "inside a name"},
		{AT_SIZE, 0xffffffff, "beyond the end"},
	};
	const char *error;
	size_t at;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		begin();
		add("good", 0100644, "1");
		refused(1, "without its last entry");
		at = add("name", 0100644, "");
		add("TRAILER!!!", 0, "");
		set_number(at, bad[i].at, bad[i].value);
		refused(1, bad[i].words);
	}
	set_number(at, AT_SIZE, 0);
	set_number(at, AT_LINKS, 2);
	refused(1, "hard link");          /* without contents */
	set_number(at, AT_MODE, 0040755); /* a folder has many */
	EXPECT_EQ(count(&error), 2);
	EXPECT(!error);
	length -= CPIO_ALIGNMENT; /* the last name lacks a byte */
	refused(2, "inside a name");
	length = IMAGE_MAX;
	set_number(at, AT_NAME_SIZE, CPIO_NAME_MAX + 2);
	refused(1, "more than 1024");
	image[at + AT_SIZE] = 'g';
	refused(1, "not hexadecimal");
	image[at + 5] = '2';
	refused(1, "070701");
	EXPECT(!cpio_is(image + at, length - at));
	EXPECT(!cpio_is(image, 5));
}
