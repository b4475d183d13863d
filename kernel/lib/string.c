/*
 * Memory and string functions with their C meanings (ISO C11, 7.24). The compiler generates calls
 * of the first four by itself.
 *
 * The copying loops move 8 bytes at a time through a type that may alias and be unaligned. The
 * compiler fence in each loop keeps the optimiser from recognising the loop as memcpy() and
 * replacing it by a call to itself. Pages and other long areas are copied by one instruction.
 */
#include "kernel/lib/string.h"

#include <arch/barrier.h>
#include <arch/copy.h>

struct word {
	u64 v;
} __packed __attribute__((may_alias));

static void copy_forward(u8 *d, const u8 *s, size_t n)
{
	if (n >= COPY_LONG) {
		const size_t whole = n & ~(size_t)7;

		copy_words(d, s, whole / 8);
		d += whole;
		s += whole;
		n -= whole;
	}
	for (; n >= 8; n -= 8, d += 8, s += 8) {
		((struct word *)d)->v = ((const struct word *)s)->v;
		fence_compiler();
	}
	for (; n; n--) {
		*d++ = *s++;
		fence_compiler();
	}
}

static void copy_backward(u8 *d, const u8 *s, size_t n)
{
	for (d += n, s += n; n >= 8; n -= 8) {
		d -= 8;
		s -= 8;
		((struct word *)d)->v = ((const struct word *)s)->v;
		fence_compiler();
	}
	for (; n; n--) {
		*--d = *--s;
		fence_compiler();
	}
}

void *memcpy(void *dst, const void *src, size_t n)
{
	copy_forward(dst, src, n);
	return dst;
}

/* Forward is right unless the destination starts inside the source. */
void *memmove(void *dst, const void *src, size_t n)
{
	if ((virt_t)dst - (virt_t)src >= n)
		copy_forward(dst, src, n);
	else
		copy_backward(dst, src, n);
	return dst;
}

void *memset(void *dst, int c, size_t n)
{
	u64 fill = (u8)c * 0x0101010101010101ULL;
	u8 *d = dst;

	/* a line at a time: start-up clears tables that grow with the machine */
	for (; n >= 64; n -= 64, d += 64) {
#pragma GCC unroll 8
		for (unsigned i = 0; i < 8; i++)
			((struct word *)d)[i].v = fill;
		fence_compiler();
	}
	for (; n >= 8; n -= 8, d += 8) {
		((struct word *)d)->v = fill;
		fence_compiler();
	}
	for (; n; n--) {
		*d++ = (u8)c;
		fence_compiler();
	}
	return dst;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const u8 *x = a, *y = b;

	for (; n >= 8 && ((const struct word *)x)->v == ((const struct word *)y)->v; n -= 8) {
		x += 8;
		y += 8;
	}
	for (; n; n--, x++, y++) {
		if (*x != *y)
			return *x - *y;
	}
	return 0;
}

size_t strnlen(const char *s, size_t max)
{
	size_t n = 0;

	while (n < max && s[n])
		n++;
	return n;
}

size_t strlen(const char *s)
{
	return strnlen(s, SIZE_MAX);
}

int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, SIZE_MAX);
}

int strncmp(const char *a, const char *b, size_t n)
{
	for (; n; n--, a++, b++) {
		if (*a != *b || !*a)
			return (u8)*a - (u8)*b;
	}
	return 0;
}

char *strchr(const char *s, int c)
{
	for (;; s++) {
		if (*s == (char)c)
			return (char *)(virt_t)s;
		if (!*s)
			return NULL;
	}
}
