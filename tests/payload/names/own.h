/* Functions of the program whose names the kernel has, too: see own.c. */
#pragma once

#include <stddef.h>

int print(int a);
int format(int a);
int echo(int a);
int panic(int a);
int printk(int a);
int kernel_main(int a);
int mm_init(int a);
int spin_lock(int a);

extern unsigned page_count, cpu_count, idle_task, text_start, image_end, symbol_count;

/* Calls of the program's own memcpy(), memset() and strlen() so far. */
unsigned own_copies(void);
unsigned own_sets(void);
unsigned own_lengths(void);
