/*
 * The program among the loader's modules: see module.h.
 *
 * A module is looked at only if the direct map shows all of it, because a loader may say anything.
 */
#include "kernel/program/module.h"

#include <arch/memory.h>

#include "boot/boot_info.h"
#include "kernel/console/command.h"
#include "kernel/console/input.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/lib/format.h"
#include "kernel/lib/string.h"
#include "kernel/program/cpio.h"
#include "kernel/program/elf.h"
#include "kernel/program/program.h"
#include "kernel/program/timers.h"
#include "mm/map/memblock.h"

static const char *program_name;
OPTION_TEXT(program, program_name, "run this program of the files that the loader passed");

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
}

static void take_name(struct program_source *source)
{
	arguments_of(&source->args, source->name, strlen(source->name) + 1);
}

/* A file of words: for the arguments, unless the module's text had them, or the environment. */
static int take_words(const struct cpio_entry *entry, struct program_source *source)
{
	struct arguments *words = NULL;

	if (strcmp(entry->name, "proc/self/environ") == 0)
		words = &source->environment;
	if (strcmp(entry->name, "proc/self/cmdline") == 0 && source->args.count == 0)
		words = &source->args;
	if (!words || arguments_of(words, entry->data, entry->size) == 0)
		return 0;
	pr_err("program: the last word of %s has no zero byte behind it", entry->name);
	return -EINVAL;
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
		const int err = take_words(&entry, source);

		if (err)
			return err;
		if (!source->elf && is_program(&entry, wanted))
			take_entry(&entry, source);
	}
	if (!reader.error)
		return 0;
	pr_err("program: %s: entry \"%s\" at byte %llu of the module", reader.error, entry.name,
	       reader.at);
	return -EINVAL;
}

/* A module that is an ELF: its text is a name and arguments. Returns 0, or -EINVAL. */
static int take_elf(const struct boot_module *module, const void *bytes,
		    struct program_source *source)
{
	static char words[BOOT_MODULE_TEXT_MAX];

	source->elf = bytes;
	source->elf_size = module->size;
	if (arguments_split(&source->args, module->text, words, sizeof(words)) < 0) {
		pr_err("program: a quote is left open in the module's text: %s", module->text);
		return -EINVAL;
	}
	source->name = source->args.count ? words : "program";
	return 0;
}

/* The first module that is an ELF, and the first that is a cpio image. Returns 0, or -EINVAL. */
static int look_at_modules(const struct boot_info *info, struct program_source *source)
{
	int err = 0;

	*source = (struct program_source){.name = ""};
	for (size_t i = 0; i < info->modules; i++) {
		const struct boot_module *module = &info->module[i];
		const void *bytes = module_bytes(module);

		if (!bytes) {
			pr_warn("module %zu at 0x%llx, %llu bytes, is not in RAM: ignored", i,
				module->start, module->size);
		} else if (!source->elf && elf_is(bytes, module->size)) {
			err = take_elf(module, bytes, source);
		} else if (!source->cpio && cpio_is(bytes, module->size)) {
			source->cpio = bytes;
			source->cpio_size = module->size;
		}
	}
	return err;
}

/* Of what look_at_modules() found, choose the program. */
static int choose(const char *wanted, struct program_source *source)
{
	int err = 0;

	if (wanted && !*wanted)
		wanted = NULL;
	if (source->cpio)
		err = search_cpio(wanted, source);
	if (source->elf && source->args.count == 0)
		take_name(source);
	if (err || source->elf)
		return err;
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
	const int err = look_at_modules(info, source);

	return err ? err : choose(wanted, source);
}

static struct program_source found, chosen; /* module_program(): before and after the choice */

int module_program(struct program_source *source)
{
	static bool looked;
	static int err;

	if (!looked) {
		err = look_at_modules(&boot_info, &found);
		chosen = found;
		err = err ? err : choose(program_name, &chosen);
	}
	looked = true;
	*source = chosen;
	return err;
}

/* The n-th file of the image that is_program(). */
static bool nth_of_image(unsigned n, const char *name, struct program_source *source)
{
	struct cpio_reader reader = cpio_reader(source->cpio, source->cpio_size);
	struct cpio_entry entry;

	while (source->cpio && cpio_next(&reader, &entry)) {
		if (!is_program(&entry, name) || n-- > 0)
			continue;
		take_entry(&entry, source);
		return true;
	}
	return false;
}

/*
 * The n-th program of the machine's modules, from 0: the ELF, if one was passed, then each
 * executable ELF of the image. False after the last.
 */
static bool module_nth(unsigned n, struct program_source *source)
{
	module_program(source);
	*source = found;
	return source->elf && n-- == 0 ? true : nth_of_image(n, NULL, source);
}

/*
 * The program of that name among them; in the image any file may be named. Only that of
 * module_program() has arguments besides its name. `name` must stay. Returns 0, or -ENOENT.
 */
static int module_named(const char *name, struct program_source *source)
{
	module_program(source);
	if (source->elf && strcmp(source->name, name) == 0)
		return 0;
	if (!nth_of_image(0, name, source))
		return -ENOENT;
	take_name(source);
	return 0;
}

bool module_wanted(void)
{
	struct program_source source;

	return module_program(&source) != -ENOENT;
}

/*
 * ---- the monitor's command that runs a program of the loader's modules ----
 *
 * The program runs on the boot CPU, as commands do, and its threads on the others. The timer of the
 * boot CPU looks for Ctrl-C meanwhile, because nothing of the monitor runs until the program ends.
 * A program that reads the console finds Ctrl-C itself (console_file.c).
 */

#define LOOK_NS (100 * NS_PER_MS)

static void look_for_ctrl_c(void)
{
	if (!input_stop_typed())
		return;
	input_stop_clear();
	program_interrupt();
}

static int run_named(const struct words *words)
{
	const char *name = words->word[1], *last = words->word[words->count - 1];
	struct program_source source;
	int status;

	if (module_named(name, &source) < 0)
		return cmd_error(words, "the loader passed no program \"%s\"", name);
	if (words->count > 2) /* the words lie one behind the other */
		arguments_of(&source.args, name, (u64)(last - name) + strlen(last) + 1);
	timers_call_every(LOOK_NS, look_for_ctrl_c);
	status = program_run_source(&source);
	timers_end();
	if (program_was_interrupted()) {
		input_stop_ask();
		return -EINTR;
	}
	if (status > 0)
		print("  %s failed: status %d\n", source.name, status);
	return status > 0 ? -EIO : status;
}

static int cmd_program(const struct words *words)
{
	struct program_source source;
	unsigned count = 0;

	if (words->count > 1)
		return run_named(words);
	for (; module_nth(count, &source); count++)
		print("  %-24s %10llu bytes\n", source.name, source.elf_size);
	if (count == 0)
		print("  the loader passed no program (make monitor PROGRAM=./a.out does)\n");
	return 0;
}

static bool program_candidate(const struct words *words, unsigned at, unsigned n, char *buf,
			      size_t size)
{
	struct program_source source;

	if (at != 1 || !module_nth(n, &source))
		return false;
	format(buf, size, "%s", source.name);
	return true;
}

COMMAND(program, .usage = "[NAME [ARG ...]]",
	.help = "run a program in ring 3, or list those that the loader passed",
	.more = "  Without an ARG the program of PROGRAM= gets its own. Ctrl-C is SIGINT for it, "
		"twice within a second SIGKILL.\n",
	.max = WORDS_MAX, .keys = "*", .run = cmd_program, .candidate = program_candidate);
