/* The heap of a program: what brk() moves. */
#pragma once

#include "kernel/lib/types.h"

/* The heap begins here, empty; a page border behind the program's last segment. */
void heap_begin(u64 start);

/* Does the address lie in the heap, as far as it is now? Context: any. */
bool heap_has(u64 addr);
