/*
 * A program may use every name that is not one of the interface (ashlar.symbols). This one defines
 * functions and variables that the kernel has, too, and a part of a C library. It checks that the
 * program gets its own, and that the kernel keeps using the kernel's.
 *
 *	make run PAYLOAD=tests/payload/names
 */
#include <ashlar.h>

#include "own.h"

void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
size_t strlen(const char *text);

static void report(const char *what, bool ok)
{
	ashlar_print("  %-52s %s\n", what, ok ? "ok" : "FAILED");
	verdict_count(ok, !ok, 0);
}

static void names(void)
{
	report("the program's functions are called",
	       print(0) == 1 && panic(0) == 2 && kernel_main(0) == 3);
	report("the program's variables are read", page_count == 1 && text_start == 2);
}

static void library(void)
{
	char from[100] = "a text", to[100];
	const volatile size_t bytes = sizeof(from); /* not known to the compiler */
	const unsigned before = own_calls();

	memset(to, 1, bytes);
	memcpy(to, from, bytes);
	report("the program's memcpy(), memset() and strlen()",
	       strlen(to) == 6 && own_calls() >= before + 3);
	memmove(to + 1, to, bytes - 1); /* the program has none */
	report("a function of the library that the program lacks", to[1] == 'a' && to[6] == 't');
}

/* Format, copy a page, make and clear a mapping: work in which the kernel copies and sets. */
static void kernel(void)
{
	const unsigned before = own_calls();
	struct page *a = page_alloc(0, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);
	struct page *b = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	char *large = huge_map(MIB(4), MIB(2), HUGE_POPULATE), text[20];
	bool ok = a && b && large;

	if (ok) {
		*(char *)page_address(a) = 7;
		page_copy(b, a);
		large[MIB(3)] = 1;
		ashlar_format(text, sizeof(text), "%s %d", "page", *(char *)page_address(b));
		ok = text[5] == '7' && large[0] == 0;
	}
	if (large)
		huge_unmap(large);
	if (a)
		page_free(a);
	if (b)
		page_free(b);
	report("the kernel works, and uses none of the program's", ok && own_calls() == before);
}

void payload_run(void)
{
	ashlar_print("\n");
	names();
	library();
	kernel();
}
