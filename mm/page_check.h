/*
 * Is this page what its user takes it for? Checks on freeing and on references, and where debugging hangs on.
 *
 * The fast path pays one look at words it reads anyway: the struct page's place, its head mask and its flags. Everything
 * else happens only when mm->watch says so, or when something is wrong.
 *
 * Something wrong is a caught bug: the frame, its last owner and a backtrace are named. With bad_free=panic (the default) that
 * is the end; with bad_free=keep nothing is freed, the frame is kept out of use where that is possible, and the machine goes on.
 * Either way no list and no count is touched, so the damage stays where it is.
 *
 * Source: Linux documentation, "Page owner: tracking about who allocated each page", 2014-12; the checks are those that
 * bad_page() is known for.
 */
#pragma once

#include "kernel/types.h"
#include "mm/zone.h"

enum {
	PAGE_NEVER_FREED = PAGE_BUDDY | PAGE_PCP | PAGE_TAIL | PAGE_RESERVED | PAGE_HUGETLB | PAGE_BAD | PAGE_MAPPINGS,
};

/* Address of the code that called the present function. */
#define CALLER ((virt_t)__builtin_return_address(0))

/* Slow half of page_check_free(): names what is wrong. False; does not return with bad_free=panic. */
bool page_refuse_free(struct mm *mm, struct page *page);

/* Is a compound page's order one that exists, and do its place and its first tail agree? */
bool page_order_fits(const struct page *page, unsigned order);

/* Is it in the place of a struct page of the mm? If not, nothing may be read there. */
bool page_has_place(const struct mm *mm, const struct page *page);

/* The same, and if not, that is what is said of it. */
bool page_check_place(struct mm *mm, const struct page *page);

/* Says so, also of a place that holds no struct page just now. */
void page_refuse_place(const struct page *page);

/* May this page be freed, as far as its struct page knows? Its references are the caller's to look at. */
static inline bool page_check_free(struct mm *mm, struct page *page)
{
	const u64 offset = (virt_t)page - mm->vmemmap;
	struct page_kind kind;

	if (likely((offset >> (PAGE_STRUCT_SHIFT + GIGA_ORDER)) - mm->first_gib < mm->gibs &&
		   IS_ALIGNED(offset, sizeof(*page)))) {
		kind = page_kind(page);
		if (likely(!(kind.flags & PAGE_NEVER_FREED) && page_head(page) == page &&
			   (!(kind.flags & PAGE_COMPOUND) || page_order_fits(page, kind.order))))
			return true;
	}
	return page_refuse_free(mm, page);
}

/*
 * Say that a frame was misused, `fmt` names how, with what is known of it: then panic, or return (bad_free=keep) with the
 * frame out of use if it was free. No lock held.
 */
void page_misused(struct mm *mm, struct page *page, const char *fmt, ...) __printf(3, 4);

/* The same of an address that is not what its user takes it for, where no struct page can be named. Nothing was done. No lock held. */
void address_misused(const char *fmt, ...) __printf(1, 2);

/* What page_owner= and poison= ask for: mm->watch of the machine's memory. */
u32 page_watch_at_boot(void);

/* How often that happened. */
u64 page_misuses(void);

/* bad_free=: returns what it was. For tests. */
bool page_misuse_panics(bool panics);

/*
 * What else is to be done when mm->watch is not 0: after a page was taken from the allocator and before its user sees it; and
 * before it goes back, its references gone. No lock held.
 */
void page_watch_allocated(struct mm *mm, struct page *page, unsigned order, virt_t caller);
void page_watch_freed(struct mm *mm, struct page *page, unsigned order, virt_t caller);
