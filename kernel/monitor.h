/*
 * The monitor: commands typed on a console, or given on the kernel's command line.
 *
 *	run="pool 2M 4096; bench hvo"   run these, each a pass or a failure of the run, then end
 *	monitor                         prompt and wait for commands (after those of run=)
 *
 * Boot CPU.
 */
#pragma once

#include "kernel/types.h"

/* True if the command line asked for commands or the prompt, and they are through; false: the payload's turn. */
bool monitor_run(void);
