/*
 * One mistake for each check of a sanitizer, for payload=san-... . If it is not reported, the
 * sanitizer checks nothing.
 */
#include "mm/hugetlb/pool.h"
#include "mm/memmap/meta.h"
#include "tests/bench/hang.h"
#include "tests/bench/measure.h"

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

/* Allocate and free a page of `order`. Returns the address of its frame `frame`. */
static char *freed(unsigned order, u64 frame)
{
	struct page *page = page_alloc(order, USE_UNMOVABLE, 0, NODE_NONE);
	char *addr = page_address(page);

	page_free(page);
	return addr + frame * PAGE_SIZE;
}

static void store_to(void *addr)
{
	*(volatile u64 *)addr = 1;
}

/* A store to a free page of some order. */
static const struct {
	const char *name;
	unsigned order;
	u64 frame;
} stores[] = {
	{"san-free-frame", 0, 0},
	{"san-free-tail", 3, 5},
	{"san-free-chunk", 7, 77},
	{"san-free-huge", BLOCK_ORDER, 300},
};

static void free_pool_page(void)
{
	pool_grow(&pool_2m, hvo_mode_selected(), 1);
	store_to(phys_to_virt((block_pfn(pool_2m.node[0].free.head) + 300) << PAGE_SHIFT));
}

static void clear_free(void)
{
	clear_pages(freed(0, 0), 1);
}

/* Clear two neighbouring pages of which only the first is in use. */
static void clear_past_the_end(void)
{
	struct page *first = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE),
		    *second = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);

	page_free(second);
	if (second == first + 1)
		clear_pages(page_address(first), 2);
}

static void clear_free_huge(void)
{
	const struct clear_how how = clear_how_selected();

	clear_huge(&how, freed(BLOCK_ORDER, 0), MIB(2), CLEAR_NO_HINT, 0);
}

/*
 * A frame that metadata memory had in use and that was given back under a tag; with tag 0 it is
 * free at once.
 */
static void *meta_given(u64 tag)
{
	struct node *node = &mm_kernel.node[0];
	const bool reserved = meta_reserve(node, META_LASTING, 1) == 0;
	const pfn_t pfn = reserved ? meta_take(node, META_LASTING) : 0;

	if (reserved)
		meta_give(&mm_kernel, pfn, tag);
	return phys_to_virt(pfn << PAGE_SHIFT);
}

static void free_meta(void)
{
	forty = *(volatile int *)meta_given(0);
}

static void gated_meta(void)
{
	store_to(meta_given(~0ULL));
}

/* The address is passed as a number, because the compiler sees through pointers. */
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

static const struct {
	const char *name;
	void (*make)(void);
} mistakes[] = {
	{"san-shift", shift},
	{"san-bounds", bounds},
	{"san-free-pool", free_pool_page},
	{"san-clear-free", clear_free},
	{"san-clear-past-end", clear_past_the_end},
	{"san-clear-huge", clear_free_huge},
	{"san-free-meta", free_meta},
	{"san-gated-meta", gated_meta},
	{"san-dead-variable", dead_variable},
};

void payload_sanitizers(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(stores); i++)
		if (strcmp(name, stores[i].name) == 0)
			store_to(freed(stores[i].order, stores[i].frame));
	for (unsigned i = 0; i < ARRAY_LEN(mistakes); i++)
		if (strcmp(name, mistakes[i].name) == 0)
			mistakes[i].make();
}
