/* Words of program.args= and program.env=: see arguments.h. */
#include "kernel/program/arguments.h"

#include "kernel/lib/string.h"
#include "kernel/lib/words.h"

void arguments_clear(struct arguments *arguments)
{
	arguments->count = 0;
	arguments->used = 0;
}

const char *arguments_word(const struct arguments *arguments, unsigned i)
{
	return &arguments->text[arguments->at[i]];
}

static const struct word_rules shell = {
	.ends = " \t\n", .quotes = "\"'", .escaped_in_quotes = "\"\\$`\n"};

static int split_word(struct arguments *arguments, const char **text, const char *end)
{
	char *word = &arguments->text[arguments->used];
	int err;

	if (arguments->count == ARGUMENTS_MAX || arguments->used == ARGUMENTS_TEXT)
		return -E2BIG;
	err = word_cut(text, end, &shell, word, ARGUMENTS_TEXT - arguments->used);
	arguments->at[arguments->count++] = arguments->used;
	arguments->used += (u32)strlen(word) + 1;
	return err;
}

int arguments_split(struct arguments *arguments, const char *text)
{
	const unsigned count = arguments->count;
	const u32 used = arguments->used;
	const char *end = text + strlen(text);
	int err = 0;

	while (text < end && !err) {
		if (strchr(shell.ends, *text))
			text++;
		else
			err = split_word(arguments, &text, end);
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
