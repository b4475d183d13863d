/* Moving a space's pages: see movable.h. */
#include "mm/vm/movable.h"

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/check.h>
#include <arch/pgtable.h>

#include "kernel/core/shootdown.h"
#include "kernel/core/wait.h"
#include "mm/vm/space.h"
#include "mm/vm/pages.h"
#include "mm/vm/touch.h"
#include "mm/memmap/page.h"
#include "mm/mm.h"

/*
 * Whoever wants contiguous memory runs a mover, on any CPU, also while the space ends. One word
 * counts the movers and says whether more may begin.
 */
#define MAY_BEGIN (1u << 31)
static u32 movers;          /* atomic */
static struct space *moved; /* written before MAY_BEGIN is set */

/* Is this the entry that maps the page, and is the page the area's own? */
static bool maps(pte_t pte, enum pt_level level, const struct page *page)
{
	return pte_is_leaf(pte, level) && !(pte & (PTE_PIECE | PTE_FILE)) &&
	       pte_pfn(pte) == page_pfn(page);
}

static void move_entry(pte_t *entry, u64 virt, enum pt_level level, struct page *from,
		       struct page *to)
{
	struct shootdown_batch batch = {.ranges = 0};
	const pte_t pte = pte_load(entry);

	pte_store(entry, virt, level, 0);
	shootdown_batch_add(&batch, virt, 1);
	shootdown_batch_flush(&batch, SHOOTDOWN_SKIP_IDLE);
	page_copy(to, from);
	check_frames_reused(page_pfn(from), order_pages(page_order(from)));
	fence_store();
	pte_store(entry, virt, level, (pte & ~PTE_PFN_MASK) | page_pfn(to) << PAGE_SHIFT);
}

static int move_now(struct page *from, struct page *to)
{
	const u64 virt = atomic_load_relaxed(&from->private[PAGE_VIRT]);
	const enum pt_level level = page_order(to) == BLOCK_ORDER ? PT_PMD : PT_PAGE;
	struct area area;
	pte_t *entry;
	bool mine;

	if (!space_try_take(moved, virt, virt + pt_level_size(level), &area))
		return -EBUSY;
	entry = pages_entry(moved, virt, level);
	mine = entry && maps(pte_load(entry), level, from);
	if (mine)
		move_entry(entry, virt, level, from, to);
	space_put_back(moved, &area);
	return mine ? 0 : -EBUSY;
}

static int move(struct page *from, struct page *to)
{
	const bool may = atomic_fetch_add(&movers, 1) & MAY_BEGIN;
	const int err = may ? move_now(from, to) : -EBUSY;

	atomic_fetch_sub(&movers, 1);
	return err;
}

static const struct page_mover mover = {.name = "space", .move = move};

static bool can_move(const struct area *area)
{
	return area_page_bytes(area) == PAGE_SIZE && !(area->object && (area->flags & AREA_SHARED));
}

void movable_announce(struct space *space)
{
	struct area area;
	u64 at = space->range.start;

	atomic_store_relaxed(&moved, space);
	atomic_fetch_or(&movers, MAY_BEGIN);
	/* without memory to take an area, the rest stays where it is */
	while (space_take(space, &at, space->range.end, &area) > 0) {
		if (can_move(&area))
			pages_make_movable(space, area.start, area.end, &mover);
		space_put_back(space, &area);
	}
}

void movable_end(struct space *space)
{
	struct wait wait = wait_begin(WAIT_TOUCH, "a page that is being moved");

	if (atomic_load_relaxed(&moved) != space)
		return;
	atomic_fetch_and(&movers, ~MAY_BEGIN);
	while (atomic_load_acquire(&movers) != 0)
		wait_spin(&wait, CPU_NONE);
}
