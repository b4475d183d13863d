/*
 * The parser of programs. A good image is built by hand, and each case breaks one field of it.
 *
 *	0x0000  header, program headers      0x400000  r
 *	0x1000  text                         0x401000  r x
 *	0x2000  data                         0x402080  r w, then zero bytes up to 0x404080
 */
#include "kernel/program/elf.h"
#include "tests/kernel/fixture.h"
#include "tests/kernel/test.h"

struct image_header {
	u8 magic[4], class, data, version, abi, pad[8];
	u16 type, machine;
	u32 file_version;
	u64 entry, phdrs, sections;
	u32 flags;
	u16 size, phdr_size, phdr_count, section_size, section_count, section_names;
};

struct image_phdr {
	u32 type, flags;
	u64 offset, virt, phys, file_bytes, memory_bytes, align;
};

enum { READ, TEXT, DATA, STACK, INTERPRETER, PHDRS };
enum { PT_LOAD = 1, PT_INTERP = 3, PT_GNU_STACK = 0x6474e551 };

static struct image {
	struct image_header header;
	struct image_phdr phdr[PHDRS];
	u8 text[0x2000 - sizeof(struct image_header) - PHDRS * sizeof(struct image_phdr)];
	u8 data[0x100];
} image __attribute__((aligned(8)));

static const struct elf_limits limits = {0x10000, 0x7ffffffff000, 0x555555554000};
static struct elf_image elf;

static bool good(void)
{
	memset(&image, 0, sizeof(image));
	memcpy(image.header.magic, "\177ELF", 4);
	image.header.class = 2;
	image.header.data = image.header.version = 1;
	image.header.type = 2;
	image.header.machine = 62;
	image.header.entry = 0x401000;
	image.header.phdrs = sizeof(image.header);
	image.header.phdr_size = sizeof(struct image_phdr);
	image.header.phdr_count = PHDRS;
	image.phdr[READ] =
		(struct image_phdr){PT_LOAD, 4, 0, 0x400000, 0x400000, 0x800, 0x800, 0x1000};
	image.phdr[TEXT] =
		(struct image_phdr){PT_LOAD, 5, 0x1000, 0x401000, 0x401000, 0x180, 0x180, 0x1000};
	image.phdr[DATA] =
		(struct image_phdr){PT_LOAD, 6, 0x2080, 0x402080, 0x402080, 0x80, 0x2000, 0x1000};
	image.phdr[STACK] = (struct image_phdr){.type = PT_GNU_STACK, .flags = 6};
	image.phdr[INTERPRETER] = (struct image_phdr){
		PT_INTERP, 4, offsetof(struct image, text), 0x400000, 0, 8, 8, 1};
	memcpy(image.text, "/lib/ld", 8);
	return true;
}

static void nothing(void)
{
}

FIXTURE(program_elf, good, nothing);

/* The image must be taken. */
static void taken(void)
{
	u64 value = 0;
	const char *why = elf_parse(&image, sizeof(image), limits, &elf, &value);

	if (why)
		test_fail(__FILE__, __LINE__, "refused: %s (0x%llx)", why, value);
}

/* The image must be refused, with these words and this value. The next one is good again. */
static void refused(const char *words, u64 expected)
{
	u64 value = ~0ULL;
	const char *why = elf_parse(&image, sizeof(image), limits, &elf, &value);

	REQUIRE(why);
	if (!text_has(why, words))
		test_fail(__FILE__, __LINE__, "refused with \"%s\", without \"%s\"", why, words);
	EXPECT_EQ(value, expected);
	good();
}

static void good_pie(void)
{
	good();
	image.header.type = 3;
	image.header.entry -= 0x400000;
	for (unsigned i = 0; i < 3; i++)
		image.phdr[i].virt -= 0x400000;
}

/* Where its bias puts it. The alignment, which moves the bias, is known only at the end. */
TEST(program_elf, a_pie_program_ends_below_the_limit)
{
	const u64 most = limits.end - limits.pie_base - ELF_ALIGN_MAX - 0x2080;

	good_pie();
	image.phdr[DATA].memory_bytes = most;
	image.phdr[READ].align = ELF_ALIGN_MAX;
	taken();
	EXPECT_EQ(elf.bias, ALIGN_UP(limits.pie_base, ELF_ALIGN_MAX));
	EXPECT(elf.bias + elf.high <= limits.end);
	image.phdr[DATA].memory_bytes = most + 1;
	refused("above the addresses", 0x2080);
	good_pie();
	image.phdr[DATA].memory_bytes = -limits.pie_base - 0x2080; /* round the end, to 0 */
	refused("above the addresses", 0x2080);
}

