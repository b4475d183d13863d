/* The parts of the kernel image, each with its own rights (linker.ld, pgtables.c). */
#pragma once

#include "kernel/lib/types.h"

/*
 * Describe an access inside the image that faulted. NULL if `addr` lies elsewhere or the access is
 * allowed.
 */
const char *image_fault_describe(virt_t addr, bool write, bool exec);
