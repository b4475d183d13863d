/*
 * Options: words of the command line, `name[=value]`, which set a variable.
 *
 * An option is declared beside the code that it steers, and the linker gathers all of them. An
 * unknown name, or a value that the option refuses, is reported by name and ignored; the default
 * stays. With end.strict=on it fails the run. A word without = sets a flag to on.
 *
 *	static u64 table_mib = 256;
 *	OPTION_U64(table_mib, table_mib, 2, 1024, "size of the table");
 *
 * Options that steer one thing have its name and a dot before their own, as the parameters of
 * Linux's modules have: hvo=, hvo.threads=. The words of a benchmark or of the test cases begin
 * with `bench.NAME.` or `test.`; `bench="NAME word=value"` sets them for that run.
 */
#pragma once

#include "kernel/lib/types.h"

struct option {
	const char *name;
	/* "off|unbatched|batched|on", or a word for what is expected: "count", "size", "text" */
	const char *values;
	const char *help;
	/*
	 * Parse `value` ("" if the word had no =). Returns 0 if it was taken, -EINVAL if it is
	 * malformed, -ERANGE if it is impossible. Runs on the boot CPU before memory exists, so it
	 * may only store the value. `value` stays valid for ever.
	 */
	int (*parse)(const struct option *opt, const char *value);
	void *target;
	u64 min, max; /* for numbers */
	/*
	 * Further choices, numbered after those in `values` (which may then be NULL). They are the
	 * names of a table's rows; each row begins with `const char *name`, and NULL ends the
	 * table. A new row is a new choice. `target` is then an unsigned.
	 */
	const void *rows;
	size_t row_bytes;
	bool boot_only; /* read once, at boot: the monitor refuses to set it */
	/* called when the monitor has set it, with all of the machine at hand; NULL: nothing */
	void (*was_set)(void);
	/*
	 * Print the present value as text if it cannot be read from `target`. NULL: by the kind of
	 * option.
	 */
	void (*show)(const struct option *opt, char *buf, size_t size);
};

TABLE_DECLARE(const struct option, option_table);

/* target: u64; K/M/G/T suffixes taken */
int option_parse_u64(const struct option *opt, const char *value);
/* target: unsigned, index into values, then rows */
int option_parse_choice(const struct option *opt, const char *value);
int option_parse_bool(const struct option *opt, const char *value); /* target: bool; on|off|1|0 */
int option_parse_text(const struct option *opt, const char *value); /* target: const char * */

#define OPTION(word, ...)                                                                          \
	static const struct option TABLE_ENTRY_NAME(__COUNTER__)                                   \
		TABLE_ENTRY(option_table) = {.name = #word, __VA_ARGS__}

/* Arguments after the help text are further fields, e.g. `.boot_only = true`. */
#define OPTION_U64(word, var, lo, hi, what, ...)                                                   \
	OPTION(word, .values = "number", .help = what, .parse = option_parse_u64,                  \
	       .target = &(var), .min = (lo), .max = (hi), ##__VA_ARGS__)
#define OPTION_CHOICE(word, var, choices, what, ...)                                               \
	OPTION(word, .values = choices, .help = what, .parse = option_parse_choice,                \
	       .target = &(var), ##__VA_ARGS__)
#define OPTION_ROW(word, var, table, what, ...)                                                    \
	OPTION(word, .help = what, .parse = option_parse_choice, .target = &(var),                 \
	       .rows = (table), .row_bytes = sizeof((table)[0]), ##__VA_ARGS__)
#define OPTION_BOOL(word, var, what, ...)                                                          \
	OPTION(word, .values = "on|off", .help = what, .parse = option_parse_bool,                 \
	       .target = &(var), ##__VA_ARGS__)
#define OPTION_TEXT(word, var, what)                                                               \
	OPTION(word, .values = "text", .help = what, .parse = option_parse_text, .target = &(var), \
	       .boot_only = true)

/* The option of that name (- and _ are the same), or NULL. */
const struct option *option_find(const char *name);

/*
 * Set a value while the machine runs. Returns 0, -EPERM if the option is read at boot only, or
 * -EINVAL or -ERANGE from parse(). The text of `value` is not kept.
 */
int option_set(const struct option *opt, const char *value);

/*
 * The present value, as text that option_set() takes. Returns false (and "?") if the option cannot
 * show its value.
 */
bool option_show(const struct option *opt, char *buf, size_t size);

/*
 * Parse an unsigned number with optional 0x and K/M/G/T suffix at *p, and move *p past it. Returns
 * 0, -EINVAL or -ERANGE.
 */
int parse_u64(const char **p, u64 *out);
