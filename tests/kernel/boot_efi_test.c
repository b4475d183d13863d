/* BOOTX64.EFI: what it reads of text, load options and UEFI's memory map (boot/efi/handover.h). */
#include "boot/efi/handover.c"

#include "tests/kernel/test.h"

static struct handover got;
static u8 bytes[BOOT_CMDLINE_MAX * 2];

static const char *read_text(const char *text)
{
	memset(&got, 0, sizeof(got));
	return handover_read_text((const u8 *)text, strlen(text), &got);
}

static bool text_is(const char *text, const char *words)
{
	return !read_text(text) && strcmp(got.words, words) == 0;
}

TEST(boot_efi, lines_are_words_or_modules)
{
	EXPECT(text_is("", ""));
	EXPECT(text_is("\r\n \r\n", ""));
	EXPECT(text_is("test=mm.*", "test=mm.*"));
	EXPECT(text_is("\xef\xbb\xbf"
		       "a=b \r\nmodules\r\n\nc",
		       "a=b modules c"));
	EXPECT_EQ(got.modules, 0);
	EXPECT(text_is("a\nmodule /x.cpio one  two\r\nb\nmodule y", "a b"));
	EXPECT_EQ(got.modules, 2);
	EXPECT(!got.once && text_is("a\nonce \r\nonce b", "a once b") && got.once);
	EXPECT(text_is("a\nmodule /x.cpio one  two\r\nb\nmodule y", "a b"));
	EXPECT(strcmp(got.module[0], "/x.cpio one  two") == 0 && strcmp(got.module[1], "y") == 0);
}

/* A text of exactly the room is read, and one that is longer by a byte is refused. */
TEST(boot_efi, what_does_not_fit_is_refused)
{
	memset(&got, 0, sizeof(got));
	memset(bytes, 'a', sizeof(bytes));
	EXPECT(!handover_read_text(bytes, BOOT_CMDLINE_MAX - 1, &got));
	EXPECT_EQ(strlen(got.words), BOOT_CMDLINE_MAX - 1);
	EXPECT(handover_read_text((const u8 *)"b", 1, &got) != NULL);
	memset(&got, 0, sizeof(got));
	EXPECT(handover_read_text(bytes, BOOT_CMDLINE_MAX, &got) != NULL);
	memcpy(bytes, "module ", 7);
	memset(&got, 0, sizeof(got));
	EXPECT(!handover_read_text(bytes, 7 + BOOT_MODULE_TEXT_MAX - 1, &got));
	EXPECT(handover_read_text(bytes, 7 + BOOT_MODULE_TEXT_MAX, &got) != NULL);
	for (size_t n = 0; n < BOOT_MODULES_MAX; n++)
		memcpy(bytes + 9 * n, "module m\n", 9);
	memset(&got, 0, sizeof(got));
	EXPECT(!handover_read_text(bytes, 9 * BOOT_MODULES_MAX, &got));
	EXPECT(handover_read_text((const u8 *)"module n", 8, &got) != NULL);
	EXPECT(handover_read_text((const u8 *)"a\0b", 3, &got) != NULL);
}

/* Load options: the text as UTF-16, with its last zero if `ended`. */
static bool options_are(const char *text, bool ended, const char *words)
{
	const size_t len = strlen(text);

	memset(bytes, 0, sizeof(bytes));
	for (size_t i = 0; i < len; i++)
		bytes[2 * i] = (u8)text[i];
	read_text("of the text");
	handover_read_options(bytes, 2 * (len + ended), &got);
	return strcmp(got.words, words) == 0;
}

TEST(boot_efi, load_options_replace_the_words_if_they_are_text)
{
	EXPECT(options_are("a=b c", true, "a=b c"));
	EXPECT(options_are("a=b c", false, "a=b c"));
	EXPECT(options_are("FS0:\\A.EFI  a=b", true, "a=b"));
	EXPECT(options_are("efi a", true, "efi a"));
	EXPECT(options_are("", true, "of the text"));
	EXPECT(options_are("", false, "of the text"));
	EXPECT(options_are("fs0:\\a.efi ", true, "of the text"));
	EXPECT(options_are("a\tb", true, "of the text"));
	options_are("ab", true, "ab");
	bytes[3] = 1;
	read_text("of the text");
	EXPECT(!handover_read_options(bytes, 6, &got));
	memset(bytes, 0, sizeof(bytes));
	for (size_t i = 0; i < BOOT_CMDLINE_MAX; i++)
		bytes[2 * i] = 'a';
	EXPECT(handover_read_options(bytes, 2 * (BOOT_CMDLINE_MAX - 1), &got));
	EXPECT_EQ(strlen(got.words), BOOT_CMDLINE_MAX - 1);
	EXPECT(!handover_read_options(bytes, 2 * BOOT_CMDLINE_MAX, &got));
}

