/*
 * Memory aged by a trace. Runs with the same seed make the same requests.
 *
 *   long     unmovable, order 0 to 3, grows from nothing to 2% of memory while the trace runs; a
 *            page in 32 is replaced
 *   short    unmovable and reclaimable, order 0 to 2, between 0.5% and 2.5% in waves
 *   cache    movable, order 0 to 4, mostly 0; all that is left, up to 98% of memory; pages leave
 *            at random
 *   pool     the machine's pool of 2 MiB pages, between nothing and 10% in waves
 *
 * The waves have different periods, so every phase of one meets every phase of the other. The trace
 * runs on one CPU. The mover changes the table and copies a page's private words, and not its
 * contents, which nobody has written: so the times are those of the allocator.
 */
#include "tests/bench/gigablock_age.h"

#include "kernel/lib/string.h"
#include "mm/hugetlb/pool.h"
#include "mm/mm.h"
#include "mm/page/pcp_drain.h"
#include "tests/kernel/random.h"

enum { LONG, SHORT, CACHE, KINDS };
enum { PIECE_ORDER = 8, PIECE = (PAGE_SIZE << PIECE_ORDER) / sizeof(struct page *), PIECES = 256 };
enum { POOL_STEP = 4096, LONG_WAVES = 1, SHORT_WAVES = 7, POOL_WAVES = 5 };

/* Pages in use, in no order. A page's private words are its kind and its place in the table. */
struct kind {
	struct page **piece[PIECES];
	struct page *piece_page[PIECES];
	u64 pages, frames;
};

static struct kind kinds[KINDS];
static u64 seed, memory, moved, done; /* operations of the trace */

static struct page **slot_of(struct kind *kind, u64 i)
{
	return &kind->piece[i / PIECE][i % PIECE];
}

static int move(struct page *from, struct page *to)
{
	struct kind *kind = &kinds[from->private[0]];

	if (from->private[1] >= kind->pages || *slot_of(kind, from->private[1]) != from)
		return -EBUSY;
	to->private[0] = from->private[0];
	to->private[1] = from->private[1];
	*slot_of(kind, from->private[1]) = to;
	moved += 1ULL << page_order(from);
	return 0;
}

static const struct page_mover mover = {.name = "aged", .move = move};

static u64 in_use(void)
{
	return kinds[LONG].frames + kinds[SHORT].frames + kinds[CACHE].frames +
	       pool_2m.pages * BLOCK_FRAMES;
}

static bool make_piece(struct kind *kind)
{
	const u64 piece = kind->pages / PIECE;

	if (piece >= PIECES)
		return false;
	if (kind->piece[piece])
		return true;
	kind->piece_page[piece] = page_alloc(PIECE_ORDER, USE_UNMOVABLE, 0, NODE_NONE);
	if (!kind->piece_page[piece])
		return false;
	kind->piece[piece] = page_address(kind->piece_page[piece]);
	return true;
}

static unsigned order_for(unsigned kind)
{
	static const u8 orders[KINDS][16] = {
		[LONG] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3},
		[SHORT] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2},
		[CACHE] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 3, 4}};

	return orders[kind][next_random(&seed) >> 20 & 15];
}

static enum page_use use_for(unsigned kind)
{
	if (kind == CACHE)
		return USE_MOVABLE;
	return kind == SHORT && (next_random(&seed) >> 20 & 1) ? USE_RECLAIMABLE : USE_UNMOVABLE;
}

static bool add(unsigned which, struct age_stats *stats)
{
	struct kind *kind = &kinds[which];
	const unsigned order = order_for(which);
	const enum page_use use = use_for(which);
	struct page *page = make_piece(kind) ? page_alloc(order, use, 0, NODE_NONE) : NULL;

	stats->requests++;
	stats->failed += !page;
	if (!page)
		return false;
	page->private[0] = which;
	page->private[1] = kind->pages;
	*slot_of(kind, kind->pages++) = page;
	kind->frames += 1ULL << order;
	if (which == CACHE)
		page_set_movable(page, &mover);
	return true;
}

