/* Names that are near to a mistyped one: see nearest.h. */
#include "kernel/lib/nearest.h"

#include "kernel/lib/format.h"
#include "kernel/lib/string.h"

/* Edits that turn `a` into `b`. Both are shorter than NEAREST_NAME_MAX. */
static unsigned edits(const char *a, const char *b)
{
	/* row i % 3: between the first i characters of a and the first j of b */
	u8 d[3][NEAREST_NAME_MAX];
	const size_t la = strlen(a), lb = strlen(b);

	for (size_t i = 0; i <= la; i++) {
		u8 *row = d[i % 3], *above = d[(i + 2) % 3], *before = d[(i + 1) % 3];

		row[0] = (u8)i;
		for (size_t j = 1; j <= lb; j++) {
			row[j] = (u8)j;
			if (i == 0)
				continue;
			row[j] = MIN(above[j - 1] + (a[i - 1] != b[j - 1]),
				     MIN(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = MIN(row[j], before[j - 2] + 1);
		}
	}
	return d[la % 3][lb];
}

static unsigned edits_allowed(const char *name)
{
	const char *part = name;

	for (; *name; name++)
		if (*name == '.' || *name == ' ')
			part = name + 1;
	return MAX((unsigned)strlen(part) / 3, 1);
}

void nearest_keep(struct nearest *near, const char *name, unsigned distance)
{
	if (near->count && distance > near->edits)
		return;
	if (!near->count || distance < near->edits)
		near->count = 0;
	near->edits = distance;
	for (unsigned i = 0; i < near->count; i++)
		if (strcmp(near->name[i], name) == 0)
			return;
	if (near->count < NEAREST_MAX)
		format(near->name[near->count++], NEAREST_NAME_MAX, "%s", name);
}

void nearest_try(struct nearest *near, const char *name)
{
	unsigned distance;

	if (MAX(strlen(near->typed), strlen(name)) >= NEAREST_NAME_MAX)
		return;
	distance = edits(near->typed, name);
	if (distance && distance <= edits_allowed(near->typed))
		nearest_keep(near, name, distance);
}

void nearest_say(const struct nearest *near, const char *after, char *buf, size_t size)
{
	size_t at = 0;

	*buf = '\0';
	for (unsigned i = 0; i < near->count && at < size; i++)
		at += (size_t)format(buf + at, size - at, "%s%s%s", i ? " or " : "; did you mean ",
				     near->name[i], after);
	if (near->count && at < size)
		format(buf + at, size - at, "?");
}
