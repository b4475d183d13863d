/* The kernel image in its own page tables (arch/x86_64/pgtables.c). */
#pragma once

#include "kernel/lib/types.h"
