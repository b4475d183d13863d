/*
 * One mistake for each sanitizer, for payload=san-...: it must be reported, or the sanitizer looks at nothing.
 */
#include "kernel/string.h"
#include "mm/page_alloc.h"
#include "tests/bench/hang.h"

static volatile int forty = 40;

static void shift(void)
{
	forty = 1 << forty;
}

static void bounds(void)
{
	static volatile int table[8];

	table[forty] = table[0];
}

static void free_frame(void)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	volatile u64 *word = page_address(page);

	page_free(page);
	*word = 1;
}

/* As a number: the compiler sees through pointers. */
static __attribute__((noinline)) void leave_address(volatile virt_t *out)
{
	volatile u64 local[8] = {0};

	*out = (virt_t)&local[1];
}

static void dead_variable(void)
{
	volatile virt_t left;

	leave_address(&left);
	*(volatile u64 *)left = 1;
}

void payload_sanitizers(const char *name)
{
	if (strcmp(name, "san-shift") == 0)
		shift();
	if (strcmp(name, "san-bounds") == 0)
		bounds();
	if (strcmp(name, "san-free-frame") == 0)
		free_frame();
	if (strcmp(name, "san-dead-variable") == 0)
		dead_variable();
}
