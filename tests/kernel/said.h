/*
 * The output of a case, including that of the monitor's commands which it runs, read back from the
 * RAM log.
 */
#pragma once

#include "kernel/lib/types.h"

extern char said_text[32768];

/* After said_end(), said_text contains everything printed since said_begin(). */
void said_begin(void);
void said_end(void);

/* Run a line of commands and leave its output in said_text. Returns how many commands failed. */
unsigned said_run(const char *text);

/* Does the text, or said_text, contain a match for this glob? */
bool text_has(const char *text, const char *what);
bool said_says(const char *what);

#define EXPECT_REFUSED(text, ...)                                                                  \
	do {                                                                                       \
		EXPECT_EQ(said_run(text), 1);                                                      \
		if (!said_says(__VA_ARGS__))                                                       \
			test_fail(__FILE__, __LINE__, "\"%s\" says: %s", text, said_text);         \
	} while (0)
