/* What calls say about the program as a whole. */
#pragma once

#include "kernel/lib/types.h"

u32 program_pid(void); /* the id of its first thread */

/* The most memory that was resident at one time, in bytes. */
u64 program_resident_most(void);
