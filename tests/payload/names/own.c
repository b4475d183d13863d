/*
 * A part of a program that knows nothing of the kernel. It has a C library of its own, and it uses
 * names that the kernel uses for something else.
 */
#include "own.h"

#include <stddef.h>

unsigned page_count = 1, cpu_count = 2, idle_task = 3, text_start = 4, image_end = 5,
	 symbol_count = 6;
static unsigned copies, sets, lengths;

int print(int a)
{
	return a + 1;
}

int format(int a)
{
	return a + 2;
}

int echo(int a)
{
	return a + 3;
}

int panic(int a)
{
	return a + 4;
}

int printk(int a)
{
	return a + 5;
}

int kernel_main(int a)
{
	return a + 6;
}

int mm_init(int a)
{
	return a + 7;
}

int spin_lock(int a)
{
	return a + 8;
}

/* Volatile, so that the compiler does not turn the loops into calls of these functions. */

void *memcpy(void *to, const void *from, size_t bytes)
{
	volatile char *at = to;

	copies++;
	for (size_t i = 0; i < bytes; i++)
		at[i] = ((const char *)from)[i];
	return to;
}

void *memset(void *to, int byte, size_t bytes)
{
	volatile char *at = to;

	sets++;
	for (size_t i = 0; i < bytes; i++)
		at[i] = (char)byte;
	return to;
}

size_t strlen(const char *text)
{
	const volatile char *at = text;

	lengths++;
	while (*at)
		at++;
	return (size_t)(at - text);
}

unsigned own_copies(void)
{
	return copies;
}

unsigned own_sets(void)
{
	return sets;
}

unsigned own_lengths(void)
{
	return lengths;
}
