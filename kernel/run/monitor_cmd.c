/*
 * The monitor's own commands: help, switches, the log, CPUs, and the commands that end the session.
 */
#include <arch/boot.h>
#include <arch/console.h>

#include "kernel/console/command.h"
#include "kernel/console/input.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/core/run_record.h"
#include "kernel/core/shootdown.h"
#include "kernel/lib/string.h"
#include "kernel/payload_run.h"

enum { VALUE_MAX = 64, VALUES_MAX = 160, LOG_CHUNK = 512 };

/* ---- help ---- */

static void print_help(const struct command *cmd)
{
	print("%s%s%s\n  %s\n", cmd->name, cmd->usage ? " " : "", cmd->usage ? cmd->usage : "",
	      cmd->help);
	if (cmd->more)
		print("%s", cmd->more);
}

static int help_one(const char *name)
{
	const struct command *cmd = command_find(name);

	if (!cmd)
		return command_unknown(name);
	print_help(cmd);
	for (cmd = command_of(name, NULL); cmd; cmd = command_of(name, cmd))
		print_help(cmd);
	return 0;
}

static void print_options(const char *begin);

static int cmd_help(const struct words *words)
{
	const char *name = words_plain(words, 1);

	if (name && strcmp(name, "options") != 0)
		return help_one(name);
	if (name) {
		print_options("");
		return 0;
	}
	for (const struct command *cmd = command_of(NULL, NULL); cmd; cmd = command_of(NULL, cmd))
		print("  %-9s %s\n", cmd->name, cmd->help);
	print("help NAME says more about a command, help options lists the options. A ; separates "
	      "commands, \"...\" keeps blanks in a word.\n");
	return 0;
}

static bool help_candidate(const struct words *words, unsigned at, unsigned n, char *buf,
			   size_t size)
{
	return at == 1 && command_candidate(NULL, &n, buf, size);
}

COMMAND(help, .usage = "[NAME | options]",
	.help = "this list, more about one command, or all options of the command line", .max = 1,
	.run = cmd_help, .candidate = help_candidate);

/* ---- options ---- */

static void print_option(const struct option *opt)
{
	char value[VALUE_MAX], values[VALUES_MAX];

	option_show(opt, value, sizeof(value));
	option_values(opt, values, sizeof(values));
	print("  %-24s %-10s %s%s: %s\n", opt->name, *value ? value : "-",
	      opt->boot_only ? "(boot) " : "", values, opt->help);
}

/* Options in the order of their names: the first one after `after`. */
static const struct option *option_after(const struct option *after)
{
	const struct option *opt, *best = NULL;

	TABLE_FOREACH(opt, option_table)
	{
		if (after && strcmp(opt->name, after->name) <= 0)
			continue;
		if (!best || strcmp(opt->name, best->name) < 0)
			best = opt;
	}
	return best;
}

static void print_options(const char *begin)
{
	for (const struct option *opt = option_after(NULL); opt; opt = option_after(opt))
		if (strncmp(opt->name, begin, strlen(begin)) == 0)
			print_option(opt);
}

/* Print the option of that name and those that begin with it and a dot. */
static int show_option(const struct words *words, const char *name)
{
	const struct option *opt = option_find(name);
	char begin[VALUE_MAX];

	if (!opt)
		return cmd_error(words, "there is no option \"%s\"; help options lists them", name);
	print_option(opt);
	format(begin, sizeof(begin), "%s.", opt->name);
	print_options(begin);
	return 0;
}

static int cmd_set(const struct words *words)
{
	int err = 0;

	if (words->count < 2)
		print_options("");
	for (unsigned i = 1; i < words->count && !err; i++)
		err = strchr(words->word[i], '=') ? cmd_option(words, words->word[i], "", NULL)
						  : show_option(words, words->word[i]);
	return err;
}

