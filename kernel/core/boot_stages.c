/* Stages of start-up: see boot_stages.h. */
#include "kernel/core/boot_stages.h"

#include <arch/clock.h>

#include "kernel/core/panic.h"

static struct boot_stage stages[BOOT_STAGES_MAX];
static size_t ended;
static u64 last_end; /* in ns after entry */

void boot_stage_end(const char *name)
{
	const u64 now = clock_ns();

	ASSERT(ended < BOOT_STAGES_MAX, "start-up has more than %d stages", BOOT_STAGES_MAX);
	stages[ended++] = (struct boot_stage){.name = name, .ns = now - last_end};
	last_end = now;
}

const struct boot_stage *boot_stages(size_t *count)
{
	*count = ended;
	return stages;
}

u64 boot_stages_ns(void)
{
	return last_end;
}