#define FIELD(f) __builtin_offsetof(struct image, f), sizeof(image.f)

/* One wrong field: what is said, and the value that is named. */
static const struct {
	size_t at, bytes;
	u64 value;
	const char *words;
	u64 named;
} wrong[] = {
	{FIELD(header.magic[3]), 'G', "not an ELF", sizeof(image)},
	{FIELD(header.class), 1, "64-bit", 1},
	{FIELD(header.data), 2, "byte order", 2},
	{FIELD(header.version), 2, "version", 2},
	{FIELD(header.machine), 183, "another machine", 183},
	{FIELD(header.type), 1, "not a program", 1},
	{FIELD(header.phdr_size), 32, "56 bytes", 32},
	{FIELD(header.phdr_count), 0, "no program headers", 0},
	{FIELD(header.phdr_count), 0xffff, "more than 128", 0xffff},
	{FIELD(header.phdrs), sizeof(image) - 56 * PHDRS + 1, "truncated",
	 sizeof(image) - 56 * PHDRS + 1},
	{FIELD(header.phdrs), ~0ULL - 8, "truncated", ~0ULL - 8},
	{FIELD(header.entry), 0x400000, "entry", 0x400000},
	{FIELD(header.entry), 0x401180, "entry", 0x401180},
	{FIELD(header.entry), 0, "entry", 0},
	{FIELD(phdr[TEXT].flags), 6, "entry", 0x401000},
	{FIELD(phdr[TEXT].virt), 0x400000, "overlap", 0x400000},
	{FIELD(phdr[READ].virt), 0xf000, "below the addresses", 0xf000},
	{FIELD(phdr[INTERPRETER].file_bytes), 7, "no text", 7},
	{FIELD(phdr[INTERPRETER].file_bytes), 1, "no text", 1},
	{FIELD(phdr[INTERPRETER].file_bytes), 4097, "no text", 4097},
	{FIELD(phdr[INTERPRETER].file_bytes), ~0ULL, "name lies beyond",
	 offsetof(struct image, text)},
	{FIELD(phdr[INTERPRETER].offset), sizeof(image) - 7, "name lies beyond", sizeof(image) - 7},
	{FIELD(phdr[INTERPRETER].offset), ~0ULL, "name lies beyond", ~0ULL},
	{FIELD(text[0]), 0, "no text", 8},
	{FIELD(phdr[DATA].file_bytes), 0x2001, "more bytes in the file", 0x2001},
	{FIELD(phdr[DATA].offset), ~0ULL - 0xf7f, "beyond its end", ~0ULL - 0xf7f},
	{FIELD(phdr[DATA].virt), 0x3ff080, "ascending order", 0x3ff080},
	{FIELD(phdr[DATA].virt), 0x402090, "differ within a page", 0x402090},
	{FIELD(phdr[DATA].virt), 0xffffffff80000080, "above the addresses", 0xffffffff80000080},
	{FIELD(phdr[DATA].memory_bytes), ~0ULL - 0x402080, "above the addresses", 0x402080},
	{FIELD(phdr[DATA].memory_bytes), ~0ULL, "above the addresses", 0x402080},
	{FIELD(phdr[DATA].memory_bytes), 0x7ffffffff000 - 0x402080 + 1, "above the addresses",
	 0x402080},
	{FIELD(phdr[DATA].align), 0x3000, "power of two", 0x3000},
	{FIELD(phdr[DATA].align), GIB(2), "over 1 GiB", GIB(2)},
};

TEST(program_elf, a_wrong_field_is_named)
{
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
		memcpy((u8 *)&image + wrong[i].at, &wrong[i].value, wrong[i].bytes);
		refused(wrong[i].words, wrong[i].named);
	}
	EXPECT(elf_is(&image, 4) && !elf_is(&image, 3));
	for (unsigned i = 0; i < 3; i++)
		image.phdr[i].type = 0;
	refused("no segments", 0);
	image.phdr[READ].file_bytes = image.phdr[READ].memory_bytes = 0x1001;
	refused("overlap", 0x401000);
	image.phdr[DATA].memory_bytes = limits.end - 0x402080; /* as many as there can be */
	taken();
	EXPECT_EQ(elf.high, limits.end);
}

