/*
 * Payloads that leave something behind, to show that the kernel notices: payload=leak-page and
 * others.
 */
#include "tests/bench/leaks.h"

#include "mm/hugetlb/pool_use.h"
#include "tests/bench/measure.h"

enum { PAGES = 4, MAPPED = 3, TAKEN = 2, PROMISED = 3, POOL = 8 };

static struct page *pages[PAGES];

/* Not inlined, so that debug.page_owner=on can name it. */
static __attribute__((noinline)) void take_pages(void)
{
	for (unsigned i = 0; i < PAGES; i++)
		pages[i] = page_alloc(i + 1 < PAGES ? 0 : 3, USE_UNMOVABLE, 0, NODE_NONE);
}

static void give_pages(void)
{
	for (unsigned i = 0; i < PAGES; i++)
		if (pages[i])
			page_free(pages[i]);
}

static char *map_some(unsigned touched)
{
	char *start = huge_map(MIB(2) * MAPPED, MIB(2), 0);

	for (unsigned i = 0; start && i < touched; i++)
		*(volatile char *)(start + i * MIB(2)) = 1;
	return start;
}

static __attribute__((noinline)) void take_from_pool(struct page *taken[])
{
	pool_grow(&pool_2m, hvo_mode_selected(), POOL);
	for (unsigned i = 0; i < TAKEN; i++)
		taken[i] = pool_page_take(&pool_2m, NODE_NONE, POOL_ANY);
	pool_reserve(&pool_2m, PROMISED);
}

/* A server that is never told to stop. */
static void serve_for_ever(void *unused)
{
	for (;;)
		cpu_relax();
}

static void leave_nothing(void)
{
	struct page *taken[TAKEN];
	char *start = map_some(MAPPED);

	take_pages();
	give_pages();
	huge_unmap(start);
	take_from_pool(taken);
	for (unsigned i = 0; i < TAKEN; i++)
		pool_page_give(&pool_2m, taken[i]);
	pool_unreserve(&pool_2m, PROMISED);
}

bool payload_leaks(const char *name)
{
	struct page *taken[TAKEN];

	if (strcmp(name, "leak-page") == 0)
		take_pages();
	else if (strcmp(name, "leak-huge") == 0)
		map_some(MAPPED);
	else if (strcmp(name, "leak-map") == 0)
		map_some(0);
	else if (strcmp(name, "leak-pool") == 0)
		take_from_pool(taken);
	else if (strcmp(name, "leak-work") == 0)
		work_start(1, serve_for_ever, NULL);
	else if (strcmp(name, "leak-none") == 0)
		leave_nothing();
	else
		return false;
	verdict_count(1, 0, 0);
	return true;
}
