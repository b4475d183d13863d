/* Ranges of the program's memory: see mapping.h. */
#include "kernel/program/mapping.h"

#include <arch/atomic.h>
#include <arch/pgtable.h>
#include <arch/user.h>

#include "kernel/program/areas.h"
#include "kernel/program/file.h"
#include "kernel/program/movable.h"
#include "kernel/program/pages.h"
#include "kernel/program/thread.h"
#include "kernel/program/touch.h"
#include "mm/hugetlb/pool_use.h"

bool mapping_range_ok(u64 start, u64 end)
{
	return start < end && start >= USER_START && end <= USER_END &&
	       IS_ALIGNED(start | end, PAGE_SIZE);
}

/* ---- promises of pools ---- */

static struct pool *pool_for(const struct area *area)
{
	if (area->flags & AREA_NO_RESERVE)
		return NULL;
	return area->flags & AREA_POOL_1G ? &pool_1g : area->flags & AREA_POOL_2M ? &pool_2m : NULL;
}

static int promise(const struct area *area)
{
	struct pool *pool = pool_for(area);
	const u64 pages = (area->end - area->start) / area_page_bytes(area);
	int err = pool ? pool_reserve(pool, pages) : 0;

	/* the pool may make pages, and the program's own are in the way */
	if (err < 0 && atomic_load_relaxed(&pool->overcommit) > 0) {
		movable_announce();
		err = pool_reserve(pool, pages);
	}
	return err;
}

static void unpromise(const struct area *area)
{
	struct pool *pool = pool_for(area);

	if (pool)
		pool_unreserve(pool, (area->end - area->start) / area_page_bytes(area));
}

/* A page that was touched has used its promise; the others' are given back. */
static void unpromise_untouched(const struct hull *hull, const struct pages_taken *taken)
{
	if (hull->promised[PT_PMD] > taken->kept_promises[PT_PMD])
		pool_unreserve(&pool_2m, hull->promised[PT_PMD] - taken->kept_promises[PT_PMD]);
	if (hull->promised[PT_PUD] > taken->kept_promises[PT_PUD])
		pool_unreserve(&pool_1g, hull->promised[PT_PUD] - taken->kept_promises[PT_PUD]);
}

/* ---- removing ---- */

/* Pages of pools are never cut. */
static bool cuts_pool_page(u64 at)
{
	struct area area;

	return area_tree_from(&program_areas.tree, at, &area) && area.start < at &&
	       !IS_ALIGNED(at, area_page_bytes(&area));
}

/* The claimed part is unmapped, in one round with what is taken already. The claim stays. */
static void empty_claim(u64 start, u64 end, const struct hull *hull, struct pages_taken *taken)
{
	pages_take(start, end, hull, taken);
	pages_finish(taken);
	unpromise_untouched(hull, taken);
}

/* If memory ends before all of the range is claimed, the part that is claimed is emptied. */
static s64 claim_and_empty(u64 start, u64 end, struct hull *hull)
{
	struct pages_taken taken = {.tables = NULL};
	s64 err;

	if (cuts_pool_page(start) || cuts_pool_page(end))
		return -EINVAL;
	err = areas_claim(&program_areas, start, end, AREAS_REPLACE, hull);
	if (hull->end == hull->start)
		return err;
	empty_claim(MAX(start, hull->start), MIN(end, hull->end), hull, &taken);
	if (err < 0)
		areas_release(&program_areas, hull);
	return err;
}

static s64 remove_owned(u64 start, u64 end)
{
	struct hull hull;
	const s64 err = claim_and_empty(start, end, &hull);

	if (err == 0)
		areas_release(&program_areas, &hull);
	return err;
}

/*
 * There are no mappings in the hole, and its page tables are not the program's. A range on both
 * sides of it is removed in two steps, with a round for each.
 */
s64 mapping_remove(u64 start, u64 end)
{
	s64 err = 0;

	if (start < USER_HOLE_START)
		err = remove_owned(start, MIN(end, USER_HOLE_START));
	if (err == 0 && end > USER_HOLE_END)
		err = remove_owned(MAX(start, USER_HOLE_END), end);
	return err;
}

