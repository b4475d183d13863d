/*
 * Commands: finding, checking, running and completing them. See command.h.
 *
 * The words typed are checked against the command's own description before it runs, so that a
 * command sees only words it has asked for. A superfluous word, an unknown key and a malformed
 * number are all reported here, in one form.
 */
#include "kernel/console/command.h"

#include "kernel/console/input.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"

enum { CANDIDATE_MAX = 128, LISTED_MAX = 60, LIST_WIDTH = 78 };

const struct command *command_find(const char *name)
{
	const struct command *cmd;

	TABLE_FOREACH(cmd, command_table)
	{
		if (strcmp(cmd->name, name) == 0)
			return cmd;
	}
	return NULL;
}

/* Is this a command of one word (first NULL), or one of two whose first is `first`? */
static bool is_of(const struct command *cmd, const char *first)
{
	const char *blank = strchr(cmd->name, ' ');
	const size_t length = first ? strlen(first) : 0;

	return first ? blank == cmd->name + length && strncmp(cmd->name, first, length) == 0
		     : !blank;
}

const struct command *command_of(const char *name, const struct command *after)
{
	const struct command *cmd, *best = NULL;

	TABLE_FOREACH(cmd, command_table)
	{
		if (!is_of(cmd, name) || (after && strcmp(cmd->name, after->name) <= 0))
			continue;
		/* every entry of the table has a name */
		/* NOLINTNEXTLINE(clang-analyzer-unix.cstring.NullArg) */
		if (!best || strcmp(cmd->name, best->name) < 0)
			best = cmd;
	}
	return best;
}

int cmd_error(const struct words *words, const char *fmt, ...)
{
	char text[512];

	FORMAT_ARGS(text, sizeof(text), fmt);
	print("%s: %s\n", words->count ? words->word[0] : "monitor", text);
	return -EINVAL;
}

/* ---- numbers and choices ---- */

static int parse_word(const struct words *words, const char *word, const char *what, u64 min,
		      u64 max, u64 *out)
{
	const char *p = word;
	u64 number;
	const int err = parse_u64(&p, &number);

	if (err == -EINVAL || *p)
		return cmd_error(words, "\"%s\" is not a number (%s)", word, what);
	if (err || number < min || number > max)
		return cmd_error(words, "%s \"%s\" is out of range (%llu to %llu)", what, word, min,
				 max);
	*out = number;
	return 0;
}

int cmd_u64(const struct words *words, unsigned which, const char *what, u64 min, u64 max, u64 *out)
{
	const char *word = words_plain(words, which);

	if (!word)
		return cmd_error(words, "%s is missing", what);
	return parse_word(words, word, what, min, max, out);
}

int cmd_key_u64(const struct words *words, const char *key, u64 min, u64 max, u64 *out)
{
	const char *value = words_value(words, key);

	return value ? parse_word(words, value, key, min, max, out) : 0;
}

int cmd_choice(const struct words *words, unsigned which, const char *what, const char *choices)
{
	const char *word = words_plain(words, which);
	int index;

	if (!word)
		return cmd_error(words, "%s is missing (expected %s)", what, choices);
	index = choice_index(choices, word);
	return index >= 0 ? index
			  : cmd_error(words, "\"%s\" is no %s (expected %s)", word, what, choices);
}

/* ---- options ---- */

int cmd_option(const struct words *words, const char *word, const char *space,
	       struct option_saved *saved)
{
	const char *value = strchr(word, '=') + 1;
	const int length = (int)(value - 1 - word);
	char name[CANDIDATE_MAX], why[256];
	const struct option *opt;
	int err;

	format(name, sizeof(name), "%s.%.*s", space, length, word);
	opt = option_find(name);
	if (!opt)
		opt = option_find(name + strlen(space) + 1);
	if (!opt)
		return cmd_error(words, "there is no option \"%.*s\"; help options lists them",
				 length, word);
	err = saved ? option_set_for_now(opt, value, saved) : option_set(opt, value);
	if (err == 0 && !saved && opt->was_set)
		opt->was_set();
	if (err == -ENOTSUP)
		return cmd_error(words, "%s cannot be restored after the run; use set", opt->name);
	if (err == 0)
		return 0;
	option_explain(opt, value, err, why, sizeof(why));
	return cmd_error(words, "%s", why);
}

int cmd_options(const struct words *words, const char *space, struct option_saved *saved)
{
	int kept = 0, err = 0;

	for (unsigned i = 1; i < words->count && !err; i++) {
		if (!strchr(words->word[i], '='))
			continue;
		err = cmd_option(words, words->word[i], space, &saved[kept]);
		kept += !err;
	}
	if (err)
		option_put_back(saved, (unsigned)kept);
	return err ? err : kept;
}

/* ---- running ---- */

int command_unknown(const char *name)
{
	print("monitor: there is no command \"%s\"; help lists them\n", name);
	return -ENOENT;
}

/*
 * The command that the first words name. The first word of a name of two is dropped, so that the
 * command finds its own words at the same places.
 */
static const struct command *find_words(struct words *words)
{
	char name[CANDIDATE_MAX];
	const struct command *cmd = NULL;

	if (words->count > 1) {
		format(name, sizeof(name), "%s %s", words->word[0], words->word[1]);
		cmd = command_find(name);
	}
	if (!cmd)
		return command_find(words->word[0]);
	words->count--;
	memmove(words->word, words->word + 1, words->count * sizeof(words->word[0]));
	words->word[0] = cmd->name;
	return cmd;
}

