/* Words of a typed line: see words.h. The line comes from a serial port and may hold anything. */
#include "kernel/lib/words.h"

#include "kernel/lib/string.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\0';
}

static bool is_separator(char c)
{
	return c == ';' || c == '\n';
}

static char printable(char c)
{
	return c >= ' ' && c < 0x7f ? c : '?';
}

/* Cut one word from text[*at] and copy it to *fill. Returns 0, -EINVAL (open quote) or -E2BIG. */
static int cut_word(struct words *words, const char *text, size_t len, size_t *at, size_t *fill)
{
	bool quoted = false;

	if (words->count == WORDS_MAX || *fill == WORDS_TEXT)
		return -E2BIG;
	words->word[words->count++] = &words->text[*fill];
	for (; *at < len && (quoted || (!is_blank(text[*at]) && !is_separator(text[*at])));
	     (*at)++) {
		if (text[*at] == '"') {
			quoted = !quoted;
			continue;
		}
		if (*fill + 1 >= WORDS_TEXT) {
			words->text[*fill] = '\0';
			return -E2BIG;
		}
		words->text[(*fill)++] = printable(text[*at]);
	}
	words->text[(*fill)++] = '\0';
	words->open_end = *at == len;
	return quoted ? -EINVAL : 0;
}

int words_cut(struct words *words, const char *text, size_t len, size_t *used)
{
	size_t at = 0, fill = 0;
	int err = 0;

	words->count = 0;
	words->open_end = false;
	while (at < len && !is_separator(text[at]) && !err) {
		if (is_blank(text[at]))
			at++;
		else
			err = cut_word(words, text, len, &at, &fill);
	}
	*used = err ? len : MIN(at + 1, len);
	return err;
}

static bool has_equals(const char *word)
{
	return strchr(word, '=') != NULL;
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
		if (!has_equals(words->word[i]) && which-- == 0)
			return words->word[i];
	return NULL;
}

unsigned words_plain_count(const struct words *words)
{
	unsigned n = 0;

	for (unsigned i = 0; i < words->count; i++)
		n += !has_equals(words->word[i]);
	return n;
}
