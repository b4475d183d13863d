/*
 * Isolation of ranges of blocks: see isolate.h.
 */
#include "mm/isolate.h"

#include "kernel/wait.h"
#include "mm/buddy.h"
#include "mm/migratetype.h"
#include "mm/pcp.h"

/* Is a page in use one that somebody can move? Pool pages are their pool's to move. */
static bool page_can_move(struct page_kind kind)
{
	return kind.flags & (PAGE_MOVABLE | PAGE_HUGETLB);
}

/* Every chunk of a full block: free, on a per-CPU list, or movable. Zone lock held, so it stays full. */
static bool pages_can_move(const struct mm *mm, u32 index)
{
	const struct page *pages = pfn_page(mm, block_pfn(index));

	for (u64 i = 0; i < BLOCK_FRAMES;) {
		const struct page_kind kind = page_kind(&pages[i]);

		if (!(kind.flags & (PAGE_BUDDY | PAGE_PCP)) && atomic_load_relaxed(&pages[i].refcount) > 0 &&
		    !page_can_move(kind))
			return false;
		i += kind.flags & (PAGE_BUDDY | PAGE_PCP | PAGE_COMPOUND) ? order_pages(kind.order) : 1;
	}
	return true;
}

/* Zone lock held. What is in transit changes meanwhile, and is looked at when it has settled. */
static bool can_isolate(struct zone *zone, u32 index)
{
	const struct mm *mm = zone->mm;
	const u32 at = block_run_head(mm, index);
	const struct block *block = block_at(mm, index), *head = block_at(mm, at);

	if (block->zone != zone->index || block_is_isolated(block))
		return false;
	if (atomic_load_relaxed(&head->flags) & (BLOCK_FREE | BLOCK_TRANSIT | BLOCK_POOL))
		return atomic_load_relaxed(&block->state) != BLOCK_META;
	switch (atomic_load_relaxed(&head->state)) {
	case BLOCK_HUGE:
		return page_can_move(page_kind(pfn_page(mm, block_pfn(at))));
	case BLOCK_FULL:
		return pages_can_move(mm, index);
	default:
		return false; /* META, firmware, no RAM */
	}
}

/* One run, page or block. How many blocks that was; -EAGAIN: ask again; -EBUSY. */
static int isolate_some(struct zone *zone, u32 index, u32 end)
{
	int done = -EBUSY;

	if (fail_here(&zone->mm->fail, FAIL_ISOLATE))
		return -EBUSY;
	zone_lock(zone);
	if (can_isolate(zone, index))
		done = migratetype_change(zone, index, end, 0, BLOCK_ISOLATED);
	zone_unlock(zone);
	return done;
}

/* Under the lock, so that what is no more in transit is where it was published to. */
static bool any_in_transit(struct zone *zone, u32 first, u32 end)
{
	bool any = false;

	zone_lock(zone);
	for (u32 index = first; index < end && !any; index++)
		any = atomic_load_relaxed(&block_at(zone->mm, block_run_head(zone->mm, index))->flags) & BLOCK_TRANSIT;
	zone_unlock(zone);
	return any;
}

static struct wait wait_for_transit(void)
{
	struct wait wait = wait_begin(wait_deadline_cpus(), "blocks in transit to be published before isolation");

	wait.soft = true;
	return wait;
}

int isolate_range(struct zone *zone, u32 first, u32 count)
{
	const u32 end = first + count;
	struct wait wait = wait_for_transit();
	u32 index = first;
	int done = 0;

	while (index < end && wait.late == 0) {
		done = isolate_some(zone, index, end);
		if (done == -EAGAIN)
			wait_spin(&wait, CPU_NONE);
		else if (done < 0)
			break;
		else
			index += (u32)done;
	}
	while (done > 0 && wait.late == 0 && any_in_transit(zone, first, end))
		wait_spin(&wait, CPU_NONE);
	if (done > 0 && wait.late == 0)
		return 0;
	isolate_undo(zone, first, index - first);
	return -EBUSY;
}

void isolate_undo(struct zone *zone, u32 first, u32 count)
{
	const u32 end = first + count;

	for (u32 index = first; index < end;) {
		u32 done = 1;

		zone_lock(zone);
		if (block_is_isolated(block_at(zone->mm, index)))
			done = migratetype_unisolate(zone, index, end);
		zone_unlock(zone);
		index += done;
	}
}

bool isolate_test(struct zone *zone, u32 first, u32 count)
{
	for (u32 index = first; index < first + count; index++)
		if (buddy_find_run(zone->mm, index) == BLOCK_NONE)
			return false;
	return true;
}
