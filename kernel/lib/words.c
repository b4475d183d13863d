/* Words of a text: see words.h. Lines come from a serial port or a loader and may hold anything. */
#include "kernel/lib/words.h"

#include "kernel/lib/string.h"

const struct word_rules words_typed = {
	.ends = " \t\r\n;", .quotes = "\"", .escaped = "\\\"'", .escaped_in_quotes = "\\\"'"};

static bool is_one_of(char c, const char *chars)
{
	return c != '\0' && strchr(chars, c) != NULL;
}

/* Does a backslash before `c` lose its meaning as a character? `quote`: the quotes it stands in. */
static bool is_escaped(const struct word_rules *rules, char quote, char c)
{
	if (quote)
		return quote != '\'' && is_one_of(c, rules->escaped_in_quotes);
	return !rules->escaped || is_one_of(c, rules->escaped);
}

int word_cut(const char **text, const char *end, const struct word_rules *rules, char *out,
	     size_t size)
{
	const char *p = *text;
	char quote = '\0';
	int err = 0;

	for (; p < end && (quote || (*p && !is_one_of(*p, rules->ends))); p++) {
		const bool backslash = *p == '\\' && p + 1 < end && is_escaped(rules, quote, p[1]);

		if (*p == '\\' && p + 1 == end && !quote && !rules->escaped)
			err = -EINVAL;
		p += backslash;
		if (!backslash && (quote ? *p == quote : is_one_of(*p, rules->quotes)))
			quote = quote ? '\0' : *p;
		else if (size <= 1)
			err = -E2BIG;
		else if (!backslash || *p != '\n') /* else a line that goes on */
			*out++ = *p, size--;
		if (err)
			break;
	}
	*out = '\0';
	*text = p;
	return err ? err : quote ? -EINVAL : 0;
}

/* Cut one word from *at and copy it to *fill. Returns 0, -EINVAL (open quote) or -E2BIG. */
static int take_word(struct words *words, const char **at, const char *end, size_t *fill)
{
	char *word = &words->text[*fill];
	int err;

	if (words->count == WORDS_MAX || *fill == WORDS_TEXT)
		return -E2BIG;
	words->word[words->count++] = word;
	err = word_cut(at, end, &words_typed, word, WORDS_TEXT - *fill);
	for (char *p = word; *p; p++)
		if (*p < ' ' || *p >= 0x7f)
			*p = '?';
	*fill += strlen(word) + 1;
	words->open_end = *at == end;
	return err;
}

int words_cut(struct words *words, const char *text, size_t len, size_t *used)
{
	const char *at = text, *end = text + len;
	size_t fill = 0;
	int err = 0;

	words->count = 0;
	words->open_end = false;
	while (at < end && *at != ';' && *at != '\n' && !err) {
		if (strchr(" \t\r", *at)) /* or a NUL */
			at++;
		else
			err = take_word(words, &at, end, &fill);
	}
	*used = err ? len : MIN((size_t)(at - text) + 1, len);
	return err;
}

const char *words_value(const struct words *words, const char *key)
{
	const size_t n = strlen(key);

	for (unsigned i = 0; i < words->count; i++)
		if (strncmp(words->word[i], key, n) == 0 && words->word[i][n] == '=')
			return words->word[i] + n + 1;
	return NULL;
}

const char *words_plain(const struct words *words, unsigned which)
{
	for (unsigned i = 0; i < words->count; i++)
		if (!strchr(words->word[i], '=') && which-- == 0)
			return words->word[i];
	return NULL;
}

unsigned words_plain_count(const struct words *words)
{
	unsigned n = 0;

	for (unsigned i = 0; i < words->count; i++)
		n += !strchr(words->word[i], '=');
	return n;
}

unsigned digit_value(char c)
{
	const char lower = c | 0x20;

	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	return lower >= 'a' && lower <= 'f' ? (unsigned)(lower - 'a' + 10) : 16;
}
