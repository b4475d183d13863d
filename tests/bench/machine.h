/*
 * The machine page: the hardware that this run found and uses, for people and as a BENCH boot
 * record.
 */
#pragma once

#include "kernel/lib/types.h"

void machine_print(void);

/* Time from entry to ready, as shown on the machine page. */
u64 machine_ready_ns(void);
