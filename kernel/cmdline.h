/*
 * Command line: `name[=value]` words, as Linux has them. Values may be quoted: run="pool 2M 4096".
 *
 * Options are declared beside the code they steer and gathered by the linker. An unknown name, or a value that the
 * option refuses, is named loudly and ignored; the default stays.
 */
#pragma once

#include "kernel/types.h"

struct option {
	const char *name;
	const char *values; /* "off|unbatched|batched|on", or a word for what is expected: "count", "size", "text" */
	const char *help;
	/*
	 * Parse `value` ("" if the word had no =). 0 if taken, -EINVAL if malformed, -ERANGE if impossible. Runs on the
	 * boot CPU before memory exists: it stores, nothing more. `value` stays valid for ever.
	 */
	int (*parse)(const struct option *opt, const char *value);
	void *target;
	u64 min, max; /* for numbers */
	/*
	 * Choices behind those in `values` (which may be NULL then): the names of a table's rows, each of which begins with
	 * `const char *name`; NULL ends it. A new row is a new choice.
	 */
	const void *rows;
	size_t row_bytes;
	bool boot_only; /* read once, at boot: the monitor refuses to set it */
	/* Its present value as text, where `target` does not tell; NULL: by the kind of option. */
	void (*show)(const struct option *opt, char *buf, size_t size);
};

TABLE_DECLARE(const struct option, option_table);

int option_parse_u64(const struct option *opt, const char *value);    /* target: u64; K/M/G/T suffixes taken */
int option_parse_choice(const struct option *opt, const char *value); /* target: unsigned, index into values, then rows */
int option_parse_bool(const struct option *opt, const char *value);   /* target: bool; on|off|1|0|"" */
int option_parse_text(const struct option *opt, const char *value);   /* target: const char * */

#define OPTION(ident, ...)                                                                                             \
	static const struct option option_##ident TABLE_ENTRY(option_table) = {.name = #ident, __VA_ARGS__}

/* What follows the help are further fields, e.g. `.boot_only = true`. */
#define OPTION_U64(ident, var, lo, hi, what, ...)                                                                      \
	OPTION(ident, .values = "number", .help = what, .parse = option_parse_u64, .target = &(var), .min = (lo),      \
	       .max = (hi), ##__VA_ARGS__)
#define OPTION_CHOICE(ident, var, choices, what, ...)                                                                  \
	OPTION(ident, .values = choices, .help = what, .parse = option_parse_choice, .target = &(var), ##__VA_ARGS__)
#define OPTION_ROW(ident, var, table, what, ...)                                                                       \
	OPTION(ident, .rows = (table), .row_bytes = sizeof((table)[0]), .help = what, .parse = option_parse_choice,            \
	       .target = &(var), ##__VA_ARGS__)
#define OPTION_BOOL(ident, var, what, ...)                                                                             \
	OPTION(ident, .values = "on|off", .help = what, .parse = option_parse_bool, .target = &(var), ##__VA_ARGS__)
#define OPTION_TEXT(ident, var, what)                                                                                  \
	OPTION(ident, .values = "text", .help = what, .parse = option_parse_text, .target = &(var), .boot_only = true)

/* By name (- and _ are the same), or NULL. */
const struct option *option_find(const char *name);

/*
 * Set a value while the machine runs. 0; -EPERM if it is read at boot only; -EINVAL, -ERANGE as parse(). The text of `value` is not
 * kept. option_explain(): any of these in words, for people.
 */
int option_set(const struct option *opt, const char *value);
void option_explain(const struct option *opt, const char *value, int err, char *buf, size_t size);

/* The present value as text that option_set() takes; false (and "?") if the option cannot tell. */
bool option_show(const struct option *opt, char *buf, size_t size);

/*
 * Set a value for a while. As option_set(), or -ENOTSUP if the option cannot tell what it was; *saved is for
 * option_put_back(), which undoes `count` of them, the last one first.
 */
enum { OPTION_VALUE_MAX = 64 };
struct option_saved {
	const struct option *opt;
	char value[OPTION_VALUE_MAX];
};
int option_set_for_now(const struct option *opt, const char *value, struct option_saved *saved);
void option_put_back(const struct option_saved *saved, unsigned count);

/*
 * Apply the command line. `text` need not be terminated; at most `len` bytes are read, into a private copy of at
 * most CMDLINE_MAX bytes (what is cut is said). Returns how many words were refused.
 */
enum { CMDLINE_MAX = 4096 };
unsigned cmdline_apply(const char *text, size_t len);

/* The same into storage of the caller's, which options of kind text then point into: for tests. */
struct cmdline {
	char text[CMDLINE_MAX];  /* as given, for people; unprintable bytes are '?' */
	char words[CMDLINE_MAX]; /* cut into terminated words */
};
unsigned cmdline_apply_in(struct cmdline *cmdline, const char *text, size_t len);

/* Choices are "a|b|c": index of one, or -EINVAL; the n-th by name, false behind the last. */
int choice_index(const char *choices, const char *value);
bool choice_name(const char *choices, unsigned n, char *buf, size_t size);

/* The n-th choice of an option that has choices, those in `values` first; false behind the last. option_values(): all of them, "a|b|c". */
bool option_choice(const struct option *opt, unsigned n, char *buf, size_t size);
void option_values(const struct option *opt, char *buf, size_t size);

/* The command line as it was applied, for the machine page. */
const char *cmdline_text(void);

/* Parse an unsigned number with optional 0x and K/M/G/T suffix at *p, moving *p on. 0, or -EINVAL / -ERANGE. */
int parse_u64(const char **p, u64 *out);
