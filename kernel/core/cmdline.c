/*
 * The command line: split into words, each given to the option it names.
 *
 *	hvo=batched   monitor   run="pool 2M 4096"   "run=pool 2M 4096"   bench="a \"b\""
 *
 * The text comes from a loader and may be anything. It is copied once into a bounded buffer that
 * lives for ever (text options point into it), and nothing beyond its length is read. A word that
 * is refused changes nothing; it is named on the console, with bytes that could upset a terminal
 * shown as '?'. With end.strict=on it also fails the run. If a word is given twice, the last one
 * counts. In names, - and _ are the same, as in Linux.
 */
#include "kernel/core/cmdline.h"

#include <arch/atomic.h>

#include "kernel/core/panic.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "kernel/lib/words.h"

enum { VALUES_MAX = 160 };

struct cmdline cmdline_machine;

static bool strict;
OPTION_BOOL(end.strict, strict, "a word of the command line that is refused fails the run",
	    .boot_only = true);

/* Words that loaders add for Linux. They mean nothing here and are passed over silently. */
static const char *const of_loaders[] = {"BOOT_IMAGE", "BOOTIF", "initrd", "root",
					 "ro",         "rw",     "splash"};

/*
 * Parse the digits of a number in `base` at *p, and move *p past them. Returns 0, -EINVAL if there
 * is no digit, or -ERANGE beyond 64 bits.
 */
static int parse_digits(const char **p, unsigned base, u64 *out)
{
	const char *start = *p;
	u64 value = 0;

	for (;; (*p)++) {
		const unsigned digit = digit_value(**p);

		if (digit >= base)
			break;
		if (__builtin_mul_overflow(value, (u64)base, &value) ||
		    __builtin_add_overflow(value, (u64)digit, &value))
			return -ERANGE;
	}
	*out = value;
	return *p == start ? -EINVAL : 0;
}

static unsigned suffix_shift(char c)
{
	static const char suffixes[] = "KkMmGgTt";
	const char *at = strchr(suffixes, c);

	return at && *at ? 10 * ((unsigned)(at - suffixes) / 2 + 1) : 0;
}

int parse_u64(const char **p, u64 *out)
{
	bool hex = (*p)[0] == '0' && ((*p)[1] == 'x' || (*p)[1] == 'X');
	u64 value;
	unsigned shift;
	int ret;

	if (hex)
		*p += 2;
	ret = parse_digits(p, hex ? 16 : 10, &value);
	if (ret)
		return ret;
	shift = suffix_shift(**p);
	if (shift) {
		(*p)++;
		if (value > UINT64_MAX >> shift)
			return -ERANGE;
	}
	*out = value << shift;
	return 0;
}

int option_parse_u64(const struct option *opt, const char *value)
{
	u64 number;
	int ret = parse_u64(&value, &number);

	if (ret)
		return ret;
	if (*value)
		return -EINVAL;
	if (number < opt->min || number > opt->max)
		return -ERANGE;
	atomic_store_relaxed((u64 *)opt->target, number); /* another CPU may be reading it */
	return 0;
}

bool choice_name(const char *choices, unsigned n, char *buf, size_t size)
{
	const char *end;

	while (n-- > 0) {
		choices = strchr(choices, '|');
		if (!choices)
			return false;
		choices++;
	}
	end = strchr(choices, '|');
	format(buf, size, "%.*s", end ? (int)(end - choices) : (int)strlen(choices), choices);
	return true;
}

int choice_index(const char *choices, const char *value)
{
	char name[VALUES_MAX];

	for (unsigned i = 0; choice_name(choices, i, name, sizeof(name)); i++)
		if (strcmp(name, value) == 0)
			return (int)i;
	return -EINVAL;
}

