/*
 * Checks of pools and huge pages from all sides: see pool_check.h.
 */
#include "tests/kernel/mm_test.h"

void pool_expect_counts(struct pool *pool, u64 pages, u64 in_use, u64 surplus)
{
	EXPECT_EQ(pool->pages, pages);
	EXPECT_EQ(pool->in_use, in_use);
	EXPECT_EQ(pool->surplus, surplus);
	EXPECT(pool->reserved <= pool->free);
	EXPECT(account_pool(pool));
}

void pool_makes_on_demand(void)
{
	if (hvo_mode_selected()->mapped) /* a case can set only few options */
		test_option("hvo", "on");
}

/* A free GiB may be in pieces because some of its sections are open. */
bool pool_borrow(struct pool *pool, u64 count)
{
	const struct hvo_mode *mode = hvo_mode_selected();
	u64 grown = pool_grow(pool, mode, count);

	if (grown < count && pool->order == GIGA_ORDER) {
		sections_close_all(&mm_kernel);
		grown += pool_grow(pool, mode, count - grown);
	}
	if (grown == count)
		return true;
	pool_shrink(pool, mode, grown);
	test_skip("needs %llu MiB of free memory in one piece",
		  count * order_pages(pool->order) * PAGE_SIZE >> 20);
	return false;
}

bool pool_giga_possible(void)
{
	const struct hvo_mode *off = hvo_mode_find("off");
	u64 made;

	if (pool_1g.boot + pool_2m.boot > 0) {
		test_skip("the machine's pools have boot pages");
		return false;
	}
	sections_close_all(&mm_kernel);
	made = pool_grow(&pool_1g, off, 1);
	if (made == 0)
		test_skip("needs 1024 MiB of free memory in one piece");
	EXPECT_EQ(pool_shrink(&pool_1g, off, 1), made);
	sections_close_all(&mm_kernel);
	return made > 0;
}

void pool_return(struct pool *pool, u64 count)
{
	EXPECT_EQ(pool_shrink(pool, hvo_mode_selected(), count), count);
}

bool huge_tails_right(const struct mm *mm, u32 index, unsigned order, u64 step)
{
	const struct page *head = block_page(mm, index);

	for (u64 i = 0; i < order_pages(order);
	     i += i % BLOCK_FRAMES < STRUCTS_PER_FRAME ? 1 : step) {
		const u64 mask = head_mask_of(i > 0 ? order : 0);

		if (head[i].head_mask != mask || page_head(head + i) != head ||
		    (i > 0) != !!(head[i].flags & PAGE_TAIL)) {
			test_fail(__FILE__, __LINE__,
				  "struct page %llu of block %u: mask %llx, flags %x", i, index,
				  head[i].head_mask, head[i].flags);
			return false;
		}
	}
	return true;
}

bool huge_line_right(struct mm *mm, u32 index, unsigned order)
{
	const pfn_t tail = vmemmap_shared_tail(mm, block_zone(mm, index), order);

	for (u32 b = 0; b < order_blocks(order); b++) {
		const pte_t *line = vmemmap_line(mm, index + b);

		for (unsigned i = 0; i < MEMMAP_FRAMES_PER_BLOCK; i++) {
			const pte_t pte = line ? pte_load(&line[i]) : 0;
			const bool ok = b + i == 0
						? pte_present(pte) && pte_writable(pte)
						: pte_present(pte) && !pte_writable(pte) &&
							  !pte_dirty(pte) && pte_pfn(pte) == tail;

			if (!ok) {
				test_fail(__FILE__, __LINE__, "block %u + %u: PTE %u is %llx",
					  index, b, i, pte);
				return false;
			}
		}
	}
	return true;
}

bool full_blocks_make(struct arena *a, u64 count)
{
	const u64 before = arena_phantom_zone(a)->free_class[FREE_FULL];
	const node_t node = arena_phantom_zone(a)->node;
	struct page *chain = NULL;
	bool all = true;

	for (u64 i = 0; i < 2 * count && all; i++) {
		struct page *page =
			mm_page_alloc(&a->mm, BLOCK_ORDER - 1, USE_MOVABLE, PAGE_NODE, node);

		all = page != NULL;
		if (page)
			page_chain_push(&chain, page);
	}
	chain_give(&chain, &a->mm);
	return all && arena_phantom_zone(a)->free_class[FREE_FULL] == before + count * BLOCK_FRAMES;
}

void famine_begin(struct famine *f, struct arena *a, enum meta_kind kind, u64 spare)
{
	struct node *node = &a->mm.node[0];

	f->a = a;
	f->blocks = BLOCK_LIST_INIT;
	for (unsigned k = 0; k < ZONE_KINDS; k++)
		for (enum free_class class = 0; class < FREE_CLASSES && node->zone[k] != ZONE_NONE;
		     class ++)
			block_take(&a->mm.zone[node->zone[k]], class, BLOCK_ORDER, ~0ULL,
				   BLOCK_META, &f->blocks);
	meta_flush_gated(node);
	for (enum meta_kind k = 0; k < META_KINDS; k++) {
		f->kept[k] = node->meta.free[k] - node->meta.reserved[k];
		node->meta.reserved[k] += f->kept[k];
	}
	spare += kind == META_LASTING ? META_EMERGENCY : 0;
	if (f->kept[kind] < spare) {
		test_fail(__FILE__, __LINE__,
			  "metadata memory has %llu frames, the case wants to leave %llu",
			  f->kept[kind], spare);
		return;
	}
	meta_unreserve(node, kind, spare);
	f->kept[kind] -= spare;
}

void famine_end(struct famine *f)
{
	for (enum meta_kind kind = 0; kind < META_KINDS; kind++)
		meta_unreserve(&f->a->mm.node[0], kind, f->kept[kind]);
	block_list_publish_free(&f->a->mm, &f->blocks);
}

bool struct_page_says(const struct page *page, struct page want, unsigned bytes)
{
	const u8 *a = (const u8 *)page, *b = (const u8 *)&want;

	if (memcmp(a, b, bytes) == 0)
		return true;
	for (unsigned i = 0; i < bytes; i++) {
		if (a[i] == b[i])
			continue;
		test_fail(__FILE__, __LINE__,
			  "struct page of frame %llx: byte %u is %02x, not %02x", page_to_pfn(page),
			  i, a[i], b[i]);
		return false;
	}
	return true;
}
