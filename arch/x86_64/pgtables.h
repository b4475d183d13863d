/* The page tables of the kernel's own image. */
#pragma once

#include "arch/x86_64/image.h"

/*
 * Describe an access inside the image that faulted. NULL if `addr` lies elsewhere or the access is
 * allowed.
 */
const char *image_fault_describe(virt_t addr, bool write, bool exec);
