/* Functions of the program whose names the kernel has, too: see own.c. */
#pragma once

#include <stddef.h>

int print(int a);
int panic(int a);
int kernel_main(int a);

extern unsigned page_count, text_start;

/* Calls of the program's own memcpy(), memset() and strlen() so far. */
unsigned own_calls(void);
