/*
 * libFuzzer harness for all existing options: every OPTION() of kernel/, mm/, tests and benchmarks,
 * with its own parser. cmdline_fuzz.c covers the splitting of the command line into words.
 *
 *	input   lines "name=value" or "name"; or, because a fuzzer guesses no names, a byte from
 *	        128 on that is an option's number and its value
 *
 * After a line that was refused, a message names the option, and no option has changed. (The
 * exception is hugepagesz=: a size that does not exist takes the counts after it away.) After a
 * line that was accepted, no other option has changed, and the value lies within its bounds. The
 * value is shown as text that the option accepts and shows the same again. badram= is read as
 * start-up reads it.
 *
 * The harness is linked as ops_fuzz is. arch/x86_64/consoles/console.c (console=) is not
 * part of the hosted machine; console_fuzz.c covers its parser.
 */
#include <string.h>

#include <arch/clear.h>

#include "kernel/console/console.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "mm/contig/bad_frames.h"
#include "mm/zone/memmap_open.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/hosted.h"

enum { OPTIONS_MAX = 256, SHOWN_MAX = 4096, TARGET_MAX = 8 };

static char before[OPTIONS_MAX][SHOWN_MAX], after[OPTIONS_MAX][SHOWN_MAX];
static u8 target[OPTIONS_MAX][TARGET_MAX];
static struct cmdline own;

static unsigned options(void)
{
	return (unsigned)(__stop_option_table - __start_option_table);
}

static void show_all(char shown[OPTIONS_MAX][SHOWN_MAX])
{
	for (unsigned i = 0; i < options(); i++)
		require(option_show(&__start_option_table[i], shown[i], SHOWN_MAX));
}

/* ---- restoring values before each input ---- */

static size_t target_bytes(const struct option *opt)
{
	return opt->parse == option_parse_u64 || opt->parse == option_parse_text ? 8
	       : opt->parse == option_parse_choice                               ? 4
	       : opt->parse == option_parse_bool                                 ? 1
										 : 0;
}

static void keep_values(void)
{
	for (unsigned i = 0; i < options(); i++)
		if (target_bytes(&__start_option_table[i]))
			memcpy(target[i], __start_option_table[i].target,
			       target_bytes(&__start_option_table[i]));
}

static void put_back_values(void)
{
	for (unsigned i = 0; i < options(); i++)
		if (target_bytes(&__start_option_table[i]))
			memcpy(__start_option_table[i].target, target[i],
			       target_bytes(&__start_option_table[i]));
	require(option_find("hugepagesz")->parse(option_find("hugepagesz"), "2M") == 0);
	require(option_find("hugepages")->parse(option_find("hugepages"), "0") == 0);
	require(option_find("memmap.threads")->parse(option_find("memmap.threads"), "100%") == 0);
	require(option_find("clear.insn")->parse(option_find("clear.insn"), "auto") == 0);
}

/* Does the option's value belong to the size that hugepagesz= chose last? */
static bool belongs_to_a_size(const struct option *opt)
{
	return strncmp(opt->name, "hugepages", 9) == 0;
}

/* ---- checks of an accepted value ---- */

static void take_bad(phys_t start, phys_t end, void *ctx)
{
	require(start < end && end <= PHYS_LIMIT && IS_ALIGNED(start, PAGE_SIZE) &&
		IS_ALIGNED(end, PAGE_SIZE));
}

static void check_text(const char *text, const char *name)
{
	if (!*text)
		return; /* an option without a value points to a constant */
	require(text >= own.words && text < own.words + CMDLINE_MAX);
	require(memchr(text, '\0', (size_t)(own.words + CMDLINE_MAX - text)) != NULL);
	if (strcmp(name, "badram") == 0) {
		const int err = bad_ram_parse(text, take_bad, NULL);

		require(err == 0 || err == -EINVAL || err == -ERANGE);
	}
}

