/*
 * References to pages, and the facts that a page states about itself: see mm.h. The last reference
 * frees the page (page_fast.h).
 *
 * A reference is taken through any page of a compound page and counted at its head. Counting is
 * atomic here. Only page_free() does without, because its caller states that nobody else can have a
 * reference.
 */
#include <arch/peek.h>

#include "kernel/core/context.h"
#include "mm/page/page_alloc.h"
#include "mm/page/page_check.h"
#include "mm/page/page_fast.h"

void page_get(struct page *page)
{
	struct page *head = page_head(page);

	if (likely(atomic_fetch_add(&head->refcount, 1) > 0))
		return;
	atomic_store_relaxed(&head->refcount, 0);
	page_misused(&mm_kernel, page, "reference to free frame %llx", page_to_pfn(page));
}

void page_put(struct page *page)
{
	context_assert(CONTEXT_ORDINARY);
	page_put_head(&mm_kernel, page_head(page), CALLER);
}

/*
 * Look before writing: a tail may be on a read-only page, where even a failing compare-and-swap
 * faults.
 */
bool page_try_get(struct page *page)
{
	u32 count = atomic_load_relaxed(&page->refcount);

	while (count > 0) {
		if (atomic_cas(&page->refcount, count, count + 1))
			return true;
		count = atomic_load_relaxed(&page->refcount);
	}
	return false;
}

pfn_t page_pfn(const struct page *page)
{
	return page_to_pfn(page);
}

void *page_address(const struct page *page)
{
	return phys_to_virt(page_to_pfn(page) << PAGE_SHIFT);
}

unsigned page_order(const struct page *page)
{
	const struct page *head = page_head(page);

	return head->flags & PAGE_COMPOUND ? head->order : 0;
}

struct page *pfn_to_page(pfn_t pfn)
{
	return pfn_page(&mm_kernel, pfn);
}

bool page_peek(pfn_t pfn, struct page *copy)
{
	return mm_page_peek(&mm_kernel, pfn, copy);
}

bool mm_page_peek(const struct mm *mm, pfn_t pfn, struct page *copy)
{
	const u64 *from = (const u64 *)pfn_page(mm, pfn);
	u64 *to = (u64 *)copy;

	for (size_t i = 0; i < sizeof(*copy) / sizeof(u64); i++)
		if (!peek_u64(from + i, &to[i]))
			return false;
	return true;
}
