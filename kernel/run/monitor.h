/*
 * The monitor: commands typed on a console, or given on the kernel's command line.
 *
 *	run="pool 2M 4096; bench hvo"   run these, each a pass or a failure of the run, then end
 *	monitor                         prompt and wait for commands (after those of run=)
 *
 * Boot CPU.
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * Run what the command line asks for: commands, the prompt, or both. True when they are finished;
 * false if it asks for neither and the payload must run.
 */
bool monitor_run(void);
