/*
 * Boot information: the multiboot2 parser.
 *
 * Good blocks are built by hand, then truncated at every length, and then given wrong words. To
 * show that the parser never reads beyond the end, every truncated block is parsed twice, with
 * different bytes after its end. The results must be identical to the bit.
 */
#include "tests/kernel/boot_block.h"
#include "tests/kernel/scratch.h"

struct boot_info shared_info;
static struct boot_info *other;
static u8 cut[BLOCK_MAX] __attribute__((aligned(8)));

static size_t tag_at;

static void mb2_begin(void)
{
	memset(block, 0, sizeof(block));
	used = 0;
	put_u64(0);
}

static void tag_begin(u32 type)
{
	used = ALIGN_UP(used, 8);
	tag_at = used;
	put_u32(type);
	put_u32(0);
}

static void tag_end(void)
{
	set_u32(tag_at + 4, (u32)(used - tag_at));
}

static void mb2_end(void)
{
	tag_begin(0);
	tag_end();
	set_u32(0, (u32)used);
}

static void tag_text(u32 type, const char *text)
{
	tag_begin(type);
	put(text, strlen(text) + 1);
	tag_end();
}

static void tag_module(u32 start, u32 end, const char *text)
{
	tag_begin(3);
	put_u32(start);
	put_u32(end);
	put(text, strlen(text) + 1);
	tag_end();
}

/* Add a memory map with entries of `size` bytes, at least 24. */
static void tag_memory_map(u32 size, const struct mem_range *range, const u32 *type, size_t count)
{
	tag_begin(6);
	put_u32(size);
	put_u32(0);
	for (size_t i = 0; i < count; i++) {
		put_u64(range[i].start);
		put_u64(range[i].end - range[i].start);
		put_u32(type[i]);
		for (u32 pad = 20; pad < size; pad += 4)
			put_u32(0xeeeeeeee);
	}
	tag_end();
}

static const struct mem_range pc_map[] = {{.end = 0x9fc00},
					  {.start = 0x9fc00, .end = 0xa0000},
					  {.start = 0x100000, .end = 0x4000000}};
static const u32 pc_types[] = {1, 2, 1};

static void mb2_good(void)
{
	static const u8 rsdp[36] = "RSD PTR ";

	mb2_begin();
	tag_text(1, "loglevel=3 test=*");
	tag_text(2, "GRUB 2.06");
	tag_module(0x800000, 0x801234, "m");
	tag_memory_map(24, pc_map, pc_types, ARRAY_LEN(pc_map));
	tag_begin(15);
	put(rsdp, sizeof(rsdp));
	tag_end();
	mb2_end();
}

TEST(boot_multiboot2, truncated_at_every_length_reads_nothing_beyond)
{
	mb2_good();
	other = SCRATCH(struct boot_info, 1);
	for (size_t len = 0; len < used; len++) {
		int ret;

		memset(cut, 0, sizeof(cut));
		memcpy(cut, block, len);
		reset(&shared_info, QUIET);
		ret = multiboot2_parse(cut, len, &shared_info);

		memset(cut, 0xff, sizeof(cut));
		memcpy(cut, block, len);
		reset(other, QUIET);
		EXPECT_EQ(multiboot2_parse(cut, len, other), ret);
		EXPECT(memcmp(&shared_info, other, sizeof(shared_info)) == 0);
		EXPECT(shared_info.faults > QUIET);
		EXPECT_EQ(ret, len < 16 ? -EINVAL : 0);
	}
}

/*
 * Overwrite one 32-bit word of the good block with `value`. The result must be well formed and
 * bounded.
 */
