/*
 * Fences and locked instructions that are weakened on purpose: see explore.h.
 */
#include "tests/host/child.h"
#include "tests/host/explore/explore.h"

extern const char __executable_start[];

static bool weak[PROGRAM_MAX]; /* by offset */

bool explore_weak(const void *place)
{
	const size_t offset = (size_t)((const char *)place - __executable_start) % PROGRAM_MAX;

	if (!exploring)
		return false;
	explore_result->reached[offset] = true;
	return weak[offset];
}

void weak_parse(const char *text)
{
	char *end;

	for (; *text; text = *end ? end + 1 : end)
		weak[strtoul(text, &end, 16) % PROGRAM_MAX] = true;
}

void weak_print(void)
{
	child_say("# reached:");
	for (u32 i = 0; i < PROGRAM_MAX; i++)
		if (explore_result->reached[i])
			child_say(" %x", i);
	child_say("\n");
}
