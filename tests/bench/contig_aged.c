/*
 * Memory as it is after long use: free almost everywhere, in one piece nowhere.
 *
 *   1  all of memory is taken in chunks of 256 KiB: every block is split
 *   2  every CHUNKS-th chunk is given back, and single pages are taken until there are no more: they fill those holes
 *   3  the other chunks are given back, and so is every second of the single pages
 *
 * What stays has contents and a mover; a mover's table is all that refers to them.
 */
#include "tests/bench/contig_aged.h"

#include "mm/mm.h"
#include "mm/page_alloc.h"
#include "mm/pcp.h"
#include "tests/kernel/holder.h"

enum { CHUNK_ORDER = 6, CHUNKS = 128, TABLE_ORDER = 8 };

static struct holder holder;
static struct page *table;

static struct page *chain_chunks(u64 *count)
{
	struct page *chain = NULL, *page;

	*count = 0;
	while ((page = page_alloc(CHUNK_ORDER, USE_MOVABLE, 0, NODE_NONE))) {
		page->private[0] = (u64)(virt_t)chain;
		chain = page;
		++*count;
	}
	return chain;
}

static struct page *unchain(struct page **chain)
{
	struct page *page = *chain;

	*chain = (struct page *)(virt_t)page->private[0];
	return page;
}

static void free_chain(struct page *chain)
{
	while (chain)
		page_free(unchain(&chain));
}

/* Every CHUNKS-th of the chain is free afterwards; the rest is the chain. */
static struct page *open_holes(struct page *chain, u64 *holes)
{
	struct page *rest = NULL;
	u64 i = 0;

	*holes = 0;
	while (chain) {
		struct page *page = unchain(&chain);

		if (i++ % CHUNKS == CHUNKS / 2) {
			page_free(page);
			++*holes;
		} else {
			page->private[0] = (u64)(virt_t)rest;
			rest = page;
		}
	}
	return rest;
}

u64 aged_begin(void)
{
	struct page *chunks;
	u64 count, holes;

	table = page_alloc(TABLE_ORDER, USE_UNMOVABLE, 0, NODE_NONE);
	if (!table)
		return 0;
	holder_init(&holder, &mm_kernel, page_address(table), (PAGE_SIZE << TABLE_ORDER) / sizeof(struct page *));
	chunks = open_holes(chain_chunks(&count), &holes);
	for (u64 i = 0; i < holes << CHUNK_ORDER; i++)
		if (!holder_take(&holder, 0, 0))
			break;
	free_chain(chunks);
	for (u64 slot = 0; slot < holder.slots; slot += 2)
		holder_give(&holder, slot);
	pcp_drain_all(&mm_kernel);
	return holder.slots / 2;
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