void option_values(const struct option *opt, char *buf, size_t size)
{
	size_t at = (size_t)format(buf, size, "%s", opt->values ? opt->values : "");
	const char *row = opt->rows;

	for (; row && *(const char *const *)row && at < size; row += opt->row_bytes)
		at += (size_t)format(buf + at, size - at, "%s%s", at ? "|" : "",
				     *(const char *const *)row);
}

bool option_choice(const struct option *opt, unsigned n, char *buf, size_t size)
{
	char values[VALUES_MAX];

	option_values(opt, values, sizeof(values));
	return strchr(values, '|') && choice_name(values, n, buf, size);
}

int option_parse_choice(const struct option *opt, const char *value)
{
	char values[VALUES_MAX];
	int index;

	option_values(opt, values, sizeof(values));
	ASSERT(strlen(values) < sizeof(values) - 1, "the values of %s= have no room", opt->name);
	index = choice_index(values, value);
	if (index < 0)
		return index;
	*(unsigned *)opt->target = (unsigned)index;
	return 0;
}

int option_parse_bool(const struct option *opt, const char *value)
{
	if (strcmp(value, "on") == 0 || strcmp(value, "1") == 0)
		*(bool *)opt->target = true;
	else if (strcmp(value, "off") == 0 || strcmp(value, "0") == 0)
		*(bool *)opt->target = false;
	else
		return -EINVAL;
	return 0;
}

int option_parse_text(const struct option *opt, const char *value)
{
	*(const char **)opt->target = value;
	return 0;
}

/* Compare names, in which - and _ are the same. */
static bool same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if ((*a == '-' ? '_' : *a) != (*b == '-' ? '_' : *b))
			return false;
	return *a == *b;
}

const struct option *option_find(const char *name)
{
	const struct option *opt;

	TABLE_FOREACH(opt, option_table)
	{
		if (same_name(opt->name, name))
			return opt;
	}
	return NULL;
}

/* For a number out of range the limits are printed, because nobody knows them by heart. */
void option_explain(const struct option *opt, const char *value, int err, char *buf, size_t size)
{
	char values[VALUES_MAX];

	option_values(opt, values, sizeof(values));
	if (err == -EPERM)
		format(buf, size, "%s is read once, at boot: give it on the command line",
		       opt->name);
	else if (err == -ERANGE && opt->parse == option_parse_u64)
		format(buf, size, "%s=%s is out of range (%llu to %llu)", opt->name, value,
		       opt->min, opt->max);
	else if (err == -ERANGE)
		format(buf, size, "%s=%s is impossible", opt->name, value);
	else
		format(buf, size, "%s=%s is malformed (expected %s)", opt->name, value, values);
}

int option_set(const struct option *opt, const char *value)
{
	const bool is_kept = opt->parse == option_parse_text; /* the text of `value` may not be */

	return opt->boot_only || is_kept ? -EPERM : opt->parse(opt, value);
}

bool option_show(const struct option *opt, char *buf, size_t size)
{
	if (opt->show) {
		opt->show(opt, buf, size);
	} else if (opt->parse == option_parse_u64) {
		format(buf, size, "%llu", *(const u64 *)opt->target);
	} else if (opt->parse == option_parse_choice || opt->rows) {
		option_choice(opt, *(const unsigned *)opt->target, buf, size);
	} else if (opt->parse == option_parse_bool) {
		format(buf, size, "%s", *(const bool *)opt->target ? "on" : "off");
	} else if (opt->parse == option_parse_text) {
		const char *text = *(const char *const *)opt->target;

		format(buf, size, "%s", text ? text : "");
	} else {
		format(buf, size, "?");
		return false;
	}
	return true;
}

int option_set_for_now(const struct option *opt, const char *value, struct option_saved *saved)
{
	saved->opt = opt;
	if (opt->parse == option_parse_text) {
		saved->text = *(const char **)opt->target;
		return opt->boot_only ? -EPERM : opt->parse(opt, value);
	}
	return option_show(opt, saved->value, sizeof(saved->value)) ? option_set(opt, value)
								    : -ENOTSUP;
}