/* NAME= of every option that can be set now; once a name is typed, NAME=VALUE of its choices. */
static bool set_candidate(const struct words *words, unsigned at, unsigned n, char *buf,
			  size_t size)
{
	const char *typed = at < words->count ? words->word[at] : "";
	const bool with_value = strchr(typed, '=') != NULL;
	char value[VALUE_MAX];

	for (const struct option *opt = option_after(NULL); opt; opt = option_after(opt)) {
		if (opt->boot_only ||
		    (with_value && strncmp(opt->name, typed, strlen(opt->name)) != 0))
			continue;
		for (unsigned i = 0;
		     with_value ? option_choice(opt, i, value, sizeof(value)) : i == 0; i++) {
			if (n-- > 0)
				continue;
			format(buf, size, "%s=%s", opt->name, with_value ? value : "");
			return true;
		}
	}
	return false;
}

COMMAND(set, .usage = "[NAME | NAME=VALUE ...]", .max = WORDS_MAX,
	.help = "options and their values, or change them; (boot): only on the command line",
	.keys = "*", .run = cmd_set, .candidate = set_candidate);

/* ---- log ---- */

static int cmd_log(const struct words *words)
{
	char buf[LOG_CHUNK];
	u64 pos = 0, bytes = 0, end = ~0ULL;
	size_t len;
	int err = words_plain_count(words) > 1 ? cmd_u64(words, 1, "BYTES", 1, MIB(1), &bytes) : 0;

	if (err)
		return err;
	log_read(&end, buf, sizeof(buf)); /* nothing is there yet: end is where the log ends */
	if (bytes > 0 && end > bytes)
		pos = end - bytes;
	while (pos < end) {
		len = log_read(&pos, buf, MIN(sizeof(buf), (size_t)(end - pos)));
		if (len == 0)
			break;
		echo(buf, len); /* to the consoles only, not into the log again */
		if (input_stop_asked())
			return -EINTR;
	}
	return 0;
}

COMMAND(log, .usage = "[BYTES]", .help = "print the RAM log again, or its last BYTES", .max = 1,
	.run = cmd_log);

/* ---- CPUs ---- */

static int cmd_cpus(const struct words *words)
{
	print("  %u CPUs, %u online, %u node%s; shootdown generations: done %llu\n", cpu_count,
	      cpumask_weight(&cpus_online), node_count, node_count == 1 ? "" : "s",
	      shootdown_done());
	print("  %5s %5s %-8s %12s %12s %12s %8s\n", "cpu", "node", "state", "published",
	      "full flushes", "page flushes", "id");
	for (cpu_t cpu = 0; cpu < cpu_count; cpu++) {
		const struct percpu *data = cpu_data(cpu);
		const bool online = cpu_online(cpu);

		if (!data)
			continue;
		print("  %5u %5u %-8s %12llu %12llu %12llu %8u\n", cpu, data->node,
		      !online                             ? "absent"
		      : cpu == cpu_id()                   ? "this one"
		      : atomic_load_relaxed(&data->idle)  ? "idle"
		      : atomic_load_relaxed(&data->quiet) ? "quiet"
							  : "busy",
		      atomic_load_relaxed(&data->tlb_published),
		      atomic_load_relaxed(&data->flushes_full),
		      atomic_load_relaxed(&data->flushes_page), arch_cpu_hardware_id(cpu));
		if (input_stop_asked())
			return -EINTR;
	}
	return 0;
}

COMMAND(cpus,
	.help = "every CPU: node, state, TLB generation, flushes, its ID in firmware's tables",
	.run = cmd_cpus);

/* ---- the linked program ---- */

static int cmd_start(const struct words *words)
{
	payload_run();
	return input_stop_asked() ? -EINTR : 0;
}

COMMAND(start, .help = "run what is linked: the program of PAYLOAD=, or tests and benchmarks",
	.more = "  It may be started again and again. What it counts as passed or failed counts "
		"for the run.\n",
	.run = cmd_start, .counts = true);

/* ---- ending the session ---- */

static int cmd_poweroff(const struct words *words)
{
	commands_left = true;
	return 0;
}

static int cmd_reboot(const struct words *words)
{
	print("rebooting\n");
	run_record_end(0, RUN_NO_STATUS); /* the reset is on purpose */
	machine_reset();
}

COMMAND(poweroff, .help = "end the run: totals, verdict, power off or halt", .run = cmd_poweroff);
COMMAND(reboot, .help = "start over, without a verdict", .run = cmd_reboot);