static void lie(size_t at, u32 value)
{
	mb2_good();
	set_u32(at, value);
	memcpy(cut, block, sizeof(cut));
	memset(cut + used, 0, sizeof(cut) - used);
	reset(&shared_info, QUIET);
	(void)multiboot2_parse(cut, used, &shared_info);
	memset(cut + used, 0xff, sizeof(cut) - used);
	reset(other, QUIET);
	(void)multiboot2_parse(cut, used, other);
	EXPECT(memcmp(&shared_info, other, sizeof(shared_info)) == 0);
	EXPECT(shared_info.cmdline_len < BOOT_CMDLINE_MAX &&
	       shared_info.cmdline[shared_info.cmdline_len] == '\0');
	EXPECT(shared_info.ranges <= BOOT_RANGES_MAX);
}

TEST(boot_multiboot2, lying_words_are_harmless)
{
	static const u32 lies[] = {0, 1, 7, 8, 9, 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff};

	other = SCRATCH(struct boot_info, 1);
	mb2_good();
	for (size_t at = 0, end = used; at < end; at += 4) {
		for (size_t i = 0; i < ARRAY_LEN(lies); i++)
			lie(at, lies[i]);
	}
}

/* A tag with one byte less than is read of its type is skipped and named, and the next is used. */
TEST(boot_multiboot2, a_tag_that_is_too_short_is_skipped)
{
	static const struct {
		u32 type, least;
	} tags[] = {{3, 8}, {6, 8}, {8, 24}, {14, 20}, {15, 36}, {17, 8}};

	for (size_t i = 0; i < 2 * ARRAY_LEN(tags); i++) {
		const u32 type = tags[i / 2].type, less = i % 2;

		mb2_begin();
		memset(block, 0xff, sizeof(block));
		tag_begin(type);
		put_u32(48); /* of an entry; or where a module begins */
		used += tags[i / 2].least - 4 - less;
		tag_end();
		used = ALIGN_UP(used, 8);
		mb2_end();
		reset(&shared_info, QUIET);
		EXPECT_EQ(multiboot2_parse(block, used, &shared_info), 0);
		EXPECT_EQ(shared_info.faults, QUIET + less + 1 /* no memory map */);
		EXPECT_EQ(shared_info.modules, type == 3 && !less);
		EXPECT_EQ(shared_info.rsdp_copy_len,
			  type / 2 == 7 && !less ? tags[i / 2].least : 0);
		EXPECT(memcmp(shared_info.rsdp_copy, block + 16, shared_info.rsdp_copy_len) == 0);
		EXPECT_EQ(shared_info.framebuffer.type, type == 8 && !less ? 0xff : 0);
		if (test_failed()) {
			print("  # a tag of type %u, %u bytes less\n", type, less);
			return;
		}
	}
}

TEST(boot_multiboot2, a_framebuffer_is_read_as_it_is_described)
{
	for (u32 type = 0; type < 2;
	     type++) { /* indexed colours, which no driver supports, and RGB */
		const struct boot_framebuffer *fb = &shared_info.framebuffer;

		mb2_begin();
		tag_begin(8);
		put_u64(0x123456789a);
		put_u32(4099);
		put_u32(1024);
		put_u32(768);
		put_u32(32 | type << 8);
		tag_end();
		mb2_end();
		reset(&shared_info, QUIET);
		EXPECT_EQ(multiboot2_parse(block, used, &shared_info), 0);
		EXPECT_EQ(fb->addr, type ? 0x123456789a : 0);
		EXPECT_EQ(fb->pitch, type ? 4099 : 0);
		EXPECT(type ? fb->width == 1024 && fb->height == 768 : !fb->width && !fb->height);
		EXPECT(type ? fb->bpp == 32 && fb->type == 1 : !fb->bpp && !fb->type);
	}
}