/* The first word KEY=VALUE whose key the command does not take, or NULL. */
static const char *unknown_key(const struct command *cmd, const struct words *words)
{
	char key[CANDIDATE_MAX];

	if (cmd->keys && strcmp(cmd->keys, "*") == 0)
		return NULL;
	for (unsigned i = 1; i < words->count; i++) {
		const char *word = words->word[i], *equals = strchr(word, '=');

		if (!equals)
			continue;
		format(key, sizeof(key), "%.*s", (int)(equals - word), word);
		if (!cmd->keys || choice_index(cmd->keys, key) < 0 ||
		    words_value(words, key) != equals + 1)
			return word;
	}
	return NULL;
}

static int usage_error(const struct command *cmd, const struct words *words, const char *what,
		       const char *word)
{
	return cmd_error(words, "%s%s%s%s. Usage: %s%s%s", what, word ? " \"" : "",
			 word ? word : "", word ? "\"" : "", cmd->name, cmd->usage ? " " : "",
			 cmd->usage ? cmd->usage : "");
}

static int run_words(struct words *words, const struct command **found)
{
	const struct command *cmd = find_words(words);
	const unsigned plain = words_plain_count(words);
	const char *unknown;

	*found = cmd;
	if (!cmd)
		return command_unknown(words->word[0]);
	unknown = unknown_key(cmd, words);
	if (unknown)
		return usage_error(cmd, words, "does not take", unknown);
	if (plain - 1 > cmd->max)
		return usage_error(cmd, words, "unexpected", words_plain(words, cmd->max + 1));
	if (plain - 1 < cmd->min)
		return usage_error(cmd, words, "too few words", NULL);
	return cmd->run(words);
}

static int run_one(const char *text, size_t len, size_t *used, unsigned *good)
{
	struct words words;
	const int err = words_cut(&words, text, len, used);
	const struct command *cmd = NULL;
	int result;

	if (words.count == 0)
		return 0;
	if (err)
		result = cmd_error(&words,
				   err == -EINVAL ? "unfinished quote in \"%s\""
						  : "the command is too long, at \"%s\"",
				   words.word[words.count - 1]);
	else
		result = run_words(&words, &cmd);
	*good += result >= 0 && cmd && !cmd->counts;
	return result;
}

bool commands_left;

unsigned commands_run(const char *text, size_t len, unsigned *good)
{
	unsigned failed = 0, count = 0;
	size_t used;

	while (len > 0 && !commands_left) {
		if (run_one(text, len, &used, &count) < 0)
			failed++;
		text += used;
		len -= used;
		if (len > 0 && input_stop_asked()) {
			print("the remaining commands were stopped by Ctrl-C\n");
			break;
		}
	}
	if (good)
		*good = count;
	return failed;
}

/* ---- completion ---- */

bool command_candidate(const char *name, unsigned *n, char *buf, size_t size)
{
	const struct command *cmd = command_of(name, NULL);

	for (; cmd && *n > 0; (*n)--)
		cmd = command_of(name, cmd);
	if (cmd)
		format(buf, size, "%s", cmd->name + (name ? strlen(name) + 1 : 0));
	return cmd;
}

/* `first`: the first word typed, which the command's own words may lack (find_words()). */
static bool candidate(const struct command *cmd, const char *first, const struct words *words,
		      unsigned at, unsigned n, char *buf, size_t size)
{
	if (at == 0)
		return command_candidate(NULL, &n, buf, size);
	if (cmd && at == 1 && strcmp(cmd->name, first) == 0 &&
	    command_candidate(first, &n, buf, size))
		return true;
	if (cmd && at <= ARRAY_LEN(cmd->choices) && cmd->choices[at - 1])
		return choice_name(cmd->choices[at - 1], n, buf, size);
	return cmd && cmd->candidate && cmd->candidate(words, at, n, buf, size);
}

/* Print one candidate, several to a row, each after two blanks. Returns the column reached. */
static size_t list_one(const char *word, size_t column)
{
	if (column + strlen(word) + 2 > LIST_WIDTH) {
		print("\n");
		column = 0;
	}
	print("  %s", word);
	return column + strlen(word) + 2;
}

static size_t common(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

/* The last command on the line is the one that is being typed. */
static void last_command(const char *text, size_t len, struct words *words)
{
	size_t used;

	do {
		words_cut(words, text, len, &used);
		text += used;
		len -= used;
	} while (len > 0);
}

unsigned command_complete(const char *text, size_t len, char *found, size_t size, bool list)
{
	char word[CANDIDATE_MAX], shared[CANDIDATE_MAX] = "";
	struct words words = {.count = 0};
	const struct command *cmd;
	const char *typed = "", *first;
	unsigned at, dropped, count = 0;
	size_t column = 0;

	last_command(text, len, &words);
	if (len > 0 && text[len - 1] == ';')
		words.count = 0;
	at = words.count > 0 && words.open_end ? words.count - 1 : words.count;
	if (at < words.count)
		typed = words.word[at];
	first = words.word[0];
	dropped = words.count;
	cmd = at > 1 ? find_words(&words) : at > 0 ? command_find(first) : NULL;
	at -= dropped - words.count;
	for (unsigned n = 0; candidate(cmd, first, &words, at, n, word, sizeof(word)); n++) {
		if (strncmp(word, typed, strlen(typed)) != 0)
			continue;
		if (count++ == 0)
			format(shared, sizeof(shared), "%s", word);
		shared[common(shared, word)] = '\0';
		if (list && count <= LISTED_MAX)
			column = list_one(word, column);
	}
	if (list && count > LISTED_MAX)
		print("\n  and %u more", count - LISTED_MAX);
	if (list && count > 0)
		print("\n");
	format(found, size, "%s%s", count ? shared + strlen(typed) : "",
	       count == 1 && shared[strlen(shared) - 1] != '=' && shared[strlen(shared) - 1] != '.'
		       ? " "
		       : "");
	return count;
}