static void drop(unsigned which)
{
	struct kind *kind = &kinds[which];
	struct page *page, *last;
	u64 at;

	if (kind->pages == 0)
		return;
	at = (next_random(&seed) >> 11) % kind->pages;
	page = *slot_of(kind, at);
	last = *slot_of(kind, --kind->pages);
	*slot_of(kind, at) = last;
	last->private[1] = at;
	kind->frames -= 1ULL << page_order(page);
	page_free(page);
}

/* A triangle between 0 and `high` with `waves` periods in the trace. */
static u64 wave(u64 op, u64 ops, u64 waves, u64 high)
{
	const u64 at = op * waves % ops * 2;

	return high * (at < ops ? at : 2 * ops - at) / ops;
}

static void make_room(u64 frames)
{
	while (in_use() + frames > memory / 100 * 98 && kinds[CACHE].pages > 0)
		drop(CACHE);
}

static void change_pool(u64 op, u64 ops)
{
	const u64 want = wave(op, ops, POOL_WAVES, memory / 10) / BLOCK_FRAMES;
	const u64 have = pool_2m.pages;

	if (want > have) {
		make_room((want - have) * BLOCK_FRAMES);
		pool_grow(&pool_2m, hvo_mode_selected(), want - have);
	} else {
		pool_shrink(&pool_2m, hvo_mode_selected(), have - want);
	}
}

static void step(u64 op, u64 ops, struct age_stats *stats)
{
	const u64 choice = (next_random(&seed) >> 20) % 100;

	if (choice < 8) {
		if ((next_random(&seed) >> 20) % 32 == 0)
			drop(LONG);
		if (kinds[LONG].frames < memory / 50 * op / ops)
			add(LONG, stats);
	} else if (choice < 30) {
		const u64 want = memory / 200 + wave(op, ops, SHORT_WAVES, memory / 50);

		if (kinds[SHORT].frames > want || choice < 15)
			drop(SHORT);
		if (kinds[SHORT].frames < want)
			add(SHORT, stats);
	} else {
		make_room(64);
		if (choice < 50)
			drop(CACHE);
		add(CACHE, stats);
	}
	if (op % POOL_STEP == 0)
		change_pool(op, ops);
}

bool age_begin(u64 first_seed, struct age_stats *stats)
{
	struct mm_usage usage;

	mm_usage(&usage);
	memory = usage.free + usage.unopened + usage.per_cpu;
	seed = first_seed;
	moved = done = 0;
	memset(kinds, 0, sizeof(kinds));
	*stats = (struct age_stats){0};
	/* the cache fills first, as it does in the first hours of a machine */
	while (in_use() < memory / 100 * 90)
		if (!add(CACHE, stats))
			return false;
	return true;
}

void age_go_on(u64 until, u64 ops, struct age_stats *stats)
{
	while (done < until)
		step(++done, ops, stats);
}

void age_release(u64 percent)
{
	const u64 keep = kinds[CACHE].pages * (100 - percent) / 100;

	pool_shrink(&pool_2m, hvo_mode_selected(), pool_2m.pages);
	while (kinds[CACHE].pages > keep)
		drop(CACHE);
	pcp_drain_all(&mm_kernel);
}

u64 age_moved(void)
{
	return moved;
}

bool age_verify(void)
{
	for (unsigned k = 0; k < KINDS; k++)
		for (u64 i = 0; i < kinds[k].pages; i++)
			if ((*slot_of(&kinds[k], i))->private[0] != k ||
			    (*slot_of(&kinds[k], i))->private[1] != i)
				return false;
	return true;
}

void age_end(void)
{
	pool_shrink(&pool_2m, hvo_mode_selected(), pool_2m.pages);
	for (unsigned k = 0; k < KINDS; k++) {
		while (kinds[k].pages > 0)
			drop(k);
		for (unsigned piece = 0; piece < PIECES && kinds[k].piece[piece]; piece++)
			page_free(kinds[k].piece_page[piece]);
	}
	pcp_drain_all(&mm_kernel);
}
