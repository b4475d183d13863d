/*
 * Words of a typed line. Pure: text in, words out, nothing printed, nothing kept.
 *
 *	pool 2M grow 100 node=1; bench hvo pages=64
 *	^0   ^1 ^2   ^3  ^4    ^ the first command ends here
 *
 * Commands are separated by ; or a newline; words by blanks; "..." keeps blanks and ; together. Bytes that could upset
 * a terminal become '?'.
 */
#pragma once

#include "kernel/types.h"

enum { WORDS_MAX = 24, WORDS_TEXT = 512 };

struct words {
	unsigned count;
	const char *word[WORDS_MAX]; /* into text */
	char text[WORDS_TEXT];
	bool open_end; /* the text ends inside the last word: completing continues it */
};

/*
 * Cut the first command of [text, text + len). *used: how much of the text it took, its separator included. 0;
 * -EINVAL: a quote was left open; -E2BIG: more words or more text than fits. In either case `words` holds what was cut.
 */
int words_cut(struct words *words, const char *text, size_t len, size_t *used);

/* Value of the word KEY=VALUE, or NULL. `which` counts words without = from 0: the plain ones; NULL beyond the last. */
const char *words_value(const struct words *words, const char *key);
const char *words_plain(const struct words *words, unsigned which);
unsigned words_plain_count(const struct words *words);
