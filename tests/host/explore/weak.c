/*
 * Fences and locked instructions that are weakened on purpose: see explore.h.
 */
#include <stdlib.h>

#include "tests/host/child.h"
#include "tests/host/explore/explore.h"

enum { WEAK_MAX = 256 };

extern const char __executable_start[];

static u32 weak[WEAK_MAX];
static unsigned weak_count;

static void note(u32 offset)
{
	u32 *at = explore_result->reached;

	for (u32 i = offset; at[i % REACHED_MAX] != offset; i++) {
		if (at[i % REACHED_MAX] == 0) {
			at[i % REACHED_MAX] = offset;
			return;
		}
	}
}

bool explore_weak(const void *place)
{
	const u32 offset = (u32)((const char *)place - __executable_start);

	if (!exploring)
		return false;
	note(offset);
	for (unsigned i = 0; i < weak_count; i++)
		if (weak[i] == offset)
			return true;
	return false;
}

void weak_parse(const char *text)
{
	char *end;

	for (; *text && weak_count < WEAK_MAX; text = *end ? end + 1 : end)
		weak[weak_count++] = (u32)strtoul(text, &end, 16);
}

void weak_print(void)
{
	child_say("# reached:");
	for (u32 i = 0; i < REACHED_MAX; i++)
		if (explore_result->reached[i])
			child_say(" %x", explore_result->reached[i]);
	child_say("\n");
}
