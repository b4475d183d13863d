/*
 * The interface to the test's environment: memory that appears when it is touched, and when to
 * stop.
 */
#pragma once

#include <stdbool.h>

enum { MEMSIZE = 128 << 20, PAGE_BYTES = 4096 };

void *map_anonymous(unsigned long bytes);
void unmap(void *memory, unsigned long bytes);
bool stop_asked(void);

/*
 * Run until stop_asked(), adding the number of pages touched to *iterations. Returns false if there
 * was no memory.
 */
bool testcase(unsigned long long *iterations);
