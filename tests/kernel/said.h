/*
 * What was printed while a case ran, also by commands of the monitor that it ran: read back from
 * the RAM log.
 */
#pragma once

#include "kernel/run/test.h"

extern char said_text[32768];

/* What is printed between the two is in said_text after the second. */
void said_begin(void);
void said_end(void);

/* Run a line; what it printed is in said_text. Returns how many commands failed. */
unsigned said_run(const char *text);

/* Does it contain this (a glob)? */
bool said_says(const char *what);

#define EXPECT_REFUSED(text, ...)                                                                  \
	do {                                                                                       \
		EXPECT_EQ(said_run(text), 1);                                                      \
		if (!said_says(__VA_ARGS__))                                                       \
			test_fail(__FILE__, __LINE__, "\"%s\" says: %s", text, said_text);         \
	} while (0)
