/*
 * Words of a typed line. Pure: text in, words out, nothing printed, nothing kept.
 *
 *	pool 2M grow 100 node=1; bench hvo pages=64
 *	^0   ^1 ^2   ^3  ^4    ^ the first command ends here
 *
 * Commands are separated by ; or a newline, and words by blanks. "..." keeps blanks and ; together.
 * Bytes that could upset a terminal become '?'.
 */
#pragma once

#include "kernel/lib/types.h"

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
