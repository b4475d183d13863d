/*
 * Rows of the counts benchmark: whole blocks. Pools in each mode, blocks that change their state,
 * sections, the searches for a GiB, and a range that is emptied. A row uses `order` and `mode`.
 *
 * Before each turn all sections that can be closed are closed, and those that the turn needs are
 * opened anew in the style of its mode.
 */
#include "tests/bench/counts.h"
#include "tests/kernel/max_order.h"
#include "tests/kernel/mm_test.h"

enum {
	BLOCKS = 64,
	SECTIONS = 3,
	EVERY = 1 << 20,
	LINUX_MAX_ORDER = 10,
	RANGE_FRAMES = 4 * BLOCK_FRAMES
};

static struct zone *last_zone(void)
{
	return &mm_kernel.zone[mm_kernel.zones - 1];
}

/* Close all sections, then open up to `count` of the last zone. */
static void open_anew(enum section_style style, unsigned count)
{
	pcp_drain_all(&mm_kernel);
	sections_close_all(&mm_kernel);
	for (unsigned i = 0; i < count; i++)
		if (section_open_next(last_zone(), style) < 0)
			break;
}

static struct pool *pool_of(const struct counts_op *op)
{
	return op->order == GIGA_ORDER ? &pool_1g : &pool_2m;
}

static const struct hvo_mode *mode_of(const struct counts_op *op)
{
	return hvo_mode_find(op->mode);
}

/* ---- pools ---- */

static bool fresh(const struct counts_op *op)
{
	open_anew(mode_of(op)->mapped ? SECTION_MAPPED : SECTION_ON_DEMAND,
		  op->order == GIGA_ORDER ? EVERY : SECTIONS);
	return true;
}

static u64 grow(const struct counts_op *op)
{
	return pool_grow(pool_of(op), mode_of(op), op->times) == op->times ? op->times : 0;
}

static u64 shrink(const struct counts_op *op)
{
	return pool_shrink(pool_of(op), mode_of(op), op->times) == op->times ? op->times : 0;
}

/* The same pages were in the pool before. */
static bool grown_before(const struct counts_op *op)
{
	return fresh(op) && grow(op) && shrink(op);
}

/* Allocate both halves of `blocks` blocks, which splits the blocks. Returns how many halves. */
static u64 take_halves(u64 blocks)
{
	for (u64 i = 0; i < 2 * blocks; i++) {
		counts_held[i] = page_alloc(BLOCK_ORDER - 1, USE_MOVABLE, 0, NODE_NONE);
		if (!counts_held[i])
			return 0;
	}
	return 2 * blocks;
}

static void give_halves(u64 blocks)
{
	for (u64 i = 0; i < 2 * blocks; i++)
		page_free(counts_held[i]);
}

/* Every open block had all its struct pages once. */
static bool split_before(const struct counts_op *op)
{
	const u64 blocks = (u64)SECTIONS * SECTION_BLOCKS;

	if (!fresh(op) || take_halves(blocks) == 0)
		return false;
	give_halves(blocks);
	pcp_drain_all(&mm_kernel);
	return true;
}

static bool grow_first(const struct counts_op *op)
{
	return fresh(op) && grow(op);
}

static void shrink_after(const struct counts_op *op)
{
	shrink(op);
}

static u64 take(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++) {
		counts_held[i] = pool_page_take(pool_of(op), NODE_NONE, POOL_ANY);
		if (!counts_held[i])
			return 0;
	}
	return op->times;
}

static u64 give(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++)
		pool_page_give(pool_of(op), counts_held[i]);
	return op->times;
}

static u64 reserve(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++)
		if (pool_reserve(pool_of(op), 1) < 0)
			return 0;
	return op->times;
}

static u64 unreserve(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++)
		pool_unreserve(pool_of(op), 1);
	return op->times;
}

/* ---- blocks ---- */

static u64 split(const struct counts_op *op)
{
	return take_halves(op->times) / 2;
}

static u64 join(const struct counts_op *op)
{
	give_halves(op->times);
	return op->times;
}

static u64 full_to_huge(const struct counts_op *op)
{
	return hvo_huge_free_full(last_zone(), op->times);
}

static u64 huge_to_bare(const struct counts_op *op)
{
	return hvo_bare_free_huge(last_zone(), op->times);
}

/* ---- sections ---- */

static bool all_closed(const struct counts_op *op)
{
	open_anew(SECTION_ON_DEMAND, 0);
	return true;
}

static u64 open_sections(const struct counts_op *op)
{
	const enum section_style style = mode_of(op)->mapped ? SECTION_MAPPED : SECTION_ON_DEMAND;

	for (u64 i = 0; i < op->times; i++)
		if (section_open_next(last_zone(), style) < 0)
			return 0;
	return op->times;
}

/* Closes those that were opened, and any others that have come free meanwhile. */
static u64 close_sections(const struct counts_op *op)
{
	return sections_close_all(&mm_kernel) >= op->times ? op->times : 0;
}

/* ---- searches ---- */

static const struct contig_search *search_of(const struct counts_op *op)
{
	return contig_search_find(op->mode);
}

