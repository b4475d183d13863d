/* Reporting misused pages, and the debugging work around allocation and free: see page_check.h. */
#include "mm/page/page_check.h"

#include <arch/console.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/upward.h"
#include "mm/page/page_owner.h"

enum { REASON_MAX = 200, NAME_MAX = 96, BACKTRACE_MAX = 16 };

enum { BAD_FREE_PANIC, BAD_FREE_KEEP };
static unsigned bad_free = BAD_FREE_PANIC;
OPTION_CHOICE(debug.bad_free, bad_free, "panic|keep",
	      "a misused page ends the run, or is reported and kept out of use");

static bool owners_at_boot;
OPTION_BOOL(debug.page_owner, owners_at_boot,
	    "record the holder of each page, and print the holders at the end", .boot_only = true);

static u64 misuses;

u32 page_watch_at_boot(void)
{
	return owners_at_boot ? WATCH_OWNERS : 0;
}

u64 page_misuses(void)
{
	return atomic_load_relaxed(&misuses);
}

/* ---- reporting what is known of a frame ---- */

static void print_owners(const struct page *page)
{
	const struct page_kind kind = page_kind(page);
	char held[NAME_MAX], freed[NAME_MAX];

	page_owner_text(page->owner, held, sizeof(held));
	if (kind.flags & PAGE_BOOT) {
		pr_err("page: given out at boot, before the allocator existed");
	} else if (!page->owner) {
		pr_err("page: its last owner is not known (debug.page_owner=on records owners)");
	} else if (page->refcount > 0) {
		pr_err("page: held by %s since %llu us after boot", held,
		       page->held_since / NS_PER_US);
	} else {
		page_owner_text(page->private[2], freed, sizeof(freed));
		pr_err("page: last held by %s, freed by %s", held, freed);
	}
}

static void print_page(const struct mm *mm, const struct page *page)
{
	const struct page_kind kind = page_kind(page);
	const pfn_t pfn = page_to_pfn(page);
	const struct block *block = block_of(mm, pfn);

	pr_err("page: frame %llx: order %u, flags %x, %u references, zone %u; its block is %s", pfn,
	       kind.order, kind.flags, page->refcount, kind.zone,
	       block ? block_state_name(block_look(block).state) : "not opened");
}

static void print_backtrace(void)
{
	virt_t frames[BACKTRACE_MAX];
	const size_t n = backtrace_capture(frames, BACKTRACE_MAX);

	for (size_t i = 0; i < n; i++) {
		u64 offset = 0;
		const char *name = symbol_lookup(frames[i] - 1, &offset);

		pr_err("page:   %s+0x%llx", name ? name : "?", offset + 1);
	}
}

void page_misused(struct mm *mm, struct page *page, const char *fmt, ...)
{
	struct page *head = page ? page_head(page) : NULL;
	char reason[REASON_MAX];

	FORMAT_ARGS(reason, sizeof(reason), fmt);
	atomic_fetch_add(&misuses, 1);
	if (head != page)
		print_page(mm, page);
	if (head) {
		print_page(mm, head);
		print_owners(head);
	}
	if (bad_free == BAD_FREE_PANIC)
		panic("%s", reason);
	pr_err("page: %s", reason);
	print_backtrace();
}

/* ---- freeing ---- */

bool page_order_fits(const struct page *page, unsigned order)
{
	return ((order >= 1 && order <= BLOCK_ORDER) || order == GIGA_ORDER) &&
	       IS_ALIGNED(page_to_pfn(page), order_pages(order)) &&
	       page[1].head_mask == head_mask_of(order);
}

bool page_check_place(struct mm *mm, const struct page *page)
{
	if (likely(page_has_place(mm, page)))
		return true;
	page_misused(NULL, NULL, "free of %p, which is no struct page", (const void *)page);
	return false;
}

bool page_refuse_free(struct mm *mm, struct page *page)
{
	const char *verb = "free", *what = ", of no known kind";
	char mapped[NAME_MAX];
	struct page_kind kind;

	if (!page_check_place(mm, page))
		return false;
	kind = page_kind(page);
	if (kind.flags & PAGE_TAIL || page_head(page) != page)
		what = ", a tail";
	else if (kind.flags & (PAGE_BUDDY | PAGE_PCP))
		verb = "double free", what = "";
	else if (kind.flags & PAGE_MAPPINGS)
		what = mapped;
	else if (kind.flags & PAGE_BAD)
		what = ", which is bad";
	else if (kind.flags & PAGE_RESERVED)
		what = ", which is reserved";
	else if (kind.flags & PAGE_HUGETLB)
		what = ", which belongs to a pool";
	else if (kind.flags & PAGE_COMPOUND)
		what = ", whose order is wrong";
	if (what == mapped)
		format(mapped, sizeof(mapped), ", which page_map() has mapped at %llx",
		       mm_upward.map_find(page_to_pfn(page)));
	page_misused(mm, page, "%s of frame %llx%s", verb, page_to_pfn(page), what);
	/* two holders may each think that the page is theirs */
	if (kind.flags & (PAGE_BUDDY | PAGE_PCP))
		mm_upward.mark_bad(mm, page_to_pfn(page));
	return false;
}

/* ---- debugging around allocation and free ---- */

void page_watch_allocated(struct mm *mm, struct page *page, virt_t caller)
{
	if (atomic_load_relaxed(&mm->watch) & WATCH_OWNERS)
		page_owner_allocated(page, caller);
}

void page_watch_freed(struct mm *mm, struct page *page, unsigned order, virt_t caller)
{
	const u32 watch = atomic_load_relaxed(&mm->watch);

	if (watch & WATCH_REPORTED)
		mm_upward.take_reported(mm);
	if (watch & WATCH_BAD)
		/* withdraws bad frames that were freed before this one */
		mm_upward.freed_near_bad(mm, page_to_pfn(page), order);
	if (watch & WATCH_OWNERS)
		atomic_store_relaxed(&page->private[2], page_owner_pack(caller, cpu_id()));
}
