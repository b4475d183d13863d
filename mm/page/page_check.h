/*
 * Is this page what its user takes it for? Checks on freeing and on references, and the hooks for
 * debugging.
 *
 * The fast path pays one look at words that it reads anyway: the struct page's place, its head mask
 * and its flags. Everything else happens only when mm->watch says so, or when something is wrong.
 *
 * A failed check is a caught bug: the report names the frame, its last owner and a backtrace. With
 * debug.bad_free=panic (the default) the run ends there. With debug.bad_free=keep nothing is freed,
 * the frame is kept out of use where that is possible, and the machine goes on. In both cases no
 * list and no count is touched, so the damage does not spread.
 *
 * Source: Linux documentation, "Page owner: tracking about who allocated each page", 2014-12; the
 * checks are those that bad_page() is known for.
 */
#pragma once

#include "kernel/lib/types.h"
#include "mm/memmap/zone.h"

enum {
	PAGE_NEVER_FREED = PAGE_BUDDY | PAGE_PCP | PAGE_TAIL | PAGE_RESERVED | PAGE_HUGETLB |
			   PAGE_BAD | PAGE_MAPPINGS,
};

/* Address of the code that called the current function. */
#define CALLER ((virt_t)__builtin_return_address(0))

/*
 * Slow half of page_check_free(): report what is wrong. Returns false; does not return with
 * debug.bad_free=panic.
 */
bool page_refuse_free(struct mm *mm, struct page *page);

/* Is a compound page's order one that exists, and do its place and its first tail agree with it? */
bool page_order_fits(const struct page *page, unsigned order);

/* Does the address, aligned or not, lie where the mm has struct pages? */
static inline bool page_is_of(const struct mm *mm, const struct page *page)
{
	const u64 offset = (virt_t)page - mm->vmemmap;

	return (offset >> (PAGE_STRUCT_SHIFT + GIGA_ORDER)) - mm->first_gib < mm->gibs;
}

/* Does `page` lie where the mm has struct pages? If not, nothing may be read there. */
static inline bool page_has_place(const struct mm *mm, const struct page *page)
{
	return page_is_of(mm, page) && IS_ALIGNED((virt_t)page - mm->vmemmap, sizeof(*page));
}

/* page_has_place(), which also reports a page that has none. */
bool page_check_place(struct mm *mm, const struct page *page);

/* May this page be freed, as far as its struct page tells? The caller checks the references. */
static inline bool page_check_free(struct mm *mm, struct page *page)
{
	struct page_kind kind;

	if (likely(page_has_place(mm, page))) {
		kind = page_kind(page);
		if (likely(!(kind.flags & PAGE_NEVER_FREED) && page_head(page) == page &&
			   (!(kind.flags & PAGE_COMPOUND) || page_order_fits(page, kind.order))))
			return true;
	}
	return page_refuse_free(mm, page);
}

/*
 * Report that a frame was misused, with what is known of it; `fmt` says how. Then panic, or return
 * with debug.bad_free=keep. Nothing is freed; page_refuse_free() takes the frame of a double free
 * out of use. `page` is NULL if an address was misused where there is no struct page. No lock held.
 */
void page_misused(struct mm *mm, struct page *page, const char *fmt, ...) __printf(3, 4);

/* The initial mm->watch of the machine's memory, as debug.page_owner= asks. */
u32 page_watch_at_boot(void);

/* How many misuses were reported. */
u64 page_misuses(void);

/*
 * The extra work when mm->watch is not 0. page_watch_allocated() runs after a page was taken from
 * the allocator and before its user sees it. page_watch_freed() runs before a page without
 * references goes back. No lock held.
 */
void page_watch_allocated(struct mm *mm, struct page *page, virt_t caller);
void page_watch_freed(struct mm *mm, struct page *page, unsigned order, virt_t caller);
