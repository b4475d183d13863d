/*
 * The monitor: see monitor.h.
 *
 * Input is handled one line at a time: keys go to the editor (line.c), finished lines to the
 * commands (command.c). While a command runs, keys are queued, and Ctrl-C is noticed whenever the
 * command checks for it (progress.h). The editor's output goes to the consoles only. The log gets
 * each finished line, so that it reads like the screen.
 *
 * The wait for a key is the one wait without a bound, because people are slow.
 */
#include "kernel/run/monitor.h"

#include <arch/cpu.h>

#include "kernel/console/command.h"
#include "kernel/console/input.h"
#include "kernel/console/line.h"
#include "kernel/core/call.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/core/verdict.h"
#include "kernel/lib/string.h"

#define PROMPT "ashlar> "

static const char *run_text;
static bool monitor_wanted;
OPTION_TEXT(run, run_text, "run these monitor commands, e.g. run=\"pool 2M 4096; bench hvo\"");
OPTION_BOOL(monitor, monitor_wanted, "wait for commands on the console", .boot_only = true);

static struct line editor;
static bool tab_before;

static void prompt(void)
{
	echo(PROMPT, sizeof(PROMPT) - 1);
}

/* The first Tab inserts what all candidates share; a second Tab right after it lists them. */
static void complete(void)
{
	char found[LINE_SIZE];
	const bool list = tab_before;
	unsigned count;

	if (list)
		echo("\n", 1);
	count = command_complete(editor.text, editor.cursor, found, sizeof(found), list);
	if (list) {
		prompt();
		line_show(&editor);
	}
	if (*found)
		line_insert(&editor, found, strlen(found));
	else if (!list)
		echo("\a", 1);
	tab_before = count > 1 && !*found;
}

static void run_line(void)
{
	log_line("> %s", editor.text);
	commands_run(editor.text, editor.len, NULL);
	if (input_stop_asked())
		input_stop_clear();
}

/* Handle one key. False when the session is over. */
static bool handle_key(u8 key)
{
	const enum line_event event = line_key(&editor, key);

	if (event == LINE_TAB)
		complete();
	else
		tab_before = false;
	if (event == LINE_END) {
		echo("\n", 1);
		return false;
	}
	if (event != LINE_READY && event != LINE_CANCELLED)
		return true;
	if (event == LINE_READY)
		run_line();
	line_begin(&editor);
	if (!commands_left)
		prompt();
	return !commands_left;
}

static void wait_for_key(void)
{
	call_serve();
	idle_task_in_wait(0);
	cpu_nap(1);
}

static void session(void)
{
	bool more = true;

	print("Commands: help. Keys: Tab completes, arrows edit and recall, Ctrl-C stops a "
	      "command, Ctrl-D ends.\n");
	line_init(&editor, echo);
	prompt();
	while (more) {
		const int key = input_key();

		if (key < 0)
			wait_for_key();
		else
			more = handle_key((u8)key);
	}
	verdict_count(1, 0, 0); /* the user ended the session, so nothing broke */
}

static void run_unattended(void)
{
	unsigned good, failed;

	print("run: %s\n", run_text);
	failed = commands_run(run_text, strlen(run_text), &good);
	verdict_count(good, failed, 0);
	if (failed > 0)
		pr_err("run: %u commands failed", failed);
}

bool monitor_run(void)
{
	if (!run_text && !monitor_wanted)
		return false;
	input_enabled = true;
	if (run_text)
		run_unattended();
	input_stop_clear();
	if (monitor_wanted && !commands_left)
		session();
	return true;
}
