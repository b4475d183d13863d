/* The machine page: what this run found and uses, for people and as a BENCH boot record. */
#pragma once

#include "kernel/types.h"

void machine_print(void);

/* Time from entry to ready, as the machine page has it. */
u64 machine_ready_ns(void);