void option_put_back(const struct option_saved *saved, unsigned count)
{
	while (count-- > 0) {
		if (saved[count].opt->parse == option_parse_text)
			*(const char **)saved[count].opt->target = saved[count].text;
		else
			option_set(saved[count].opt, saved[count].value);
	}
}

static bool is_loaders(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(of_loaders); i++)
		if (strcmp(of_loaders[i], name) == 0)
			return true;
	return false;
}

void cmdline_refuse(struct cmdline *cmdline, const char *why)
{
	pr_err("command line: ignored: %s", why);
	if (cmdline->refused++ == 0)
		format(cmdline->first_refused, sizeof(cmdline->first_refused), "%s", why);
}

/* Apply one terminated word. A flag may stand without a value. */
static void apply_word(struct cmdline *cmdline, char *word)
{
	char *equals = strchr(word, '=');
	const struct option *opt;
	const char *value;
	char why[1024];
	int ret;

	if (equals)
		*equals = '\0';
	opt = option_find(word);
	if (!opt && is_loaders(word))
		return;
	if (!opt) {
		format(why, sizeof(why), "%s%s%s is not known", word, equals ? "=" : "",
		       equals ? equals + 1 : "");
		cmdline_refuse(cmdline, why);
		return;
	}
	value = equals ? equals + 1 : opt->parse == option_parse_bool ? "on" : "";
	ret = opt->parse(opt, value);
	if (ret < 0) {
		option_explain(opt, value, ret, why, sizeof(why));
		cmdline_refuse(cmdline, why);
	}
}

/* GRUB puts a backslash before each quote and backslash inside a word. */
static const struct word_rules rules = {
	.ends = " ", .quotes = "\"", .escaped = "\\\"'", .escaped_in_quotes = "\\\"'"};

/* Cut the text into words, each in its place, and apply each. */
static void apply_words(struct cmdline *cmdline, const char *end)
{
	const char *text = cmdline->words;
	char why[1024];

	while (text < end) {
		char *word = &cmdline->words[text - cmdline->words];

		if (*text == ' ' || *text == '\0') {
			text++;
		} else if (word_cut(&text, end, &rules, word, (size_t)(end - text) + 1) == 0) {
			apply_word(cmdline, word);
		} else {
			format(why, sizeof(why), "unfinished quote in \"%s\"", word);
			cmdline_refuse(cmdline, why);
		}
	}
}

/*
 * Copy at most CMDLINE_MAX - 1 bytes, up to the first NUL. White space becomes a blank and other
 * unprintable bytes become '?'.
 */
static size_t copy_text(struct cmdline *cmdline, const char *text, size_t len)
{
	size_t n = strnlen(text, MIN(len, CMDLINE_MAX - 1));

	for (size_t i = 0; i < n; i++) {
		char c = text[i];

		cmdline->words[i] = strchr(" \t\n\r", c) ? ' ' : c > ' ' && c < 0x7f ? c : '?';
	}
	cmdline->words[n] = '\0';
	return n;
}

unsigned cmdline_apply(struct cmdline *cmdline, const char *text, size_t len)
{
	size_t n = copy_text(cmdline, text, len);
	char why[64];

	cmdline->refused = 0;
	apply_words(cmdline, cmdline->words + n);
	if (n < len && text[n]) {
		format(why, sizeof(why), "the rest of a text longer than %u bytes",
		       CMDLINE_MAX - 1);
		cmdline_refuse(cmdline, why);
	}
	return cmdline->refused;
}

bool cmdline_passes(void)
{
	if (!strict || cmdline_machine.refused == 0)
		return true;
	print("# FAILED: command line: %s", cmdline_machine.first_refused);
	if (cmdline_machine.refused > 1)
		print(", and %u more", cmdline_machine.refused - 1);
	print(" (end.strict=off allows it)\n");
	return false;
}