TEST(boot_multiboot2, texts_of_modules_are_bounded)
{
	static char text[BOOT_MODULE_TEXT_MAX + 9];

	memset(text, 'x', sizeof(text) - 1);
	mb2_begin();
	tag_module(0x800000, 0x801000, "a.out one two");
	tag_module(0x802000, 0x803000, text);
	tag_module(0x804000, 0x805000, "");
	tag_begin(3); /* without a text */
	put_u32(0x806000);
	put_u32(0x807000);
	tag_end();
	tag_begin(3); /* its text does not end */
	put_u32(0x808000);
	put_u32(0x809000);
	put("abc", 3);
	tag_end();
	mb2_end();
	reset(&shared_info, QUIET);
	EXPECT_EQ(multiboot2_parse(block, used, &shared_info), 0);
	REQUIRE(shared_info.modules == 5);
	EXPECT(strcmp(shared_info.module[0].text, "a.out one two") == 0);
	EXPECT_EQ(strlen(shared_info.module[1].text), BOOT_MODULE_TEXT_MAX - 1);
	EXPECT(shared_info.module[2].text[0] == '\0' && shared_info.module[3].text[0] == '\0');
	EXPECT(strcmp(shared_info.module[4].text, "abc") == 0);
	EXPECT_EQ(shared_info.faults,
		  QUIET + 3); /* a text cut, one without its end, no memory map */
}

enum { EFI_LOADER_DATA = 2, EFI_RUNTIME = 6, EFI_CONVENTIONAL = 7, ANY_CACHE = 0xf, SP = 1 << 18 };

static void put_efi(u64 start, u64 size, u32 type, u64 attributes)
{
	put_u32(type);
	put_u32(0);
	put_u64(start);
	put_u64(0);
	put_u64(size >> PAGE_SHIFT);
	put_u64(attributes);
	put_u64(0); /* entries are longer than what is known of them */
}

/* A map of UEFI, and beside it the BIOS's, in which all is RAM. */
static void efi_map(u64 attributes)
{
	mb2_begin();
	tag_memory_map(24, pc_map, pc_types, ARRAY_LEN(pc_map));
	tag_begin(17);
	put_u32(48);
	put_u32(1);
	put_efi(MIB(1), MIB(15), EFI_CONVENTIONAL, attributes);
	put_efi(MIB(16), MIB(16), EFI_CONVENTIONAL, ANY_CACHE | SP);
	put_efi(MIB(32), MIB(8), EFI_LOADER_DATA, 1 /* uncached only */);
	put_efi(MIB(40), MIB(8), EFI_RUNTIME, 1ULL << 63);
	put_efi(GIB(4), 0, EFI_CONVENTIONAL, SP);
	tag_end();
	mb2_end();
	reset(&shared_info, 0);
	EXPECT_EQ(multiboot2_parse(block, used, &shared_info), 0);
}

TEST(boot_multiboot2, memory_that_uefi_marks_is_reserved_and_named)
{
	said_begin();
	efi_map(ANY_CACHE);
	said_end();
	REQUIRE(shared_info.ranges == 4);
	EXPECT(shared_info.range[0].kind == MEM_RAM && shared_info.range[0].end == MIB(16));
	EXPECT(shared_info.range[1].kind == MEM_RESERVED && shared_info.range[1].start == MIB(16));
	EXPECT(shared_info.range[2].kind == MEM_RESERVED &&
	       shared_info.range[3].kind == MEM_RESERVED);
	/* types are stored plus one, because zero says that there is none */
	EXPECT_EQ(shared_info.range[0].efi_type, EFI_CONVENTIONAL + 1);
	EXPECT_EQ(shared_info.range[0].efi_attributes, ANY_CACHE);
	EXPECT_EQ(shared_info.range[1].efi_attributes, ANY_CACHE | SP);
	EXPECT_EQ(shared_info.range[3].efi_type, EFI_RUNTIME + 1);
	EXPECT_EQ(shared_info.faults, 2);
	EXPECT(said_says("*16384 KiB at 1000000 are for a special purpose*"));
	EXPECT(said_says("*8192 KiB at 2000000 are not cacheable*"));
}

/* A map without any RAM that can be used is not believed. */
TEST(boot_multiboot2, a_map_whose_ram_is_all_marked_gives_way_to_the_bios_map)
{
	efi_map(0);
	REQUIRE(shared_info.ranges > 4);
	EXPECT(shared_info.range[shared_info.ranges - 1].kind == MEM_RAM);
}
