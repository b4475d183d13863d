/*
 * A part of a program that knows nothing of the kernel. It has a C library of its own, and it uses
 * names that the kernel uses for something else.
 */
#include "own.h"

#include <stddef.h>

unsigned page_count = 1, text_start = 2;
static unsigned calls;

int print(int a)
{
	return a + 1;
}

int panic(int a)
{
	return a + 2;
}

int kernel_main(int a)
{
	return a + 3;
}

/* Volatile, so that the compiler does not turn the loops into calls of these functions. */

void *memcpy(void *to, const void *from, size_t bytes)
{
	volatile char *at = to;

	calls++;
	for (size_t i = 0; i < bytes; i++)
		at[i] = ((const char *)from)[i];
	return to;
}

void *memset(void *to, int byte, size_t bytes)
{
	volatile char *at = to;

	calls++;
	for (size_t i = 0; i < bytes; i++)
		at[i] = (char)byte;
	return to;
}

size_t strlen(const char *text)
{
	const volatile char *at = text;

	calls++;
	while (*at)
		at++;
	return (size_t)(at - text);
}

unsigned own_calls(void)
{
	return calls;
}
