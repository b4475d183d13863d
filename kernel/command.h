/*
 * Commands: what the monitor and run="..." understand. Each is declared beside what it inspects and gathered by the
 * linker.
 *
 *	static int cmd_zones(const struct words *words) { ... }
 *	COMMAND(zones, .help = "zones and their frames, by owner", .run = cmd_zones);
 *
 * run() prints its result with print() and returns 0; or it says what is wrong, naming the word, with cmd_error(), and returns
 * what that returned; or refuses with -EBUSY or -EPERM and the reason, having changed nothing. Lack of memory is a result.
 * A command that takes long reports and asks for Ctrl-C through a struct progress and returns -EINTR when it was stopped.
 *
 * Commands run on the boot CPU, interrupts on, no lock held.
 */
#pragma once

#include "kernel/types.h"
#include "kernel/words.h"

struct command {
	const char *name;
	const char *usage;  /* what follows the name, e.g. "[SIZE [COUNT]]"; NULL: nothing */
	const char *help;   /* one line */
	const char *more;   /* further lines for `help NAME`, or NULL */
	unsigned min, max;  /* plain words after the name */
	const char *keys;   /* names of KEY=VALUE words it takes, apart by |; "*": any; NULL: none */
	int (*run)(const struct words *words);
	/*
	 * Completion: the n-th word that could stand at place `at` (1: the first after the name), into `buf`. False behind the
	 * last. NULL: nothing to offer.
	 */
	bool (*candidate)(const struct words *words, unsigned at, unsigned n, char *buf, size_t size);
	bool counts; /* what it runs counts for the verdict by itself: it returns an error only for what was not counted */
};

TABLE_DECLARE(const struct command, command_table);

#define COMMAND(ident, ...)                                                                                            \
	static const struct command command_##ident TABLE_ENTRY(command_table) = {.name = #ident, __VA_ARGS__}

/* By name, or NULL. In the order of their names: the first after `name` (NULL: the very first), NULL at the end. */
const struct command *command_find(const char *name);
const struct command *command_after(const char *name);

/*
 * Run every command of [text, text + len), in order. Errors are printed and do not stop the rest; Ctrl-C and commands_leave()
 * do. Returns how many failed; *good, if not NULL, how many did not and are to be counted for the verdict.
 */
unsigned commands_run(const char *text, size_t len, unsigned *good);

/* `poweroff` and its like: no further command is run, and the prompt ends. */
void commands_leave(void);
bool commands_left(void);

/* Say what is wrong in the form "pool: ..." and return -EINVAL. */
int cmd_error(const struct words *words, const char *fmt, ...) __printf(2, 3);

/*
 * Plain word `which` (0 is the command) as a number from `min` to `max`, K/M/G/T suffixes and 0x taken. 0, or said and
 * -EINVAL. cmd_key_u64(): the same for KEY=VALUE; absent leaves *out alone.
 */
int cmd_u64(const struct words *words, unsigned which, const char *what, u64 min, u64 max, u64 *out);
int cmd_key_u64(const struct words *words, const char *key, u64 min, u64 max, u64 *out);

/* Index of plain word `which` among "a|b|c", or said and -EINVAL. */
int cmd_choice(const struct words *words, unsigned which, const char *what, const char *choices);

/*
 * Completion of the word that [text, text + len) ends in. `found` receives what to insert behind it: as much as all candidates
 * share, and a blank (none after =) if there is only one. Returns the number of candidates; with `list`, each is printed.
 */
unsigned command_complete(const char *text, size_t len, char *found, size_t size, bool list);
