/*
 * Included before instrumented code (-include): copies and clears are stores that buffer.c logs. A
 * name given here holds for the calls that the compiler adds by itself, too.
 */
#pragma once

typedef __SIZE_TYPE__ explore_size;

extern void *memcpy(void *to, const void *from, explore_size n) __asm__("explore_memmove");
extern void *memmove(void *to, const void *from, explore_size n) __asm__("explore_memmove");
extern void *memset(void *to, int c, explore_size n) __asm__("explore_memset");
