/* Stages of start-up: see boot_stages.h. */
#include "kernel/core/boot_stages.h"

#include <arch/clock.h>

#include "kernel/core/panic.h"

struct boot_stages boot_stages;

void boot_stage_end(const char *name)
{
	const u64 now = clock_ns();

	ASSERT(boot_stages.ended < BOOT_STAGES_MAX, "start-up has more than %d stages",
	       BOOT_STAGES_MAX);
	boot_stages.stage[boot_stages.ended++] =
		(struct boot_stage){.name = name, .ns = now - boot_stages.ns};
	boot_stages.ns = now;
}
