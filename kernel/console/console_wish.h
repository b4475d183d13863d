/* console=: the list of consoles that the command line asks for. Pure. */
#pragma once

#include "kernel/console/console.h"

/*
 * Parse such a list. Returns the number of entries, -EINVAL if a word makes no sense, or -E2BIG if
 * there are too many.
 */
int console_wishes_parse(const char *text, struct console_wish wish[CONSOLE_WISHES_MAX]);