static void check_bounds(const struct option *opt)
{
	char name[SHOWN_MAX];

	if (opt->parse == option_parse_u64)
		require(*(u64 *)opt->target >= opt->min && *(u64 *)opt->target <= opt->max);
	else if (opt->parse == option_parse_choice)
		require(option_choice(opt, *(unsigned *)opt->target, name, sizeof(name)));
	else if (opt->parse == option_parse_bool)
		require(*(u8 *)opt->target <= 1);
	else if (opt->parse == option_parse_text)
		check_text(*(const char **)opt->target, opt->name);
	else if (strcmp(opt->name, "memmap.threads") == 0)
		require(((struct memmap_threads *)opt->target)->value <=
			(((struct memmap_threads *)opt->target)->percent ? 100u : 65535u));
	else if (strcmp(opt->name, "clear.insn") == 0)
		for (const struct clear_insn *insn = clear_insns; insn->name; insn++)
			require(clear_insn_selected(CLEAR_SMALL) != insn ||
				clear_insn_supported(insn));
}

/* The text that the option shows must be accepted again and give the same value. */
static void check_shown(const struct option *opt, const char *shown)
{
	char again[SHOWN_MAX];

	if (opt->parse == option_parse_text)
		return;
	require(opt->parse(opt, shown) == 0);
	require(option_show(opt, again, sizeof(again)) && strcmp(shown, again) == 0);
}

/* ---- one line ---- */

static bool log_names(u64 from, const char *name)
{
	static char text[8192];
	size_t len = 0, n;

	while (len < sizeof(text) - 1 &&
	       (n = log_read(&from, text + len, sizeof(text) - 1 - len)) > 0)
		len += n;
	text[len] = '\0';
	return strstr(text, name) != NULL;
}

static u64 log_end(u64 from)
{
	char text[1024];

	while (log_read(&from, text, sizeof(text)) > 0)
		;
	return from;
}

/*
 * The value is quoted, so that blanks are part of it. If it has no quotes and no bytes that end the
 * text, the line is one word.
 */
static void check_line(unsigned chosen, const char *value, size_t len)
{
	const struct option *opt = &__start_option_table[chosen];
	const bool one_word = !memchr(value, '"', len) && !memchr(value, '\0', len) &&
			      len + strlen(opt->name) + 4 < CMDLINE_MAX;
	const size_t size = strlen(opt->name) + len + 4;
	char *line = malloc(size);
	static u64 log;
	unsigned refused;
	const size_t used = (size_t)format(line, size, len ? "%s=\"" : "%s", opt->name);

	memcpy(line + used, value, len);
	if (len)
		line[used + len] = '"';
	log = log_end(log);
	show_all(before);
	refused = cmdline_apply(&own, line, used + len + (len > 0));
	free(line);
	show_all(after);
	require(!refused || !one_word || log_names(log, opt->name));
	for (unsigned i = 0; i < options(); i++) {
		const struct option *other = &__start_option_table[i];
		const bool size_is_gone = refused && strcmp(opt->name, "hugepagesz") == 0,
			   sized = belongs_to_a_size(other);

		if (one_word &&
		    (refused ? !(size_is_gone && sized)
			     : i != chosen && !(sized && strcmp(opt->name, "hugepagesz") == 0)) &&
		    other->parse != option_parse_text)
			require(strcmp(before[i], after[i]) == 0);
	}
	if (!refused && one_word) {
		check_bounds(opt);
		check_shown(opt, after[chosen]);
	}
}

/* Lines that name no option are left to cmdline_fuzz.c. */
static void read_line(const char *at, size_t len)
{
	const char *equals = memchr(at, '=', len);
	const size_t name_len = equals ? (size_t)(equals - at) : len;
	const struct option *opt;
	char name[64];

	if ((u8)*at >= 0x80) {
		check_line((*at & 0x7f) % options(), at + 1, len - 1);
		return;
	}
	format(name, sizeof(name), "%.*s", (int)MIN(name_len, sizeof(name) - 1), at);
	opt = option_find(name);
	if (opt)
		check_line((unsigned)(opt - __start_option_table), equals ? equals + 1 : "",
			   equals ? len - name_len - 1 : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;
	static bool begun;

	if (!begun) {
		require(options() > 30 && options() < OPTIONS_MAX);
		consoles = NULL; /* the log is enough */
		keep_values();
		begun = true;
	}
	put_back_values();
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		stop = stop ? stop : end;
		if (stop > at)
			read_line(at, (size_t)(stop - at));
		at = stop + 1;
	}
	put_back_values();
	return 0;
}
