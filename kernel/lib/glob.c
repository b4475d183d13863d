/*
 * Shell-style matching with * and ?, for selecting tests. Linear in memory, no recursion: on a
 * mismatch the latest * takes one more character, which is enough because a later * can always do
 * what an earlier one could.
 */
#include "kernel/lib/glob.h"

bool glob_match(const char *pattern, const char *text)
{
	const char *star = NULL, *retry = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			retry = text;
		} else if (*pattern && (*pattern == '?' || *pattern == *text)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++retry;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}
