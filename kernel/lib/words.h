/*
 * Words of the command line, of a typed line, and of a program's arguments. Pure: text in, words
 * out, nothing printed, nothing kept.
 *
 *	pool 2M grow 100 node=1; bench hvo pages=64
 *	^0   ^1 ^2   ^3  ^4    ^ the first command ends here
 *
 * Commands are separated by ; or a newline, and words by blanks. "..." keeps blanks and ; together.
 * A backslash before ", ' or \ makes it an ordinary character. Bytes that could upset a terminal
 * become '?'.
 */
#pragma once

#include "kernel/lib/types.h"

/* How a text is cut into words. */
struct word_rules {
	const char *ends;   /* characters that end a word, besides NUL */
	const char *quotes; /* characters that begin and end a quotation */
	/* characters that a backslash quotes: outside quotes (NULL: any) and inside "..." */
	const char *escaped, *escaped_in_quotes;
};
extern const struct word_rules words_typed; /* words_cut()'s and the command line's */

/*
 * Cut the word at *text, which ends at `end` at the latest, without its quotes. Copy it to `out`,
 * terminated, and move *text past it. Returns 0, -EINVAL if a quote or a backslash is left open, or
 * -E2BIG if `size` bytes (at least 1) are too few.
 */
int word_cut(const char **text, const char *end, const struct word_rules *rules, char *out,
	     size_t size);

enum { WORDS_MAX = 24, WORDS_TEXT = 512 };

struct words {
	unsigned count;
	const char *word[WORDS_MAX]; /* pointers into text */
	char text[WORDS_TEXT];
	bool open_end; /* the text ends inside the last word, which completion continues */
};

/*
 * Cut the first command of [text, text + len) into words. *used: the length of text it took,
 * including its separator. Returns 0, -EINVAL if a quote was left open, or -E2BIG if there are more
 * words or more text than fit. On an error `words` holds what was cut so far.
 */
int words_cut(struct words *words, const char *text, size_t len, size_t *used);

/*
 * Value of the word KEY=VALUE, or NULL. words_plain(): the plain words, those without =, counted
 * from 0 by `which`; NULL beyond the last.
 */
const char *words_value(const struct words *words, const char *key);
const char *words_plain(const struct words *words, unsigned which);
unsigned words_plain_count(const struct words *words);

/* The value of a hexadecimal digit; 16 if it is none. */
unsigned digit_value(char c);
