/*
 * The words of a program: its arguments, or its environment. They lie one behind the other, each
 * with a zero byte at its end, as in /proc/self/cmdline (proc(5)), and belong to somebody else.
 * Pure.
 *
 * arguments_split() makes them of a text, as a shell does:
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

struct arguments {
	const char *text; /* NULL if there are none */
	u64 bytes;        /* of all words, their zero bytes among them */
	u64 count;
};

/*
 * The words in `bytes` bytes at `text`, which must stay there. Returns 0, or -EINVAL if the last
 * byte is not zero. Any context.
 */
int arguments_of(struct arguments *arguments, const char *text, u64 bytes);

/*
 * The words of a terminated text, copied to `buffer`, which must stay there; strlen(text) + 1 bytes
 * are always enough. Returns 0, -EINVAL if a quote or a backslash is left open, or -E2BIG. On an
 * error there are no words. Any context.
 */
int arguments_split(struct arguments *arguments, const char *text, char *buffer, size_t size);

/* The word behind `word`, or the first for NULL; NULL behind the last. */
const char *arguments_next(const struct arguments *arguments, const char *word);
