/*
 * Commands of the monitor and of run="...". Each command is declared beside the code that it
 * inspects, and the linker gathers them.
 *
 *	static int cmd_zones(const struct words *words) { ... }
 *	COMMAND(zones, .help = "zones and their frames, by owner", .run = cmd_zones);
 *
 * run() prints its result with print() and returns 0. If a word is wrong, it calls cmd_error(),
 * naming the word, and returns its result. It may also refuse with -EBUSY or -EPERM and print the
 * reason, having changed nothing. Lack of memory is a result, not an error. A long command reports
 * progress and checks for Ctrl-C through a struct progress, and returns -EINTR when it was stopped.
 *
 * Commands run on the boot CPU, interrupts on, no lock held.
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/lib/words.h"

struct command {
	const char *name;
	const char *usage; /* words after the name, e.g. "[SIZE [COUNT]]"; NULL: none */
	const char *help;  /* one line */
	const char *more;  /* further lines for `help NAME`, or NULL */
	unsigned min, max; /* allowed number of plain words after the name */
	const char *keys;  /* keys of KEY=VALUE words it takes, "a|b"; "*": any; NULL: none */
	int (*run)(const struct words *words);
	/* completion: words that can stand at places 1 to 4 after the name, "a|b|c", or NULL */
	const char *choices[4];
	/*
	 * Completion by a function: store the n-th word that could stand at place `at` (1: the
	 * first after the name) in `buf`. False after the last. NULL: only `choices` are offered.
	 */
	bool (*candidate)(const struct words *words, unsigned at, unsigned n, char *buf,
			  size_t size);
	/*
	 * The work that it runs counts for the verdict by itself. run() then returns an error only
	 * for what was not counted.
	 */
	bool counts;
};

TABLE_DECLARE(const struct command, command_table);

/* `words` are the name, one word or two: `COMMAND(page alloc, ...)` is a command of `page`. */
#define COMMAND(words, ...)                                                                        \
	static const struct command TABLE_ENTRY_NAME(__COUNTER__)                                  \
		TABLE_ENTRY(command_table) = {.name = #words, __VA_ARGS__}

/*
 * command_find(): the command of that name, or NULL. command_of(): of those with one word, or of
 * those whose first word is `name`, the first one after `after` in the order of names (NULL: the
 * very first), or NULL at the end.
 */
const struct command *command_find(const char *name);
const struct command *command_of(const char *name, const struct command *after);

/*
 * For completion: the *n-th command, or the *n-th second word after the command `name`. False past
 * the last; *n is then less by how many there are.
 */
bool command_candidate(const char *name, unsigned *n, char *buf, size_t size);

/*
 * Run every command of [text, text + len), in order. An error is printed and does not stop the
 * rest; Ctrl-C and commands_left do. Returns the number of commands that failed. If `good` is
 * not NULL, *good receives the number that succeeded and must be counted for the verdict.
 */
unsigned commands_run(const char *text, size_t len, unsigned *good);

/* Set by `poweroff` and similar commands: no further command is run, and the prompt ends. */
extern bool commands_left;

/* Say that there is no command of that name, and what may have been meant. Returns -ENOENT. */
int command_unknown(const char *name);

/* Print an error in the form "pool: ..." and return -EINVAL. */
int cmd_error(const struct words *words, const char *fmt, ...) __printf(2, 3);

/*
 * Plain word `which` (0 is the command) as a number from `min` to `max`; K/M/G/T suffixes and 0x
 * are allowed. Returns 0, or prints an error and returns -EINVAL. cmd_key_u64() does
 * so for the value of KEY=VALUE; if the key is absent, it returns 0 and leaves *out alone.
 */
int cmd_u64(const struct words *words, unsigned which, const char *what, u64 min, u64 max,
	    u64 *out);
int cmd_key_u64(const struct words *words, const char *key, u64 min, u64 max, u64 *out);

/*
 * Index of plain word `which` among the choices "a|b|c". On error, prints it and returns -EINVAL.
 */
int cmd_choice(const struct words *words, unsigned which, const char *what, const char *choices);

struct option_saved; /* kernel/core/cmdline.h */

/*
 * Set the option that a word NAME=VALUE names: SPACE.NAME if there is one, else NAME; for now, with
 * the former value in *saved, or for good if `saved` is NULL. Returns 0, or prints an error.
 */
int cmd_option(const struct words *words, const char *word, const char *space,
	       struct option_saved *saved);

/*
 * Set the options that the words KEY=VALUE name, for now: SPACE.KEY= if there is one, else KEY=.
 * Returns how many were set; saved[], of WORDS_MAX, has as many values for option_put_back(). On an
 * error, prints it, sets none and returns -EINVAL.
 */
int cmd_options(const struct words *words, const char *space, struct option_saved *saved);

/*
 * Completion of the word at the end of [text, text + len). `found` receives the text to insert
 * after it: as much as all candidates share, and a blank (none after = or .) if there is only one.
 * Returns the number of candidates; with `list`, prints each.
 */
unsigned command_complete(const char *text, size_t len, char *found, size_t size, bool list);
