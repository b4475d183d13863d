/*
 * Rows of the counts benchmark: mappings, their faults, and clearing. A row uses `bytes`, the size
 * of a page, and `mode`, a row of clear=. clear.insn=rep makes the stores of a clear known: they
 * are eight bytes each.
 */
#include "mm/clear/clear.h"
#include "tests/bench/counts.h"
#include "tests/kernel/modes.h"

static char *mapping;

/* ---- pages that appear when they are touched ---- */

static u64 pool_pages(const struct counts_op *op)
{
	return op->bytes == PAGE_SIZE ? 0 : op->times;
}

static struct pool *pool_of(const struct counts_op *op)
{
	return op->bytes == GIB(1) ? &pool_1g : &pool_2m;
}

static bool map_empty(const struct counts_op *op)
{
	if (pool_grow(pool_of(op), hvo_mode_find("on"), pool_pages(op)) != pool_pages(op))
		return false;
	mapping = huge_map(op->times * op->bytes, op->bytes, 0);
	return mapping != NULL;
}

static void shrink_after(const struct counts_op *op)
{
	pool_shrink(pool_of(op), hvo_mode_find("on"), pool_pages(op));
}

static u64 touch(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++)
		*(volatile char *)(mapping + i * op->bytes) = 1;
	return op->times;
}

static u64 unmap(const struct counts_op *op)
{
	huge_unmap(mapping);
	return op->times;
}

/* Each page is written to; otherwise it would come back as zero, and need no clearing next time. */
static u64 populate(const struct counts_op *op)
{
	if (huge_populate(mapping, op->times * op->bytes) < 0)
		return 0;
	for (u64 i = 0; i < op->times; i++)
		mapping[i * op->bytes] = 1;
	return op->times;
}

static u64 release(const struct counts_op *op)
{
	return huge_release(mapping, op->times * op->bytes) == 0 ? op->times : 0;
}

static void unmap_after(const struct counts_op *op)
{
	huge_unmap(mapping);
	shrink_after(op);
}

static u64 map_and_unmap(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++) {
		char *addr = huge_map(op->bytes, op->bytes, 0);

		if (!addr)
			return 0;
		huge_unmap(addr);
	}
	return op->times;
}

/* ---- rights ---- */

static bool map_full(const struct counts_op *op)
{
	return map_empty(op) && populate(op);
}

static u64 forbid_writing(const struct counts_op *op)
{
	return huge_protect(mapping, op->times * op->bytes, HUGE_READ_ONLY) == 0 ? op->times : 0;
}

static u64 allow_writing(const struct counts_op *op)
{
	return huge_protect(mapping, op->times * op->bytes, HUGE_READ_WRITE) == 0 ? op->times : 0;
}

/* The second small page of each page. */
static u64 protect_parts(const struct counts_op *op, enum huge_access access)
{
	for (u64 i = 0; i < op->times; i++)
		if (huge_protect(mapping + i * op->bytes + PAGE_SIZE, PAGE_SIZE, access) < 0)
			return 0;
	return op->times;
}

static u64 cut(const struct counts_op *op)
{
	return protect_parts(op, HUGE_READ_ONLY);
}

static u64 rejoin(const struct counts_op *op)
{
	return protect_parts(op, HUGE_READ_WRITE);
}

/* ---- pages that are mapped once more ---- */

static u64 map_page(const struct counts_op *op)
{
	mapping = page_map(counts_held[0], op->bytes);
	return mapping ? 1 : 0;
}

static u64 unmap_page(const struct counts_op *op)
{
	page_unmap(mapping);
	return 1;
}

/* ---- clearing ---- */

static u64 clear(const struct counts_op *op)
{
	struct clear_how how = clear_how_selected();

	for (const struct clear_mode *mode = clear_modes; mode->name; mode++)
		if (strcmp(mode->name, op->mode) == 0)
			how.mode = mode;
	for (u64 i = 0; i < op->times; i++)
		clear_huge(&how, page_address(counts_held[0]), MIB(2), MIB(1), NODE_NONE);
	return op->times;
}

#define FAULT(size, what, count)                                                                   \
	{                                                                                          \
		.name = what, .step = {"fault", "unmap"}, .begin = map_empty,                      \
		.run = {touch, unmap}, .end = shrink_after, .bytes = size, .times = count,         \
		.stores = (size) / sizeof(u64)                                                     \
	}
#define RIGHTS(what, change, back)                                                                 \
	{                                                                                          \
		.name = what, .step = {"forbid", "allow"}, .begin = map_full,                      \
		.run = {change, back}, .end = unmap_after, .bytes = MIB(2), .times = 4             \
	}
#define ONCE_MORE(size, what)                                                                      \
	{                                                                                          \
		.name = what, .step = {"map", "unmap"}, .begin = counts_hold,                      \
		.run = {map_page, unmap_page}, .end = counts_free, .order = BLOCK_ORDER,           \
		.bytes = size                                                                      \
	}
#define CLEAR(how)                                                                                 \
	{                                                                                          \
		.name = "clear-2M-" how, .begin = counts_hold, .run = {clear}, .end = counts_free, \
		.order = BLOCK_ORDER, .mode = how, .times = 2, .stores = MIB(2) / sizeof(u64)      \
	}

const struct counts_op counts_maps[] = {
	FAULT(PAGE_SIZE, "map-4K", 512),
	FAULT(MIB(2), "map-2M", 4),
	{.name = "map-2M",
	 .step = {"populate", "release"},
	 .begin = map_empty,
	 .run = {populate, release},
	 .end = unmap_after,
	 .bytes = MIB(2),
	 .times = 4,
	 .stores = MIB(2) / sizeof(u64)},
	{.name = "map-2M-empty", .run = {map_and_unmap}, .bytes = MIB(2), .times = 16},
	RIGHTS("map-2M-rights", forbid_writing, allow_writing),
	RIGHTS("map-2M-part", cut, rejoin),
	ONCE_MORE(MIB(2), "page-map-2M"),
	ONCE_MORE(PAGE_SIZE, "page-map-4K"),
	CLEAR("page"),
	CLEAR("multi"),
	{.name = NULL}};