void mapping_remove_all(void)
{
	struct pages_taken taken = {.tables = NULL};
	struct hull all;

	movable_end();
	areas_forget(&program_areas, &all);
	pages_take(USER_START, USER_HOLE_START, &all, &taken);
	empty_claim(USER_HOLE_END, USER_END, &all, &taken);
	areas_free(&program_areas);
}

/* ---- making ---- */

static s64 make_fixed(struct area *area, enum mapping_place place)
{
	struct hull hull;
	s64 err = areas_add(&program_areas, area);

	if (err != -EEXIST)
		return err < 0 ? err : (s64)area->start;
	if (place == MAPPING_NO_REPLACE)
		err = areas_claim(&program_areas, area->start, area->end, AREAS_MUST_BE_FREE,
				  &hull);
	else
		err = claim_and_empty(area->start, area->end, &hull);
	if (err < 0)
		return err;
	areas_settle(&program_areas, &hull, area);
	return (s64)area->start;
}

static u64 align_for(const struct area *area)
{
	const u64 bytes = area_page_bytes(area);

	/* Room for 2 MiB pages, if they are to be had. Other sizes are those of allocators, which
	   write a word at the start: a huge page there would often be cleared for nothing. */
	return !area->file && IS_ALIGNED(area->end - area->start, MIB(2)) ? MAX(bytes, MIB(2))
									  : bytes;
}

s64 mapping_make(struct area *area, enum mapping_place place)
{
	s64 start = promise(area);

	if (start == 0) {
		start = place == MAPPING_ANYWHERE
				? areas_place(&program_areas, area, align_for(area))
				: make_fixed(area, place);
		if (start < 0)
			unpromise(area);
	}
	if (start < 0 && area->file)
		file_put(area->file);
	return start;
}

/* ---- changing ---- */

/* May the area have these rights? A shared mapping of a file that cannot be written may not. */
static int may_have(const struct area *area, u8 rights)
{
	if (area->file && (area->flags & AREA_SHARED) && (rights & USER_RIGHT_WRITE) &&
	    !file_can_map(area->file, true))
		return -EACCES;
	return 0;
}

void changes_end(struct changes *changes)
{
	pages_finish(&changes->taken);
	for (unsigned i = 0; i < changes->count; i++)
		areas_put_back(&program_areas, &changes->area[i]);
	changes->count = 0;
}

void changes_add(struct changes *changes, const struct area *area)
{
	changes->area[changes->count++] = *area;
	if (changes->count == CHANGES_MAX)
		changes_end(changes);
}

static int protect_area(struct area *area, u8 rights, struct pages_taken *taken)
{
	const int err = may_have(area, rights);

	if (err < 0)
		return err;
	pages_protect(area->start, area->end, rights, taken);
	area->rights = rights;
	return 0;
}

s64 mapping_protect(u64 start, u64 end, u8 rights)
{
	struct changes changes = {.count = 0};
	struct area area;
	s64 err;

	if (!areas_cover(&program_areas, start, end))
		return -ENOMEM;
	for (;;) {
		err = areas_take(&program_areas, &start, end, &area);
		if (err <= 0)
			break;
		err = protect_area(&area, rights, &changes.taken);
		changes_add(&changes, &area);
		if (err < 0)
			break;
	}
	changes_end(&changes);
	return err;
}

s64 mapping_populate(u64 start, u64 end, bool write)
{
	struct thread *self = thread_current();

	for (u64 at = start; at < end; at += PAGE_SIZE) {
		enum pt_level level = PT_PAGE;
		struct area area;
		pte_t pte;
		const enum touch touch = program_touch(self, at, write ? USER_WRITE : USER_READ);

		if (touch != TOUCH_DONE)
			return touch == TOUCH_NO_MEMORY ? -ENOMEM : -EFAULT;
		if (thread_is_wanted(self))
			return -EINTR;
		if (!areas_pin(&program_areas, self, at, PT_PAGE, &area))
			return -EFAULT;
		if (pages_find(at, &pte, &level))
			at = ALIGN_DOWN(at, pt_level_size(level)) + pt_level_size(level) -
			     PAGE_SIZE;
		pin_drop(self);
	}
	return 0;
}
