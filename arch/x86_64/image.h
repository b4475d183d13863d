/* The kernel image in its own page tables (arch/x86_64/pgtables.c). */
#pragma once

#include "kernel/types.h"

/* What an access inside the image that faulted was, in words; NULL if `addr` lies elsewhere or the access is allowed. */
const char *image_fault_describe(virt_t addr, bool write, bool exec);
