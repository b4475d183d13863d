/*
 * The words of program.args= and program.env=, split as a shell splits them. Pure: text in, words
 * out.
 *
 *	-c 'a b' "say \"x\""  two\ words     the words  -c | a b | say "x" | two words
 *
 * Blanks, tabs and newlines separate words. '...' keeps everything. "..." keeps everything except
 * that a backslash before " \ $ ` or a newline loses its meaning as a backslash. Elsewhere a
 * backslash keeps the next character. There are no variables, patterns or comments.
 *
 * Source: IEEE Std 1003.1-2017, "Shell Command Language", 2.2 "Quoting".
 */
#pragma once

#include "kernel/lib/types.h"

enum { ARGUMENTS_MAX = 256, ARGUMENTS_TEXT = 8192 };

struct arguments {
	unsigned count;
	u32 used;              /* bytes of text */
	u32 at[ARGUMENTS_MAX]; /* of each word in text */
	char text[ARGUMENTS_TEXT];
};

/* Start with no words. */
void arguments_clear(struct arguments *arguments);

/* Append one word as it is. Returns 0, or -E2BIG and changes nothing. Any context. */
int arguments_add(struct arguments *arguments, const char *word);

/*
 * Append the words of a text. Returns 0, -EINVAL if a quote or a backslash is left open, or -E2BIG.
 * On an error nothing is appended. Any context.
 */
int arguments_split(struct arguments *arguments, const char *text);

/* Word i, terminated. */
const char *arguments_word(const struct arguments *arguments, unsigned i);
