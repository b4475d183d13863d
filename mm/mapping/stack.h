/*
 * Stacks that programs take (stack_alloc() in mm.h). A stack is a populated huge mapping of 4 KiB
 * pages, so its guard is the unmapped slot below it (huge_map.h).
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * True if `addr` lies in the guard of such a stack; `buf` then has a text such as "overflow of the
 * stack of 16 KiB that payload_run+0x2a took". Context: any.
 */
bool stack_overflow_describe(virt_t addr, char *buf, size_t size);
