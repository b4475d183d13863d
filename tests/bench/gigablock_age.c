/*
 * Memory aged by a trace (gigablock_trace.h). The mover changes the table and copies a page's
 * private words, and not its contents, which nobody has written: so the times are those of the
 * allocator.
 */
#include "tests/bench/gigablock_age.h"

#include "kernel/lib/string.h"
#include "mm/hugetlb/pool.h"
#include "mm/mm.h"
#include "mm/page/pcp_drain.h"
#include "tests/bench/gigablock_trace.h"

enum { PIECE_ORDER = 8, PIECE = (PAGE_SIZE << PIECE_ORDER) / sizeof(struct page *), PIECES = 256 };

/* Pages in use, in no order. A page's private words are its kind and its place in the table. */
struct kind {
	struct page **piece[PIECES];
	struct page *piece_page[PIECES];
};

static struct kind kinds[KINDS];
static struct trace trace;
static u64 moved;

static struct page **slot_of(unsigned kind, u64 i)
{
	return &kinds[kind].piece[i / PIECE][i % PIECE];
}

static int move(struct page *from, struct page *to)
{
	const unsigned kind = (unsigned)from->private[0];
	const u64 at = from->private[1];

	if (at >= trace.pages[kind] || *slot_of(kind, at) != from)
		return -EBUSY;
	to->private[0] = kind;
	to->private[1] = at;
	*slot_of(kind, at) = to;
	moved += 1ULL << page_order(from);
	return 0;
}

static const struct page_mover mover = {.name = "aged", .move = move};

/* The table's piece with the slot after the last page. */
static bool make_piece(unsigned kind)
{
	const u64 piece = trace.pages[kind] / PIECE;
	struct kind *of = &kinds[kind];

	if (piece >= PIECES)
		return false;
	if (of->piece[piece])
		return true;
	of->piece_page[piece] = page_alloc(PIECE_ORDER, USE_UNMOVABLE, 0, NODE_NONE);
	if (!of->piece_page[piece])
		return false;
	of->piece[piece] = page_address(of->piece_page[piece]);
	return true;
}

static bool take(unsigned kind, unsigned order, bool reclaimable)
{
	const enum page_use stuck = reclaimable ? USE_RECLAIMABLE : USE_UNMOVABLE,
			    use = kind == CACHE ? USE_MOVABLE : stuck;
	struct page *page = make_piece(kind) ? page_alloc(order, use, 0, NODE_NONE) : NULL;

	if (!page)
		return false;
	page->private[0] = kind;
	page->private[1] = trace.pages[kind];
	*slot_of(kind, trace.pages[kind]) = page;
	if (kind == CACHE)
		page_set_movable(page, &mover);
	return true;
}

static u64 give(unsigned kind, u64 at)
{
	struct page *page = *slot_of(kind, at), *last = *slot_of(kind, trace.pages[kind] - 1);
	const u64 frames = order_pages(page_order(page));

	*slot_of(kind, at) = last;
	last->private[1] = at;
	page_free(page);
	return frames;
}

static u64 resize(u64 pages)
{
	const u64 have = pool_2m.pages;

	if (pages > have)
		pool_grow(&pool_2m, hvo_mode_selected(), pages - have);
	else
		pool_shrink(&pool_2m, hvo_mode_selected(), have - pages);
	return pool_2m.pages;
}

static struct age_stats stats_now(void)
{
	return (struct age_stats){.requests = trace.requests, .failed = trace.failed};
}

bool age_begin(u64 first_seed, struct age_stats *stats)
{
	struct mm_usage usage;
	bool ok;

	mm_usage(&usage);
	trace = (struct trace){.seed = first_seed,
			       .memory = usage.free + usage.unopened + usage.per_cpu,
			       .pool = pool_2m.pages,
			       .take = take,
			       .give = give,
			       .resize = resize};
	moved = 0;
	memset(kinds, 0, sizeof(kinds));
	ok = trace_fill(&trace);
	*stats = stats_now();
	return ok;
}

void age_go_on(u64 until, u64 ops, struct age_stats *stats)
{
	trace_go_on(&trace, until, ops);
	*stats = stats_now();
}

void age_release(u64 percent)
{
	trace_release(&trace, percent);
	pcp_drain_all(&mm_kernel);
}

u64 age_moved(void)
{
	return moved;
}

bool age_verify(void)
{
	for (unsigned k = 0; k < KINDS; k++)
		for (u64 i = 0; i < trace.pages[k]; i++)
			if ((*slot_of(k, i))->private[0] != k || (*slot_of(k, i))->private[1] != i)
				return false;
	return true;
}

void age_end(void)
{
	trace.pool = resize(0);
	for (unsigned k = 0; k < KINDS; k++) {
		while (trace.pages[k] > 0)
			trace_drop(&trace, k);
		for (unsigned piece = 0; piece < PIECES && kinds[k].piece[piece]; piece++)
			page_free(kinds[k].piece_page[piece]);
	}
	pcp_drain_all(&mm_kernel);
}
