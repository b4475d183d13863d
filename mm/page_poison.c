/*
 * Filling free pages and looking whether anybody wrote to them since: see page_poison.h.
 */
#include "mm/page_poison.h"

#include <arch/check.h>

#include "mm/page_check.h"

void page_poison_fill(pfn_t pfn, u64 frames)
{
	u64 *word = phys_to_virt(pfn << PAGE_SHIFT);

	for (u64 i = 0; i < frames * PAGE_SIZE / sizeof(*word); i++)
		word[i] = PAGE_POISON;
}

CHECK_READS_ANYTHING
const u64 *page_poison_broken(pfn_t pfn, u64 frames)
{
	const u64 *word = phys_to_virt(pfn << PAGE_SHIFT);

	for (u64 i = 0; i < frames * PAGE_SIZE / sizeof(*word); i++)
		if (word[i] != PAGE_POISON)
			return &word[i];
	return NULL;
}

CHECK_READS_ANYTHING
static void report(struct mm *mm, struct page *page, const u64 *broken)
{
	page_misused(mm, page, "write after free: frame %llx has %llx at offset 0x%llx",
		     (unsigned long long)(virt_to_phys(broken) >> PAGE_SHIFT), (unsigned long long)*broken,
		     (unsigned long long)(virt_to_phys(broken) % PAGE_SIZE));
}

void page_poison_split(struct mm *mm, u32 index)
{
	struct block *block = block_at(mm, index);
	const u64 *broken;
	bool poisoned;

	if (!(atomic_load_relaxed(&mm->watch) & WATCH_POISON))
		return;
	poisoned = block_look(block).flags & BLOCK_POISONED;
	broken = poisoned ? page_poison_broken(block_pfn(index), BLOCK_FRAMES) : NULL;
	if (broken)
		report(mm, pfn_page(mm, virt_to_phys(broken) >> PAGE_SHIFT), broken);
	if (broken || !poisoned)
		page_poison_fill(block_pfn(index), BLOCK_FRAMES);
	block_clear_flags(block, BLOCK_POISONED);
}

void page_poison_forget(struct mm *mm, u32 index, u32 blocks)
{
	for (u32 i = 0; (atomic_load_relaxed(&mm->watch) & WATCH_POISON) && i < blocks; i++)
		block_clear_flags(block_at(mm, index + i), BLOCK_POISONED);
}

/* A huge page is poisoned only if its block says so: pools use them without filling them again. */
static bool is_poisoned(struct mm *mm, pfn_t pfn, unsigned order)
{
	struct block *block = block_of(mm, pfn);
	const bool poisoned = order < BLOCK_ORDER || (block_look(block).flags & BLOCK_POISONED);

	if (order >= BLOCK_ORDER)
		block_clear_flags(block, BLOCK_POISONED);
	return poisoned;
}

void page_poison_allocated(struct mm *mm, struct page *page, unsigned order)
{
	const pfn_t pfn = page_to_pfn(page);
	const u64 *broken;

	if (!is_poisoned(mm, pfn, order))
		return;
	broken = page_poison_broken(pfn, order_pages(order));
	if (!broken)
		return;
	atomic_store_relaxed(&page->refcount, 0); /* nobody's yet: its owner is the last one */
	report(mm, page, broken);
	atomic_store_release(&page->refcount, 1);
}

void page_poison_freed(struct mm *mm, struct page *page, unsigned order)
{
	const pfn_t pfn = page_to_pfn(page);
	struct block *block = block_of(mm, pfn);

	if (order >= BLOCK_ORDER && block_look(block).state != BLOCK_HUGE)
		return; /* goes to the block lists as it is; filled when it is split */
	page_poison_fill(pfn, order_pages(order));
	if (order >= BLOCK_ORDER)
		block_set_flags(block, BLOCK_POISONED);
}
