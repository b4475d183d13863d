/* Vector registers, for programs that are linked to the kernel. The kernel itself uses none. */
#pragma once

#include "kernel/lib/types.h"

/* Enable the vector registers (vector.c). Every CPU, once CR4 allows XSETBV. */
bool vector_has_xsave(void);
void vector_init_cpu(void);
