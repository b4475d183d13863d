/*
 * Command line: `name[=value]` words, as Linux has them. Values may be quoted: run="pool 2M 4096".
 * A backslash before ", ' or \ makes it an ordinary character. The macros of option.h declare which
 * words there are.
 */
#pragma once

#include "kernel/core/option.h"
#include "kernel/lib/types.h"

/*
 * A command line that is applied from the storage of a struct cmdline. Options of kind text point
 * into that storage.
 */
enum { CMDLINE_MAX = 4096 };
struct cmdline {
	char words[CMDLINE_MAX]; /* terminated; unprintable bytes are '?' */
	unsigned refused;
	char first_refused[256]; /* which word, and why */
};
extern struct cmdline cmdline_machine; /* of the real machine; tests have others */

/*
 * Apply a command line. `text` need not be terminated; at most `len` bytes are read, into a
 * private copy of at most CMDLINE_MAX bytes. Returns the number of words refused; text beyond that
 * length is refused as one. Words that loaders add for Linux (BOOT_IMAGE=, root=, ro ...) are
 * passed over silently.
 */
unsigned cmdline_apply(struct cmdline *cmdline, const char *text, size_t len);

/*
 * For choices of the form "a|b|c": the index of `value`, or -EINVAL; and the name of the n-th, or
 * false after the last.
 */
int choice_index(const char *choices, const char *value);
bool choice_name(const char *choices, unsigned n, char *buf, size_t size);

/*
 * The n-th choice of an option that has choices, those in `values` first; false after the last.
 * option_values(): all of them, as "a|b|c".
 */
bool option_choice(const struct option *opt, unsigned n, char *buf, size_t size);
void option_values(const struct option *opt, char *buf, size_t size);

/* Refuse a word, perhaps later than cmdline_apply() can. `why` names it. */
void cmdline_refuse(struct cmdline *cmdline, const char *why);

/*
 * For the verdict: false if a word was refused and end.strict=on. The first such word is then
 * printed.
 */
bool cmdline_passes(void);

/* Explain an error that option_set() returned for this value, as a sentence for users. */
void option_explain(const struct option *opt, const char *value, int err, char *buf, size_t size);

/*
 * Set a value temporarily. Returns as option_set(), or -ENOTSUP if the option cannot show its old
 * value. *saved receives the old value. The text of `value` must stay until option_put_back(),
 * which restores `count` saved values, the last one first.
 */
enum { OPTION_VALUE_MAX = 64 };
struct option_saved {
	const struct option *opt;
	char value[OPTION_VALUE_MAX];
	const char *text; /* of an option of kind text */
};
int option_set_for_now(const struct option *opt, const char *value, struct option_saved *saved);
void option_put_back(const struct option_saved *saved, unsigned count);
