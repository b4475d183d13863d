/* Vector registers, for programs that are linked to the kernel. The kernel itself uses none. */
#pragma once

#include "arch/x86_64/cpu.h"

/* Enable the vector registers (vector.c). Every CPU, once CR4 allows XSETBV. */
bool vector_has_xsave(void);
void vector_init_cpu(void);
