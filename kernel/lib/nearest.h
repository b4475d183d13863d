/*
 * The names that are nearest to a mistyped one, by the number of edits between them. An edit is a
 * character more, less or changed, or two neighbours exchanged. A third of the last part of the
 * typed name, after a dot or a blank, may be edited.
 *
 *	struct nearest near = {.typed = "hlep"};
 *	nearest_try(&near, name);                   each name there is
 *	nearest_say(&near, "", text, sizeof(text)); "; did you mean help?"
 */
#pragma once

#include "kernel/lib/types.h"

enum { NEAREST_MAX = 3, NEAREST_NAME_MAX = 80 };

struct nearest {
	const char *typed;
	unsigned count, edits; /* names kept, and the edits to each of them */
	char name[NEAREST_MAX][NEAREST_NAME_MAX];
};

void nearest_try(struct nearest *near, const char *name);

/* Keep a name whose edits the caller has counted, unless others are nearer. */
void nearest_keep(struct nearest *near, const char *name, unsigned edits);

/* Write the end of a message: the names, each with `after` behind it; "" if no name is near. */
void nearest_say(const struct nearest *near, const char *after, char *buf, size_t size);
