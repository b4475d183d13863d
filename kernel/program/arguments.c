/* Words of args= and env=: see arguments.h. */
#include "kernel/program/arguments.h"

#include "kernel/lib/string.h"

void arguments_clear(struct arguments *arguments)
{
	arguments->count = 0;
	arguments->used = 0;
}

const char *arguments_word(const struct arguments *arguments, unsigned i)
{
	return &arguments->text[arguments->at[i]];
}

static int begin_word(struct arguments *arguments)
{
	if (arguments->count == ARGUMENTS_MAX)
		return -E2BIG;
	arguments->at[arguments->count++] = arguments->used;
	return 0;
}

static int put(struct arguments *arguments, char c)
{
	if (arguments->used == ARGUMENTS_TEXT)
		return -E2BIG;
	arguments->text[arguments->used++] = c;
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

static bool loses_backslash_in_quotes(char c)
{
	return c == '"' || c == '\\' || c == '$' || c == '`' || c == '\n';
}

/*
 * Take the next character of a word at *text, in the quotes *quote ('\0', '\'' or '"'), and move
 * *text past it.
 */
static int take(struct arguments *arguments, const char **text, char *quote)
{
	const char c = *(*text)++;

	if (c == *quote && c != '\0') {
		*quote = '\0';
		return 0;
	}
	if (*quote == '\0' && (c == '\'' || c == '"')) {
		*quote = c;
		return 0;
	}
	if (c != '\\' || *quote == '\'' ||
	    (*quote == '"' && **text != '\0' && !loses_backslash_in_quotes(**text)))
		return put(arguments, c);
	if (**text == '\0')
		return -EINVAL;
	if (*(*text)++ == '\n') /* a line that goes on */
		return 0;
	return put(arguments, (*text)[-1]);
}

static int take_word(struct arguments *arguments, const char **text)
{
	char quote = '\0';
	int err = begin_word(arguments);

	while (!err && **text && (quote || !is_blank(**text)))
		err = take(arguments, text, &quote);
	if (!err && quote)
		err = -EINVAL;
	return err ? err : put(arguments, '\0');
}

int arguments_split(struct arguments *arguments, const char *text)
{
	const unsigned count = arguments->count;
	const u32 used = arguments->used;
	int err = 0;

	while (*text && !err) {
		if (is_blank(*text))
			text++;
		else
			err = take_word(arguments, &text);
	}
	if (err) {
		arguments->count = count;
		arguments->used = used;
	}
	return err;
}

int arguments_add(struct arguments *arguments, const char *word)
{
	const size_t bytes = strlen(word) + 1;

	if (arguments->count == ARGUMENTS_MAX || bytes > ARGUMENTS_TEXT - arguments->used)
		return -E2BIG;
	arguments->at[arguments->count++] = arguments->used;
	memcpy(&arguments->text[arguments->used], word, bytes);
	arguments->used += (u32)bytes;
	return 0;
}
