/*
 * Moving pages out of a range: see migrate.h.
 *
 * The range is isolated, so nothing in it is given out while this runs. A free page stays free, a
 * full block stays full, and its struct pages may be read without a lock. A page in use may be
 * freed at any moment, unless this code holds a reference to it.
 */
#include "mm/page/migrate.h"

#include "kernel/core/panic.h"
#include "kernel/core/wait.h"
#include "kernel/lib/string.h"
#include "mm/page/page_alloc.h"
#include "mm/page/pcp_drain.h"
#include "mm/page/refuge.h"
#include "mm/zone/buddy.h"
#include "mm/zone/isolate.h"

enum { PASSES = 5 };

/*
 * Single pages to move to. As many are taken at once as the frames that may still have to move, but
 * no more than a word of them. `frames` counts those for which none was taken.
 */
struct targets {
	u64 frames;
	struct page_word word;
};

/* 1 GiB pages make no room for others of their size, so they are not counted. */
static void count_movable(struct mm *mm, const struct page *page, unsigned order, s64 sign)
{
	if (order <= BLOCK_ORDER)
		gib_count_movable(mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER),
				  /* cppcheck-suppress signConversion; both are s64 */
				  sign * (s64)order_pages(order));
}

static unsigned order_of(struct page_kind kind)
{
	return kind.flags & PAGE_COMPOUND ? kind.order : 0;
}

static void give_mover(struct mm *mm, struct page *page, const struct page_mover *mover)
{
	const struct page_kind kind = page_kind(page);

	page->mover = mover;
	if (kind.flags & PAGE_MOVABLE)
		return;
	page_set_kind(page, kind.flags | PAGE_MOVABLE, kind.order);
	count_movable(mm, page, order_of(kind), 1);
}

void mm_page_set_movable(struct mm *mm, struct page *page, const struct page_mover *mover)
{
	ASSERT(page_head(page) == page && atomic_load_relaxed(&page->refcount) > 0 && mover->move,
	       "frame %llx cannot be made movable: it is not the head of a page in use",
	       page_to_pfn(page));
	give_mover(mm, page, mover);
}

void page_forget_mover(struct mm *mm, struct page *page)
{
	const struct page_kind kind = page_kind(page);

	count_movable(mm, page, order_of(kind), -1);
	page_set_kind(page, kind.flags & (u16)~PAGE_MOVABLE, kind.order);
}

void page_set_movable(struct page *page, const struct page_mover *mover)
{
	mm_page_set_movable(&mm_kernel, page, mover);
}

/* ---- one page ---- */

int page_move(struct mm *mm, struct page *from, struct page *to)
{
	const u32 index = (u32)(page_to_pfn(from) >> BLOCK_ORDER);
	const struct page_mover *mover = from->mover;
	int err;

	give_mover(mm, to, mover);
	err = mover->move(from, to);
	if (err)
		atomic_store_relaxed(&gib_of(mm, index)->refused, (u16)(index % GIB_BLOCKS + 1));
	return err;
}

bool page_get_movable(struct page *page)
{
	u64 state = atomic_load_acquire(&page->state);

	/*
	 * Check the flag and take the reference in one step. If the page was freed and given out
	 * again meanwhile, it may have a holder that shares it with nobody.
	 */
	while (page_flags_can_move((u32)state) && state_references(state) > 0) {
		if (atomic_cas(&page->state, state, state + PAGE_REFERENCE))
			return true;
		state = atomic_load_acquire(&page->state);
	}
	return false;
}

void page_copy(struct page *to, const struct page *from)
{
	const u64 pages = order_pages(order_of(page_kind(from)));

	memcpy(phys_to_virt(page_to_pfn(to) << PAGE_SHIFT),
	       phys_to_virt(page_to_pfn(from) << PAGE_SHIFT), pages * PAGE_SIZE);
	for (unsigned i = 0; i < ARRAY_LEN(to->private); i++)
		to->private[i] = from->private[i];
}

static void free_targets(struct mm *mm, struct targets *targets)
{
	while (targets->word.bits)
		mm_page_free(mm, page_word_next(&targets->word));
}

static bool take_targets(struct mm *mm, node_t node, struct targets *targets)
{
	const unsigned taken = mm_page_take_word(
		mm, 0, node, MIGRATE_MOVABLE, (unsigned)MIN(targets->frames, 64), &targets->word);

	targets->frames -= taken;
	return taken > 0;
}

/* Allocate the page to move to: of the same order, and on the same node if possible. */
static struct page *page_to_move_to(struct mm *mm, struct page_kind kind,
				    const struct migrate_how *how, struct targets *targets)
{
	const node_t node = mm->zone[kind.zone].node;
	struct page *to = NULL;

	if (fail_here(&mm->fail, FAIL_MOVE))
		return NULL;
	if (order_of(kind) == 0 && how->refuge)
		to = refuge_take(how->refuge);
	if (unlikely(atomic_load_relaxed(&mm->watch)))
		free_targets(mm, targets); /* one of them may have been found bad meanwhile */
	else if (!to && order_of(kind) == 0 &&
		 (targets->word.bits || take_targets(mm, node, targets)))
		to = page_word_next(&targets->word);
	return to ? to : mm_page_alloc(mm, order_of(kind), USE_MOVABLE, 0, node);
}

/*
 * A page has moved, and both references to it are the caller's: its own, and the one that the
 * holder handed over. Free the page. A single page that nobody else refers to or watches only gets
 * its bit in `left`: the caller gives the frames of a block back together. Until then they count as
 * movable, and a bad one could not be withdrawn.
 */