/* Boot services' memory counts, runtime services' does not; entries are wider than known. */
TEST(boot_efi, ram_of_a_range_is_what_will_be_ram)
{
	enum { ENTRY = 48 };
	static const struct efi_memory map[] = {{.type = 7, .start = MIB(1), .pages = 512},
						{.type = 4, .start = MIB(3), .pages = 256},
						{.type = 6, .start = MIB(4), .pages = 256},
						{.type = 2, .start = MIB(6), .pages = 256},
						{.type = 7, .start = MIB(8), .pages = ~0ULL}};

	for (size_t i = 0; i < ARRAY_LEN(map); i++)
		memcpy(bytes + ENTRY * i, &map[i], sizeof(map[i]));
	EXPECT_EQ(handover_ram_between(bytes, 5 * ENTRY, ENTRY, MIB(2), MIB(4)), MIB(2));
	EXPECT_EQ(handover_ram_between(bytes, 5 * ENTRY, ENTRY, MIB(2), MIB(7)), MIB(3));
	EXPECT_EQ(handover_ram_between(bytes, 5 * ENTRY, ENTRY, MIB(9), MIB(10)), MIB(1));
	EXPECT_EQ(handover_ram_between(bytes, 5 * ENTRY - 1, ENTRY, MIB(9), MIB(10)), 0);
	EXPECT_EQ(handover_ram_between(bytes, 5 * ENTRY, 39, MIB(2), MIB(4)), 0);
	EXPECT_EQ(handover_ram_between(bytes, 0, ENTRY, 0, ~0ULL), 0);
}

/* The writer's sums and the reader's agree, also where new bytes overwrite old ones. */
TEST(boot_efi, the_sums_of_a_log_stay_right_when_it_wraps)
{
	enum { SIZE = 10 };
	static const char *const parts[] = {"first", "", "seconds", "0123456789", "x", "ninebytes"};
	u64 memory[(sizeof(struct log_record) + SIZE) / 8 + 1] = {0};
	struct log_record *log = (struct log_record *)memory;
	size_t end = 0;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		log_record_append(log, SIZE, parts[i], strlen(parts[i]));
		end += strlen(parts[i]);
		EXPECT(log_record_valid(log, sizeof(memory)));
		EXPECT_EQ(log->end, end);
		EXPECT_EQ(log->sum, handover_log_sum(log));
	}
	EXPECT(memcmp(log->text, "esxninebyt", SIZE) == 0);
}

/* A log is found on any page, if it lies there as a whole and its head is right. */
TEST(boot_efi, a_log_is_found_if_its_head_is_right)
{
	enum { SIZE = 100, PLACE = 4096 };
	static u8 memory[2 * PLACE] __attribute__((aligned(4096)));
	struct log_record *log = (struct log_record *)(memory + PLACE);
	const size_t whole = PLACE + sizeof(*log) + SIZE;

	memset(memory, 0, sizeof(memory));
	EXPECT(!handover_find_log(memory, sizeof(memory)));
	*log = (struct log_record){.magic = LOG_MAGIC, .end = 3, .size = SIZE};
	memcpy(log->text, "a\xffz", 3);
	log->sum = handover_log_sum(log);
	EXPECT_EQ(log->sum, 'a' + 0xff + 'z');
	log->head = log_record_head(log);
	EXPECT(handover_find_log(memory, sizeof(memory)) == log);
	EXPECT(handover_find_log(memory, whole) == log);
	EXPECT(!handover_find_log(memory, whole - 1));
	EXPECT(!handover_find_log(memory, PLACE + 1));
	for (size_t at = 0; at < offsetof(struct log_record, text); at++) {
		memory[PLACE + at] ^= 0x10;
		EXPECT(!handover_find_log(memory, sizeof(memory)));
		memory[PLACE + at] ^= 0x10;
	}
	log->size = (u32)LOG_SIZE_MAX + 1;
	log->head = log_record_head(log);
	EXPECT(!log_record_valid(log, GIB(1)));
}

/* Also the log that was filled to its last byte, whose newest byte is the text's last. */
TEST(boot_efi, a_full_log_is_saved_from_its_oldest_byte)
{
	EXPECT_EQ(handover_log_older(&(struct log_record){.end = 0, .size = 100}), 0);
	EXPECT_EQ(handover_log_older(&(struct log_record){.end = 99, .size = 100}), 0);
	EXPECT_EQ(handover_log_older(&(struct log_record){.end = 100, .size = 100}), 100);
	EXPECT_EQ(handover_log_older(&(struct log_record){.end = 101, .size = 100}), 99);
	EXPECT_EQ(handover_log_older(&(struct log_record){.end = 199, .size = 100}), 1);
}