/* As in Linux: struct pages exist, and the buddy has no run of a GiB. */
static bool as_searched(const struct counts_op *op)
{
	const bool reads = search_of(op)->reads;

	buddy_set_max_order(&mm_kernel, GIGA_ORDER);
	open_anew(reads ? SECTION_MAPPED : SECTION_ON_DEMAND, reads ? EVERY : 0);
	if (reads)
		buddy_set_max_order(&mm_kernel, LINUX_MAX_ORDER);
	return true;
}

/* Every GiB that the search finds in the zone. */
static u64 search(const struct counts_op *op)
{
	struct contig_stats stats = {.scanned = 0};
	struct contig_scan scan = {.zone = last_zone(),
				   .order = GIGA_ORDER,
				   .mapped = search_of(op)->reads,
				   .stats = &stats};
	u64 found = 0;

	while (search_of(op)->next(&scan, search_of(op)) != BLOCK_NONE)
		found++;
	return found;
}

static void as_before(const struct counts_op *op)
{
	buddy_set_max_order(&mm_kernel, GIGA_ORDER);
	sections_close_all(&mm_kernel);
}

/* ---- a range ---- */

static struct holder holder;
static pfn_t range;
static bool taken;

/* Every second frame of the range is a page in use that can move. No CPU holds the others. */
static bool in_the_way(const struct counts_op *op)
{
	struct page *first = fresh(op) ? contig_alloc(op->order, NODE_NONE) : NULL;

	taken = false;
	holder_init(&holder, &mm_kernel, counts_held, COUNTS_HELD);
	holder.sparse = true;
	range = first ? page_pfn(first) : 0;
	for (u64 i = 0; i < RANGE_FRAMES && first; i++)
		if (i % 2)
			page_free(pfn_to_page(range + i));
		else
			holder_adopt(&holder, pfn_to_page(range + i));
	pcp_drain_all(&mm_kernel);
	return holder.slots == op->times;
}

static u64 move_away(const struct counts_op *op)
{
	taken = contig_alloc_range(range, RANGE_FRAMES) == 0;
	return taken ? op->times : 0;
}

static void give_range(const struct counts_op *op)
{
	if (taken)
		contig_free_range(range, RANGE_FRAMES);
	holder_give_all(&holder);
}

#define POOL(nr, what, from, how, count)                                                           \
	{                                                                                          \
		.name = what, .step = {"grow", "shrink"}, .begin = from, .run = {grow, shrink},    \
		.order = nr, .mode = how, .times = count, .alike = (nr) == GIGA_ORDER              \
	}
#define POOL_2M(first, first_name, second, second_name)                                            \
	{                                                                                          \
		.name = "pool-2M", .step = {first_name, second_name}, .begin = grow_first,         \
		.run = {first, second}, .end = shrink_after, .order = BLOCK_ORDER, .mode = "on",   \
		.times = BLOCKS                                                                    \
	}
#define SECTION(what, how, count)                                                                  \
	{                                                                                          \
		.name = "section-" what, .step = {"open", "close"}, .begin = all_closed,           \
		.run = {open_sections, close_sections}, .mode = how, .times = count                \
	}
#define SEARCH(how)                                                                                \
	{                                                                                          \
		.name = "search-" how, .begin = as_searched, .run = {search}, .end = as_before,    \
		.mode = how, .alike = true                                                         \
	}

const struct counts_op counts_blocks[] = {
	POOL(BLOCK_ORDER, "pool-2M-off", fresh, "off", BLOCKS),
	POOL(BLOCK_ORDER, "pool-2M-unbatched", fresh, "unbatched", BLOCKS),
	POOL(BLOCK_ORDER, "pool-2M-batched", fresh, "batched", BLOCKS),
	POOL(BLOCK_ORDER, "pool-2M-on", fresh, "on", BLOCKS),
	POOL(BLOCK_ORDER, "pool-2M-on-again", grown_before, "on", BLOCKS),
	POOL(BLOCK_ORDER, "pool-2M-on-recycled", split_before, "on", BLOCKS),
	POOL(GIGA_ORDER, "pool-1G-off", fresh, "off", 1),
	POOL(GIGA_ORDER, "pool-1G-batched", fresh, "batched", 1),
	POOL(GIGA_ORDER, "pool-1G-on", fresh, "on", 1),
	POOL_2M(take, "take", give, "give"),
	POOL_2M(reserve, "reserve", unreserve, "unreserve"),
	{.name = "block-bare",
	 .step = {"split", "join"},
	 .begin = fresh,
	 .run = {split, join},
	 .mode = "on",
	 .times = BLOCKS},
	{.name = "block",
	 .step = {"full-to-huge", "huge-to-bare"},
	 .begin = split_before,
	 .run = {full_to_huge, huge_to_bare},
	 .mode = "on",
	 .times = BLOCKS},
	SECTION("on-demand", "on", 4),
	SECTION("mapped", "off", 2),
	SEARCH("vanilla"),
	SEARCH("revert"),
	SEARCH("skip"),
	SEARCH("strict"),
	SEARCH("step"),
	SEARCH("index"),
	{.name = "range-move",
	 .begin = in_the_way,
	 .run = {move_away},
	 .end = give_range,
	 .order = BLOCK_ORDER + 2,
	 .mode = "on",
	 .times = RANGE_FRAMES / 2,
	 .stores = PAGE_SIZE / 8},
	{.name = NULL}};
