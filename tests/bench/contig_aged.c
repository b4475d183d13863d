/*
 * Memory in the state it has after long use: nearly everywhere free, and nowhere in one piece.
 *
 *   1  All of memory is taken in chunks of 256 KiB, so every block is split.
 *   2  Every CHUNKS-th chunk is given back, and single pages are taken until there are no more;
 *      they fill those holes.
 *   3  The other chunks are given back, and so is every second of the single pages.
 *
 * The pages that stay have contents and a mover; the mover's table holds the only references to
 * them.
 */
#include "tests/bench/contig_aged.h"

#include "tests/bench/measure.h"
#include "tests/kernel/holder.h"

enum { CHUNK_ORDER = 6, CHUNKS = 128, TABLE_ORDER = 8 };

static u64 touch_bytes;
OPTION_U64(bench.contig.aged_touch, touch_bytes, 0, TIB(1),
	   "bytes of aged memory to write first, as all memory is after long use; else an emulated "
	   "machine must still get much of it from its host");

static struct holder holder;
static struct page *table;

static void touch(struct page *chunk)
{
	u8 *start = page_address(chunk);

	for (u64 i = 0; i < order_pages(CHUNK_ORDER); i++)
		atomic_store_relaxed((u64 *)(start + i * PAGE_SIZE), 0);
}

static struct page *chain_chunks(void)
{
	struct page *chain = NULL, *page;

	for (u64 bytes = 0; (page = page_alloc(CHUNK_ORDER, USE_MOVABLE, 0, NODE_NONE));
	     bytes += PAGE_SIZE << CHUNK_ORDER) {
		if (bytes < touch_bytes)
			touch(page);
		page_chain_push(&chain, page);
	}
	return chain;
}

/*
 * Free every CHUNKS-th chunk of the chain, count them in *holes, and return the chain of the rest.
 */
static struct page *open_holes(struct page *chain, u64 *holes)
{
	struct page *rest = NULL;
	u64 i = 0;

	*holes = 0;
	while (chain) {
		struct page *page = page_chain_pop(&chain);

		if (i++ % CHUNKS == CHUNKS / 2) {
			page_free(page);
			++*holes;
		} else {
			page_chain_push(&rest, page);
		}
	}
	return rest;
}

u64 aged_begin(void)
{
	struct page *chunks;
	u64 holes;

	table = page_alloc(TABLE_ORDER, USE_UNMOVABLE, 0, NODE_NONE);
	if (!table)
		return 0;
	holder_init(&holder, &mm_kernel, page_address(table),
		    (PAGE_SIZE << TABLE_ORDER) / sizeof(struct page *));
	holder.sparse = true;
	chunks = open_holes(chain_chunks(), &holes);
	for (u64 i = 0; i < holes << CHUNK_ORDER; i++)
		if (!holder_take(&holder, 0, 0))
			break;
	chain_give(&chunks, &mm_kernel);
	for (u64 slot = 0; slot < holder.slots; slot += 2)
		holder_give(&holder, slot);
	pcp_drain_all(&mm_kernel);
	return holder.slots / 2;
}

enum { COPY_ROUNDS = 9, COPY_FRAMES = 256 };

/*
 * One round: copy pages that stay, from slot `first` on, into free pages. Returns picoseconds per
 * page.
 */
static u64 copy_ps(struct page *const *to, u64 count, u64 first)
{
	u64 start, copied = 0;

	start = clock_ns();
	for (u64 slot = first; slot < holder.slots && copied < count; slot++)
		if (holder.page[slot])
			memcpy(page_address(to[copied++]), page_address(holder.page[slot]),
			       PAGE_SIZE);
	return copied ? (clock_ns() - start) * 1000 / copied : 0;
}

/*
 * The host has backed all target pages when the second turn begins, and they have left the nearer
 * caches when they are written again.
 */
u64 aged_copy_ps(void)
{
	static struct page *to[COPY_ROUNDS * COPY_FRAMES];
	const size_t count = page_alloc_bulk(USE_MOVABLE, 0, NODE_NONE, to, ARRAY_LEN(to));
	u64 ps[COPY_ROUNDS] = {0};

	for (u64 turn = 0; turn < 2 && count == ARRAY_LEN(to); turn++)
		for (u64 round = 0; round < COPY_ROUNDS; round++)
			ps[round] = copy_ps(to + round * COPY_FRAMES, COPY_FRAMES,
					    (2 * round + turn) * holder.slots / (2 * COPY_ROUNDS));
	page_free_bulk(to, count);
	pcp_drain_all(&mm_kernel);
	return median_u64(ps, COPY_ROUNDS);
}

bool aged_verify(void)
{
	return holder_intact(&holder);
}

void aged_end(void)
{
	holder_give_all(&holder);
	page_free(table);
}