/* As in Linux: the later segment's rights, and the file's bytes of both. */
TEST(program_elf, a_page_of_the_file_goes_to_the_later_of_two_segments)
{
	image.phdr[READ].file_bytes = image.phdr[READ].memory_bytes = 0x1080;
	image.phdr[TEXT].virt += 0x80;
	image.phdr[TEXT].offset += 0x80;
	image.header.entry = 0x401080;
	taken();
	REQUIRE(elf.segments == 3);
	EXPECT_EQ(elf.segment[READ].memory_bytes, 0x1000);
	EXPECT_EQ(elf.segment[READ].file_bytes, 0x1000);
	EXPECT_EQ(elf.segment[TEXT].virt, 0x401000);
	EXPECT_EQ(elf.segment[TEXT].file_offset, 0x1000);
	EXPECT_EQ(elf.segment[TEXT].memory_bytes, 0x200);
	EXPECT_EQ(elf.segment[TEXT].rights, ELF_R | ELF_X);

	/* The first segment has no other page, so nothing of it is left. */
	image.phdr[READ].virt = 0x401000;
	image.phdr[READ].offset = 0x1000;
	image.phdr[READ].file_bytes = image.phdr[READ].memory_bytes = 0x80;
	taken();
	REQUIRE(elf.segments == 2);
	EXPECT_EQ(elf.low, 0x401000);
	EXPECT_EQ(elf.phdr_virt, 0);
}

TEST(program_elf, zero_bytes_with_the_same_rights_are_appended)
{
	image.phdr[3] = (struct image_phdr){.type = PT_LOAD,
					    .flags = 6,
					    .virt = 0x404080,
					    .memory_bytes = 0x1000,
					    .offset = ~0ULL};
	taken();
	REQUIRE(elf.segments == 3);
	EXPECT_EQ(elf.segment[DATA].memory_bytes, 0x3000);
	EXPECT_EQ(elf.high, 0x406000);
	image.phdr[3].virt = 0x405000; /* a segment of its own, whose offset means nothing */
	taken();
	REQUIRE(elf.segments == 4);
	EXPECT_EQ(elf.segment[3].file_offset, 0);
}

TEST(program_elf, the_first_interpreter_is_that_of_the_program)
{
	taken();
	REQUIRE(elf.interpreter);
	EXPECT(strcmp(elf.interpreter, "/lib/ld") == 0);
	image.phdr[STACK] = image.phdr[INTERPRETER];
	image.phdr[STACK].offset += 4;
	image.phdr[STACK].file_bytes -= 4;
	taken();
	EXPECT(strcmp(elf.interpreter, "/ld") == 0);
	image.phdr[STACK].type = image.phdr[INTERPRETER].type = 0;
	taken();
	EXPECT(!elf.interpreter);
}

/* Tables as a file has them. Of a section header, only the fields that are read are set. */
struct image_tables {
	u64 texts[8], symbols[8]; /* sections: type, offset, size, bytes of an entry */
	u64 symbol[9][3];         /* section, type and name; address; size */
	char text[24];
};

/* Of symbols with one address, the first that has a size is named, or else the first. */
TEST(program_elf, the_nearest_symbol_of_code_is_named)
{
	enum { AT = offsetof(struct image, text) + 64 };
	static const struct image_tables tables = {
		{3ULL << 32, [3] = AT + offsetof(struct image_tables, text), 23},
		{2ULL << 32, [3] = AT + offsetof(struct image_tables, symbol), 9 * 24, [7] = 24},
		{{0x1000200000000, 0x401000, 0x40},
		 {0x1000000000005, 0x401040, 0},
		 {0x1000000000000, 0x401040, 0},
		 {0x100020000000b, 0x401040, 0x20},
		 {0x1000200000000, 0x401040, 0x20},
		 {0x1000100000005, 0x401010, 0x40},    /* data */
		 {0x200000005, 0x401010, 0x40},        /* of another file */
		 {0xfff1000200000005, 0x401010, 0x40}, /* no address */
		 {0x1000200000011, 0x401010, 0x40}},   /* its name does not end */
		"main\0start\0sized\0no end"};
	static const struct {
		u64 addr, offset;
		const char *name;
	} want[] = {
		{0x401000, 0, "main"},     {0x40103f, 0x3f, "main"},    {0x40105f, 0x1f, "sized"},
		{0x401060, 0x20, "start"}, {0x41103f, 0xffff, "start"}, {0x411040, 0, ""},
		{0x400fff, 0, ""}};

	memcpy(image.text + 64, &tables, sizeof(tables));
	image.header.sections = AT;
	image.header.section_size = 64;
	image.header.section_count = 2;
	for (unsigned i = 0; i < ARRAY_LEN(want); i++) {
		const char *name = "";
		u64 offset = 0;

		EXPECT_EQ(elf_symbol(&image, sizeof(image), want[i].addr, &name, &offset),
			  *want[i].name != '\0');
		EXPECT(offset == want[i].offset && strcmp(name, want[i].name) == 0);
	}
}
