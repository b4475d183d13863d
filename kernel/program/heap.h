/* The heap of a program: what brk() moves. */
#pragma once

#include "kernel/lib/types.h"

/* The heap begins here, empty; a page border behind the program's last segment. */
void heap_begin(u64 start);
