/* Free pages are filled with a pattern and checked before they are used: see page_poison.h. */
#include "mm/page/page_poison.h"

#include <arch/check.h>

#include "mm/page/page_check.h"

CHECK_READS_ANYTHING
static void report(struct mm *mm, struct page *page, const u64 *broken)
{
	page_misused(mm, page, "write after free: frame %llx has %llx at offset 0x%llx",
		     virt_to_phys(broken) >> PAGE_SHIFT, *broken, virt_to_phys(broken) % PAGE_SIZE);
}

void page_poison_split(struct mm *mm, u32 index)
{
	struct block *block = block_at(mm, index);
	const u64 *broken;
	bool poisoned;

	if (!(atomic_load_relaxed(&mm->watch) & WATCH_POISON))
		return;
	poisoned = block_look(block).flags & BLOCK_POISONED;
	broken = poisoned ? poison_broken(block_pfn(index), BLOCK_FRAMES) : NULL;
	if (broken)
		report(mm, pfn_page(mm, virt_to_phys(broken) >> PAGE_SHIFT), broken);
	if (broken || !poisoned)
		poison_fill(block_pfn(index), BLOCK_FRAMES);
	block_clear_flags(block, BLOCK_POISONED);
}

/*
 * A huge page is poisoned only if its block says so; pools use huge pages without filling them
 * again.
 */
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
	broken = poison_broken(pfn, order_pages(order));
	if (!broken)
		return;
	/* no new owner is noted yet, so the report names the last one */
	atomic_store_relaxed(&page->refcount, 0);
	report(mm, page, broken);
	atomic_store_release(&page->refcount, 1);
}

void page_poison_freed(struct mm *mm, struct page *page, unsigned order)
{
	const pfn_t pfn = page_to_pfn(page);
	struct block *block = block_of(mm, pfn);

	if (order >= BLOCK_ORDER && block_look(block).state != BLOCK_HUGE)
		/* the block goes to the block lists as it is and is filled when it is split */
		return;
	poison_fill(pfn, order_pages(order));
	if (order >= BLOCK_ORDER)
		block_set_flags(block, BLOCK_POISONED);
}
