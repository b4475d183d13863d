/* The memory of the program: see program_space.h. */
#include "kernel/program/program_space.h"

#include "kernel/core/cmdline.h"
#include "kernel/program/layout.h"
#include "kernel/program/thread.h"

static unsigned huge;
OPTION_CHOICE(
	program.thp, huge, "always|madvise|never",
	"2 MiB pages for programs: wherever an area has room, where madvise() asks, or never");

static bool ended(void)
{
	return thread_must_end(thread_current());
}

static bool interrupted(void)
{
	return thread_is_wanted(thread_current());
}

struct space program_space = {
	.range = {.start = USER_START, .end = USER_END, .top = MAPPINGS_TOP},
	.user = true,
	.huge = &huge,
	.ended = ended,
	.interrupted = interrupted,
};
