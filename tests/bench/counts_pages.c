/*
 * Rows of the counts benchmark: pages, from the per-CPU lists down to whole blocks. A row uses
 * `order` and `request`.
 */
#include "tests/bench/counts.h"
#include "tests/bench/measure.h"

enum { SEVERAL = 512 };

/* Each is freed before the next is allocated. */
static u64 pairs(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++) {
		struct page *page = page_alloc(op->order, USE_MOVABLE, op->request, NODE_NONE);

		if (!page)
			return 0;
		page_free(page);
	}
	return op->times;
}

/* All free sections are closed, so that a GiB need not be searched for; then one page is made. */
static bool make_one(const struct counts_op *op)
{
	const struct counts_op one = {.order = op->order, .times = 1};

	pcp_drain_all(&mm_kernel);
	sections_close_all(&mm_kernel);
	return pairs(&one) > 0;
}

static u64 alloc_each(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++) {
		counts_held[i] = page_alloc(op->order, USE_MOVABLE, op->request, NODE_NONE);
		if (!counts_held[i])
			return 0;
	}
	return op->times;
}

static u64 free_each(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++)
		page_free(counts_held[i]);
	return op->times;
}

/* In another order than they were allocated in: 509 is a prime and shares no factor with times. */
static u64 free_scattered(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++)
		page_free(counts_held[i * 509 % op->times]);
	return op->times;
}

static u64 alloc_bulk(const struct counts_op *op)
{
	return page_alloc_bulk(USE_MOVABLE, op->request, NODE_NONE, counts_held, op->times);
}

static u64 free_bulk(const struct counts_op *op)
{
	page_free_bulk(counts_held, op->times);
	return op->times;
}

/* ---- references and looks ---- */

static u64 get_and_put(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++) {
		page_get(counts_held[0]);
		page_put(counts_held[0]);
	}
	return op->times;
}

static u64 try_get_and_put(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++) {
		if (!page_try_get(counts_held[0]))
			return 0;
		page_put(counts_held[0]);
	}
	return op->times;
}

static u64 peek(const struct counts_op *op)
{
	const pfn_t pfn = page_pfn(counts_held[0]);
	struct page copy;

	for (u64 i = 0; i < op->times; i++)
		if (!page_peek(pfn, &copy))
			return 0;
	return op->times;
}

static u64 usage(const struct counts_op *op)
{
	struct mm_usage seen;

	for (u64 i = 0; i < op->times; i++)
		mm_usage(&seen);
	return seen.ram > 0 ? op->times : 0;
}

/* ---- drains ---- */

static bool fill_lists(const struct counts_op *op)
{
	const struct counts_op several = {.times = SEVERAL};

	return alloc_each(&several) && free_each(&several);
}

static u64 drain(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++)
		pcp_drain_all(&mm_kernel);
	return op->times;
}

#define PAIR(nr, what, count)                                                                      \
	{                                                                                          \
		.name = what, .step = {"pair"}, .run = {pairs}, .order = nr, .times = count        \
	}
#define EACH(nr, what, count)                                                                      \
	{                                                                                          \
		.name = what, .step = {"alloc", "free"}, .run = {alloc_each, free_each},           \
		.order = nr, .times = count                                                        \
	}

const struct counts_op counts_pages[] = {
	PAIR(0, "page-0", 1000),
	PAIR(1, "page-1", 1000),
	PAIR(3, "page-3", 1000),
	PAIR(4, "page-4", 1000),
	PAIR(8, "page-8", 1000),
	PAIR(BLOCK_ORDER, "page-9", 1000),
	{.name = "page-18",
	 .step = {"pair"},
	 .begin = make_one,
	 .run = {pairs},
	 .order = GIGA_ORDER,
	 .times = 8,
	 .alike = true},
	{.name = "page-0-zero",
	 .step = {"pair"},
	 .run = {pairs},
	 .request = PAGE_ZERO,
	 .times = 1000,
	 .stores = PAGE_SIZE / sizeof(u64)},
	{.name = "page-0-noflush",
	 .step = {"pair"},
	 .run = {pairs},
	 .request = PAGE_NOFLUSH,
	 .times = 1000},
	EACH(0, "page-0", COUNTS_HELD),
	EACH(3, "page-3", 256),
	EACH(5, "page-5", 128),
	EACH(8, "page-8", 64),
	EACH(BLOCK_ORDER, "page-9", 256),
	{.name = "page-0-scattered",
	 .step = {"alloc", "free"},
	 .run = {alloc_each, free_scattered},
	 .times = COUNTS_HELD},
	{.name = "page-0-bulk",
	 .step = {"alloc", "free"},
	 .run = {alloc_bulk, free_bulk},
	 .times = COUNTS_HELD},
	{.name = "page-get-put",
	 .begin = counts_hold,
	 .run = {get_and_put},
	 .end = counts_free,
	 .times = 1000},
	{.name = "page-try-get-put",
	 .begin = counts_hold,
	 .run = {try_get_and_put},
	 .end = counts_free,
	 .times = 1000},
	{.name = "page-peek",
	 .begin = counts_hold,
	 .run = {peek},
	 .end = counts_free,
	 .times = 1000},
	{.name = "mm-usage", .run = {usage}, .times = 100},
	{.name = "drain-512", .begin = fill_lists, .run = {drain}, .times = 1},
	{.name = "drain-nothing",
	 .begin = counts_hold,
	 .run = {drain},
	 .end = counts_free,
	 .times = 16},
	{.name = NULL}};
