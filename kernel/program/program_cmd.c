/*
 * The monitor's command that runs a program of the loader's modules.
 *
 * The program runs on the boot CPU, as commands do, and its threads on the others. The timer of the
 * boot CPU looks for Ctrl-C meanwhile, because nothing of the monitor runs until the program ends.
 * A program that reads the console finds Ctrl-C itself (console_file.c).
 */

#include "kernel/console/command.h"
#include "kernel/console/input.h"
#include "kernel/core/printk.h"
#include "kernel/lib/format.h"
#include "kernel/lib/string.h"
#include "kernel/program/module.h"
#include "kernel/program/program.h"
#include "kernel/program/timers.h"

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
