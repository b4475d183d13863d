/*
 * The program among modules, which lie in pages of the kernel here; and the machine's own, if its
 * loader passed one.
 */
#include <arch/memory.h>

#include "boot/boot_info.h"
#include "kernel/program/cpio.h"
#include "kernel/program/elf.h"
#include "kernel/program/module.h"
#include "mm/mm.h"
#include "tests/kernel/cpio_build.h"
#include "tests/kernel/fixture.h"
#include "tests/kernel/test.h"

extern struct boot_info shared_info; /* boot_block.h */
static struct page *page;
static char *bytes;
static size_t used;

static bool begin(void)
{
	memset(&shared_info, 0, offsetof(struct boot_info, range));
	page = page_alloc(0, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);
	bytes = page ? page_address(page) : NULL;
	used = 0;
	return page;
}

static void end(void)
{
	if (page)
		page_free(page);
}

FIXTURE(program_module, begin, end);

static void add_module(size_t start, const char *text)
{
	struct boot_module *module =
		boot_info_add_module(&shared_info, virt_to_phys(bytes + start), used - start);

	format(module->text, sizeof(module->text), "%s", text);
}

static void add_file(const char *name, u32 mode, const char *contents)
{
	used = cpio_append(bytes, used, name, mode, contents, strlen(contents));
}

static void add_files_from(size_t start)
{
	add_file("script", 0100755, "#!/bin/sh");
	add_file("lib.o", 0100644, "\177ELF object");
	add_file("a.out", 0100755, "\177ELF one");
	add_file("dir/b", 0100755, "\177ELF two");
	add_file("TRAILER!!!", 0, "");
	add_module(start, "");
}

static void add_files(void)
{
	add_files_from(used);
}

static bool words_are(const struct arguments *words, const char *expected, size_t size)
{
	return words->bytes == size && memcmp(words->text, expected, size) == 0;
}

TEST(program_module, a_program_may_be_a_module_itself)
{
	struct program_source source;

	used = cpio_append(bytes, used, "proc/self/cmdline", 0100444, "other", 6);
	add_files_from(0);
	memcpy(bytes + used, "\177ELF", 4);
	used += 4;
	add_module(used - 4, " prog one \"two three\"");
	EXPECT_EQ(module_find(&shared_info, NULL, &source), 0);
	EXPECT(strcmp(source.name, "prog") == 0);
	EXPECT_EQ(source.elf_size, 4);
	EXPECT(source.cpio == bytes);
	EXPECT(words_are(&source.args, "prog\0one\0two three", 19));
	EXPECT_EQ(source.environment.count, 0);
	format(shared_info.module[1].text, sizeof(shared_info.module[1].text), "it's");
	EXPECT_EQ(module_find(&shared_info, NULL, &source), -EINVAL);

	shared_info.module[1].text[0] = '\0';
	EXPECT_EQ(module_find(&shared_info, NULL, &source), 0);
	EXPECT(strcmp(source.name, "program") == 0);
	EXPECT(words_are(&source.args, "other", 6));
}

/* The words, and nothing of them is quoted or left out. */
TEST(program_module, an_image_has_the_words_of_its_program)
{
	static const char words[] = "./a.out\0\0it's \"\n", environment[] = "A=b c\0\303\244=";
	struct program_source source;

	add_files();
	EXPECT_EQ(module_find(&shared_info, NULL, &source), 0);
	EXPECT(words_are(&source.args, "a.out", 6));
	EXPECT_EQ(source.environment.count, 0);
	used = shared_info.modules = 0;
	used = cpio_append(bytes, used, "proc/self/cmdline", 0100444, words, sizeof(words));
	used = cpio_append(bytes, used, "proc/self/environ", 0100444, environment,
			   sizeof(environment));
	add_files_from(0);
	EXPECT_EQ(module_find(&shared_info, "dir/b", &source), 0);
	EXPECT(strcmp(source.name, "dir/b") == 0);
	EXPECT_EQ(source.args.count, 3);
	EXPECT(words_are(&source.args, words, sizeof(words)));
	EXPECT_EQ(source.environment.count, 2);
	EXPECT(words_are(&source.environment, environment, sizeof(environment)));
	shared_info.module[0].size -= 16; /* its last entry is cut off */
	EXPECT_EQ(module_find(&shared_info, "dir/b", &source), -EINVAL);

	used = shared_info.modules = 0;
	used = cpio_append(bytes, used, "proc/self/cmdline", 0100444, words, sizeof(words) - 1);
	add_files_from(0);
	EXPECT_EQ(module_find(&shared_info, NULL, &source), -EINVAL);
}

static void print_words(const char *what, const struct arguments *words)
{
	unsigned i = 0;

	for (const char *word = arguments_next(words, NULL); word;
	     word = arguments_next(words, word))
		pr_info("%s %u: %s", what, i++, word);
}

static void print_files(const struct program_source *source)
{
	struct cpio_reader reader = cpio_reader(source->cpio, source->cpio_size);
	struct cpio_entry entry;

	while (cpio_next(&reader, &entry))
		pr_info("file %o %llu %s", entry.mode, entry.size, entry.name);
	EXPECT(!reader.error);
}

/* tests/qemu/test_program.py reads these lines. Without a module the case has nothing to check. */
TEST(program_module, the_machines_own_program_is_whole)
{
	static const struct elf_limits limits = {0x10000, 0x7ffffffff000, 0x555555554000};
	static struct elf_image elf;
	struct program_source source;
	const char *why;
	u64 value;

	if (module_program(&source) == -ENOENT)
		return;
	REQUIRE(module_program(&source) == 0);
	why = elf_parse(source.elf, source.elf_size, limits, &elf, &value);
	if (why)
		test_fail(__FILE__, __LINE__, "%s: %s (0x%llx)", source.name, why, value);
	else
		pr_info("program %s: %llu bytes, %s, entry 0x%llx, headers at 0x%llx", source.name,
			source.elf_size, elf.pie ? "pie" : "fixed", elf.entry, elf.phdr_virt);
	print_words("argument", &source.args);
	print_words("environment", &source.environment);
	if (source.cpio)
		print_files(&source);
}
