/*
 * The program among the loader's modules: see module.h.
 *
 * A module is looked at only if the direct map shows all of it, because a loader may say anything.
 */
#include "kernel/program/module.h"

#include <arch/memory.h>

#include "boot/boot_info.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "kernel/program/arguments.h"
#include "kernel/program/cpio.h"
#include "kernel/program/elf.h"
#include "mm/map/memblock.h"

static const char *program_name, *program_args, *program_env;
OPTION_TEXT(program, program_name, "run this program of the files that the loader passed");
OPTION_TEXT(program.args, program_args, "the program's arguments, quoted as for a shell");
OPTION_TEXT(program.env, program_env,
	    "the program's environment, e.g. program.env=\"HOME=/ LANG=C\"");

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* The end of the RAM that begins at or below `at` and contains it, or `at`. */
static phys_t ram_end(phys_t at)
{
	for (size_t i = 0; i < memblock_memory.count; i++) {
		const struct memblock_range *range = &memblock_memory.range[i];

		if (at >= range->start && at < range->end)
			return range->end;
	}
	return at;
}

/* The bytes of a module, or NULL if some of them are not in RAM that the kernel can reach. */
static const void *module_bytes(const struct boot_module *module)
{
	const phys_t end = module->start + module->size;
	phys_t at = module->start;

	while (at < end) {
		const phys_t next = ram_end(at);

		if (next == at)
			return NULL;
		at = next;
	}
	return phys_to_virt(module->start);
}

/* Is this entry of a cpio image the one to run? */
static bool is_program(const struct cpio_entry *entry, const char *wanted)
{
	if ((entry->mode & CPIO_TYPE) != CPIO_FILE)
		return false;
	if (wanted)
		return strcmp(entry->name, wanted) == 0;
	return (entry->mode & CPIO_EXECUTE) && elf_is(entry->data, entry->size);
}

static void take_entry(const struct cpio_entry *entry, struct program_source *source)
{
	source->elf = entry->data;
	source->elf_size = entry->size;
	source->name = entry->name;
	source->text = "";
}

/*
 * Look through a whole image, so that a wrong entry is reported before the program starts. Returns
 * 0, or -EINVAL after a message.
 */
static int search_cpio(const char *wanted, struct program_source *source)
{
	struct cpio_reader reader = cpio_reader(source->cpio, source->cpio_size);
	struct cpio_entry entry;

	while (cpio_next(&reader, &entry)) {
		if (source->elf || !is_program(&entry, wanted))
			continue;
		take_entry(&entry, source);
	}
	if (!reader.error)
		return 0;
	pr_err("program: %s: entry \"%s\" at byte %llu of the module", reader.error, entry.name,
	       reader.at);
	return -EINVAL;
}

/* A module that is an ELF: its text is a name and arguments. */
static void take_elf(const struct boot_module *module, struct program_source *source, char *name,
		     size_t name_size)
{
	const char *text = module->text;
	size_t length = 0;

	while (is_space(*text))
		text++;
	while (text[length] && !is_space(text[length]))
		length++;
	if (length >= name_size)
		length = name_size - 1;
	memcpy(name, text, length);
	name[length] = '\0';
	source->name = length ? name : "program";
	source->text = text + length;
}

/* The first module that is an ELF, and the first that is a cpio image. */
static void look_at_modules(const struct boot_info *info, struct program_source *source)
{
	static char name[BOOT_MODULE_TEXT_MAX];

	*source = (struct program_source){.name = "", .text = ""};
	for (size_t i = 0; i < info->modules; i++) {
		const struct boot_module *module = &info->module[i];
		const void *bytes = module_bytes(module);

		if (!bytes) {
			pr_warn("module %zu at 0x%llx, %llu bytes, is not in RAM: ignored", i,
				module->start, module->size);
		} else if (!source->elf && elf_is(bytes, module->size)) {
			source->elf = bytes;
			source->elf_size = module->size;
			take_elf(module, source, name, sizeof(name));
		} else if (!source->cpio && cpio_is(bytes, module->size)) {
			source->cpio = bytes;
			source->cpio_size = module->size;
		}
	}
}

/* Of what look_at_modules() found, choose the program. */
static int choose(const char *wanted, struct program_source *source)
{
	int err = 0;

	if (wanted && !*wanted)
		wanted = NULL;
	if (source->cpio)
		err = search_cpio(wanted, source);
	if (err)
		return err;
	if (source->elf)
		return 0;
	if (!wanted)
		return -ENOENT;
	if (source->cpio)
		pr_err("program: program=%s: the loader's files contain no such file", wanted);
	else
		pr_err("program: program=%s: the loader passed no files (a cpio image of format "
		       "newc) and no ELF",
		       wanted);
	return -EINVAL;
}

int module_find(const struct boot_info *info, const char *wanted, struct program_source *source)
{
	look_at_modules(info, source);
	return choose(wanted, source);
}

/* The machine's modules: an ELF, an image, or both. Looked at, and complained about, once. */
static struct program_source modules(void)
{
	static struct program_source found;
	static bool looked;

	if (!looked)
		look_at_modules(&boot_info, &found);
	looked = true;
	return found;
}

int module_program(struct program_source *source)
{
	static struct program_source chosen;
	static bool looked;
	static int err;

	if (!looked) {
		chosen = modules();
		err = choose(program_name, &chosen);
	}
	looked = true;
	*source = chosen;
	return err;
}

bool module_nth(unsigned n, struct program_source *source)
{
	struct cpio_reader reader;
	struct cpio_entry entry;

	*source = modules();
	if (source->elf && n-- == 0)
		return true;
	reader = cpio_reader(source->cpio, source->cpio_size);
	while (source->cpio && cpio_next(&reader, &entry)) {
		if (!is_program(&entry, NULL) || n-- > 0)
			continue;
		take_entry(&entry, source);
		return true;
	}
	return false;
}

int module_named(const char *name, struct program_source *source)
{
	struct cpio_reader reader;
	struct cpio_entry entry;

	*source = modules();
	if (source->elf && strcmp(source->name, name) == 0)
		return 0;
	reader = cpio_reader(source->cpio, source->cpio_size);
	while (source->cpio && cpio_next(&reader, &entry)) {
		if (!is_program(&entry, name))
			continue;
		take_entry(&entry, source);
		return 0;
	}
	return -ENOENT;
}

bool module_wanted(void)
{
	struct program_source source;

	return module_program(&source) != -ENOENT;
}

static int split(struct arguments *to, const char *option, const char *text)
{
	const int err = arguments_split(to, text);

	if (err == -E2BIG)
		pr_err("program: %s has more than %u words or %u bytes", option, ARGUMENTS_MAX,
		       ARGUMENTS_TEXT);
	else if (err)
		pr_err("program: a quote is left open in %s: %s", option, text);
	return err;
}

int module_arguments(const struct program_source *source, struct arguments *args,
		     struct arguments *environment)
{
	int err;

	arguments_clear(args);
	arguments_clear(environment);
	err = arguments_add(args, source->name);
	if (!err && program_args)
		err = split(args, "program.args=", program_args);
	else if (!err)
		err = split(args, "the module's text", source->text);
	if (!err && program_env)
		err = split(environment, "program.env=", program_env);
	return err;
}
