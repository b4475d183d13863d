/*
 * The command line: split into words, each given to the option it names.
 *
 *	hvo=batched   quiet   run="pool 2M 4096"   "run=pool 2M 4096"   args="-c \"a b\""
 *
 * The text comes from a loader and may be anything. It is copied once into a bounded buffer that
 * lives for ever (text options point into it), and nothing beyond its length is read. A word that
 * is refused changes nothing; it is named on the console, with bytes that could upset a terminal
 * shown as '?'. In names, - and _ are the same, as in Linux.
 */
#include "kernel/core/cmdline.h"

#include <arch/atomic.h>

#include "kernel/core/printk.h"
#include "kernel/lib/string.h"

enum { CHOICE_MAX = 64, VALUES_MAX = 160 };

static struct cmdline machine; /* of the real machine */

const char *cmdline_text(void)
{
	return machine.text;
}

/*
 * Parse the digits of a number in `base` at *p, and move *p past them. Returns 0, -EINVAL if there
 * is no digit, or -ERANGE beyond 64 bits.
 */
static int parse_digits(const char **p, unsigned base, u64 *out)
{
	const char *start = *p;
	u64 value = 0;

	for (;; (*p)++) {
		unsigned c = (u8) * *p;
		unsigned digit = c >= '0' && c <= '9'   ? c - '0'
				 : c >= 'a' && c <= 'f' ? c - 'a' + 10
				 : c >= 'A' && c <= 'F' ? c - 'A' + 10
							: 16;

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
	switch (c) {
	case 'k':
	case 'K':
		return 10;
	case 'm':
	case 'M':
		return 20;
	case 'g':
	case 'G':
		return 30;
	case 't':
	case 'T':
		return 40;
	}
	return 0;
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

int choice_index(const char *choices, const char *value)
{
	size_t len = strlen(value);

	for (int i = 0;; i++) {
		const char *end = strchr(choices, '|');
		size_t n = end ? (size_t)(end - choices) : strlen(choices);

		if (n == len && strncmp(choices, value, n) == 0)
			return i;
		if (!end)
			return -EINVAL;
		choices = end + 1;
	}
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

static const char *row_name(const struct option *opt, unsigned row)
{
	return *(const char *const *)((const char *)opt->rows + row * opt->row_bytes);
}

bool option_choice(const struct option *opt, unsigned n, char *buf, size_t size)
{
	unsigned before = 0;

	if (opt->values && (opt->rows || strchr(opt->values, '|'))) {
		if (choice_name(opt->values, n, buf, size))
			return true;
		while (choice_name(opt->values, before, buf, size))
			before++;
	}
	if (!opt->rows)
		return false;
	for (unsigned row = 0; row_name(opt, row); row++) {
		if (before + row != n)
			continue;
		format(buf, size, "%s", row_name(opt, row));
		return true;
	}
	return false;
}

void option_values(const struct option *opt, char *buf, size_t size)
{
	size_t at = (size_t)format(buf, size, "%s", opt->values ? opt->values : "");

	for (unsigned row = 0; opt->rows && row_name(opt, row) && at < size; row++)
		at += (size_t)format(buf + at, size - at, "%s%s", at ? "|" : "",
				     row_name(opt, row));
}

int option_parse_choice(const struct option *opt, const char *value)
{
	char name[CHOICE_MAX];

	for (unsigned n = 0; option_choice(opt, n, name, sizeof(name)); n++) {
		if (strcmp(name, value) != 0)
			continue;
		*(unsigned *)opt->target = n;
		return 0;
	}
	return -EINVAL;
}

int option_parse_bool(const struct option *opt, const char *value)
{
	if (strcmp(value, "on") == 0 || strcmp(value, "1") == 0 || !*value)
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

static bool same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		if ((*a == '-' ? '_' : *a) != (*b == '-' ? '_' : *b))
			return false;
	}
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
	return opt->boot_only ? -EPERM : opt->parse(opt, value);
}

bool option_show(const struct option *opt, char *buf, size_t size)
{
	if (opt->show) {
		opt->show(opt, buf, size);
	} else if (opt->parse == option_parse_u64) {
		format(buf, size, "%llu", *(const u64 *)opt->target);
	} else if (opt->parse == option_parse_choice) {
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
	return option_show(opt, saved->value, sizeof(saved->value)) ? option_set(opt, value)
								    : -ENOTSUP;
}

void option_put_back(const struct option_saved *saved, unsigned count)
{
	while (count-- > 0)
		option_set(saved[count].opt, saved[count].value);
}

/* Apply one terminated word. Returns true if it was taken. */
static bool apply_word(char *word)
{
	char *equals = strchr(word, '=');
	const struct option *opt;
	const char *value = "";
	char why[1024];
	int ret;

	if (equals) {
		*equals = '\0';
		value = equals + 1;
	}
	opt = option_find(word);
	if (!opt) {
		pr_err("command line: unknown option \"%s\": ignored", word);
		return false;
	}
	ret = opt->parse(opt, value);
	if (ret < 0) {
		option_explain(opt, value, ret, why, sizeof(why));
		pr_err("command line: %s: ignored", why);
	}
	return ret == 0;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/*
 * Terminate the word at `p`, dropping its quotes, and return the text after it. *closed is false if
 * a quote was left open. A backslash before a quote or a backslash is dropped, and the character
 * behind it stays as it is, because GRUB inserts these backslashes.
 */
static char *cut_word(char *p, bool *closed)
{
	bool quoted = false;
	char *out = p;

	for (; *p && (quoted || !is_space(*p)); p++) {
		if (*p == '\\' && (p[1] == '\\' || p[1] == '"' || p[1] == '\''))
			*out++ = *++p;
		else if (*p == '"')
			quoted = !quoted;
		else
			*out++ = *p;
	}
	if (*p)
		p++;
	*out = '\0';
	*closed = !quoted;
	return p;
}

static unsigned apply_words(char *p)
{
	unsigned refused = 0;

	for (;;) {
		char *word;
		bool closed;

		while (is_space(*p))
			p++;
		if (!*p)
			return refused;
		word = p;
		p = cut_word(p, &closed);
		if (!closed) {
			pr_err("command line: unfinished quote in \"%s\": ignored", word);
			refused++;
		} else if (!apply_word(word)) {
			refused++;
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

		cmdline->text[i] = is_space(c) ? ' ' : c > ' ' && c < 0x7f ? c : '?';
	}
	cmdline->text[n] = '\0';
	memcpy(cmdline->words, cmdline->text, n + 1);
	return n;
}

unsigned cmdline_apply_in(struct cmdline *cmdline, const char *text, size_t len)
{
	size_t n = copy_text(cmdline, text, len);

	if (n < len && text[n])
		pr_err("command line: longer than %u bytes: the rest is ignored", CMDLINE_MAX - 1);
	return apply_words(cmdline->words);
}

unsigned cmdline_apply(const char *text, size_t len)
{
	return cmdline_apply_in(&machine, text, len);
}