static void free_moved(struct mm *mm, struct page *from, struct page_kind kind, u64 *left)
{
	const u64 state = page_state(PAGE_MOVABLE, kind.order, kind.zone, 2);
	const pfn_t pfn = page_to_pfn(from);

	if (kind.flags != PAGE_MOVABLE || page_head(from) != from ||
	    atomic_load_relaxed(&mm->watch) ||
	    !atomic_cas(&from->state, state, page_state(0, 0, kind.zone, 0))) {
		page_drop(from); /* not the last one */
		mm_page_put(mm, from);
		return;
	}
	left[pfn % BLOCK_FRAMES / 64] |= 1ULL << pfn % 64;
}

/*
 * Move one page in use that does not belong to a pool. 0, also if it was freed just now; -ENOMEM:
 * there is no page to move to; -EBUSY: it has no mover, or its holder refused. `left`: bits of the
 * block's frames that the caller has to give back; not used for huge pages. No lock held.
 */
static int migrate_page(struct mm *mm, struct page *from, const struct migrate_how *how,
			struct targets *targets, u64 *left, struct migrate_stats *stats)
{
	struct page_kind kind;
	struct page *to;
	int err;

	if (!page_get_movable(from))
		/* 0: the page was freed just now */
		return atomic_load_relaxed(&from->refcount) ? -EBUSY : 0;
	kind = page_kind(from); /* with the reference: before, it may have been another page */
	to = page_to_move_to(mm, kind, how, targets);
	if (!to) {
		mm_page_put(mm, from);
		return -ENOMEM;
	}
	err = page_move(mm, from, to);
	if (err) {
		stats->failed++;
		mm_page_put(mm, to);
		mm_page_put(mm, from);
	} else {
		stats->pages += order_pages(order_of(kind));
		free_moved(mm, from, kind, left);
	}
	return err ? -EBUSY : 0;
}

/* ---- a range ---- */

int migrate_pages(struct mm *mm, struct page *pages, u64 count, const struct migrate_how *how,
		  struct migrate_stats *stats)
{
	const u32 index = (u32)(page_to_pfn(pages) >> BLOCK_ORDER);
	u64 left[PCP_WORDS] = {0};
	struct targets targets = {
		.frames = MIN(count, BLOCK_FRAMES - block_look_at(mm, index).free_pages)};
	int result = 0;

	for (u64 i = 0; i < count && result != -ENOMEM;) {
		const struct page_kind kind = page_kind(&pages[i]);
		int err = 0;

		if (!(kind.flags & (PAGE_BUDDY | PAGE_PCP)) &&
		    atomic_load_relaxed(&pages[i].refcount) > 0)
			err = migrate_page(mm, &pages[i], how, &targets, left, stats);
		result = err ? err : result;
		i += kind.flags & (PAGE_BUDDY | PAGE_COMPOUND) ? order_pages(kind.order) : 1;
	}
	free_targets(mm, &targets);
	gib_count_movable(mm, index, -(s64)pcp_give_back_map(block_zone(mm, index), index, left));
	return result;
}

/*
 * Move the page or pages that block `index` is part of. *blocks is set to the number of blocks from
 * `index` to their end.
 */
static int move_block(struct mm *mm, u32 index, const struct migrate_how *how, u32 *blocks,
		      struct migrate_stats *stats)
{
	struct block_word word;
	const u32 head = block_run_head(mm, index, &word);

	*blocks = word.order > BLOCK_ORDER ? head + order_blocks(word.order) - index : 1;
	if (word.flags & BLOCK_FREE)
		return 0;
	if (word.flags & BLOCK_TRANSIT)
		return -EAGAIN;
	if (word.order == GIGA_ORDER && how->giga == MIGRATE_KEEP_GIGA)
		return -EBUSY;
	if (word.flags & BLOCK_POOL)
		return mm_upward.pool_move_page(mm, head, word.order, stats);
	switch (word.state) {
	case BLOCK_HUGE:
		return migrate_pages(mm, block_page(mm, head), 1, how, stats);
	case BLOCK_FULL:
		return migrate_pages(mm, block_page(mm, index), BLOCK_FRAMES, how, stats);
	default:
		return -EBUSY;
	}
}

/*
 * Returns 0 if nothing stood in the way, -EAGAIN if something was changing hands, -EBUSY if the
 * only obstacles were pages that would not move, or -ENOMEM.
 */
static int one_pass(struct zone *zone, u32 first, u32 end, const struct migrate_how *how,
		    struct migrate_stats *stats)
{
	int result = 0;
	u32 blocks;

	for (u32 index = first; index < end; index += blocks) {
		const int err = move_block(zone->mm, index, how, &blocks, stats);

		if (err == -ENOMEM)
			return err;
		if (err && result != -EAGAIN)
			result = err;
	}
	return result;
}

/*
 * Blocks that are changing hands are waited for. Pages that cannot be moved are tried in up to
 * PASSES passes.
 */
int migrate_range(struct zone *zone, u32 first, u32 count, const struct migrate_how *how,
		  struct migrate_stats *stats)
{
	struct wait wait = wait_begin(WAIT_RANGE, "blocks in transit in a range to be emptied");
	bool empty = false;
	unsigned pass = 0;
	int err = 0;

	while (pass < PASSES && !empty && err != -ENOMEM) {
		err = one_pass(zone, first, first + count, how, stats);
		if (pass > 0 && err != -EAGAIN)
			/* pages that were on their way to a list when the range was isolated */
			pcp_drain_all(zone->mm);
		empty = isolate_test(zone, first, count);
		if (!empty && err == -EAGAIN && wait.late == 0)
			wait_spin(&wait, CPU_NONE);
		else
			pass++;
	}
	return empty ? 0 : err == -ENOMEM ? err : -EBUSY;
}
