/* Patterns with * and ?. Pure. */
#pragma once

#include "kernel/lib/string.h"

/*
 * Shell-style match of `text` against `pattern` with * and ?: "mm.buddy.*" matches
 * "mm.buddy.merge".
 */
bool glob_match(const char *pattern, const char *text);
