/* Ranges of a space: see mapping.h. */
#include "mm/vm/mapping.h"

#include <arch/pgtable.h>
#include <arch/user.h>

#include "mm/vm/space.h"
#include "mm/vm/movable.h"
#include "mm/vm/pages.h"
#include "mm/vm/touch.h"

bool mapping_range_ok(const struct space *space, u64 start, u64 end)
{
	return start < end && start >= space->range.start && end <= space->range.end &&
	       IS_ALIGNED(start | end, PAGE_SIZE);
}

/* ---- promises of pools ---- */

static int promise(const struct area *area)
{
	const u64 pages = area_promised(area);

	return pages > 0 ? pool_reserve(pages_pool(area->level), pages) : 0;
}

static void unpromise(const struct area *area)
{
	const u64 pages = area_promised(area);

	if (pages > 0)
		pool_unreserve(pages_pool(area->level), pages);
}

/* A page that was touched has used its promise; the others' are given back. */
static void unpromise_untouched(const struct hull *hull, const struct taken *taken)
{
	if (hull->promised[PT_PMD] > taken->kept_promises[PT_PMD])
		pool_unreserve(&pool_2m, hull->promised[PT_PMD] - taken->kept_promises[PT_PMD]);
	if (hull->promised[PT_PUD] > taken->kept_promises[PT_PUD])
		pool_unreserve(&pool_1g, hull->promised[PT_PUD] - taken->kept_promises[PT_PUD]);
}

/* ---- removing ---- */

/* Pages of pools are never cut. */
static bool cuts_pool_page(const struct space *space, u64 at)
{
	struct area area;

	return area_tree_from(&space->tree, at, &area) && area.start < at &&
	       !IS_ALIGNED(at, area_page_bytes(&area));
}

/* The claimed part is unmapped, in one round with what is taken already. The claim stays. */
static void empty_claim(u64 start, u64 end, const struct hull *hull, struct taken *taken)
{
	pages_take(start, end, hull, taken);
	taken_finish(taken);
	unpromise_untouched(hull, taken);
}

/* If memory ends before all of the range is claimed, the part that is claimed is emptied. */
static s64 claim_and_empty(struct space *space, u64 start, u64 end, struct hull *hull)
{
	struct taken taken = {.space = space};
	s64 err;

	if (cuts_pool_page(space, end)) /* before anything is claimed */
		return -EINVAL;
	err = space_claim(space, start, end, SPACE_REPLACE, hull);
	if (hull->end == hull->start)
		return err;
	empty_claim(MAX(start, hull->start), MIN(end, hull->end), hull, &taken);
	if (err < 0)
		space_release(space, hull);
	return err;
}

s64 mapping_remove(struct space *space, u64 start, u64 end)
{
	struct hull hull;
	const s64 err = claim_and_empty(space, start, end, &hull);

	if (err == 0)
		space_release(space, &hull);
	return err;
}

void mapping_remove_all(struct space *space)
{
	struct taken taken = {.space = space};
	struct hull all;

	movable_end(space);
	space_forget(space, &all);
	empty_claim(space->range.start, space->range.end, &all, &taken);
	space_free(space);
}

/* ---- making ---- */

static s64 make_fixed(struct space *space, struct area *area, enum mapping_place place)
{
	struct hull hull;
	s64 err = space_add(space, area);

	if (err != -EEXIST)
		return err < 0 ? err : (s64)area->start;
	if (place == MAPPING_NO_REPLACE)
		err = space_claim(space, area->start, area->end, SPACE_MUST_BE_FREE, &hull);
	else
		err = claim_and_empty(space, area->start, area->end, &hull);
	if (err < 0)
		return err;
	space_settle(space, &hull, area);
	return (s64)area->start;
}

static u64 align_for(const struct space *space, const struct area *area)
{
	const u64 bytes = MAX(pt_level_size(area->level), space->align);

	/* Room for 2 MiB pages, if they are to be had. Other sizes are those of allocators, which
	   write a word at the start: a huge page there would often be cleared for nothing. */
	return !area->object && IS_ALIGNED(area->end - area->start, MIB(2)) ? MAX(bytes, MIB(2))
									    : bytes;
}

s64 mapping_make(struct space *space, struct area *area, enum mapping_place place)
{
	s64 start = promise(area);

	if (start == 0) {
		start = place == MAPPING_ANYWHERE ? space_place(space, area, align_for(space, area))
						  : make_fixed(space, area, place);
		if (space_failed(start))
			unpromise(area);
	}
	if (space_failed(start))
		vm_object_put(area->object);
	return start;
}

/* ---- changing ---- */

enum { RUNS_MAX = 16 };

/* A range without holes, whose areas are all busy, and the call's. */
struct run {
	u64 start, end;
	bool promised; /* are its pages, of zeros? */
};

struct changing {
	const struct area_change *how;
	struct taken taken;
	struct run run[RUNS_MAX];
	unsigned runs;
	int err; /* of change_run() */
};

/*
 * May the area be changed so? Not to be writable, where it is a shared mapping of an object that
 * cannot be written. Guards drop what is below them, so pages that others share have none.
 */
static int may_change(const struct area *area, const struct area_change *how)
{
	const bool guards = how->pages == CHANGE_TO_GUARDS || how->pages == CHANGE_NO_GUARDS;

	if (how->pages == CHANGE_RIGHTS && area->object && (area->flags & AREA_SHARED) &&
	    (how->rights & USER_RIGHT_WRITE) && !area->object->ops->can_write(area->object))
		return -EACCES;
	return guards && (area->flags & (AREA_SHARED | AREA_POOL)) ? -EINVAL : 0;
}

/*
 * Pages of zeros that a pool has promised stay, and are filled with zeros: nobody else could have
 * them in between.
 */
static int change_run(struct changing *c, const struct run *run)
{
	const struct space *space = c->taken.space;

	switch (c->how->pages) {
	case CHANGE_NO_PAGES:
		return 0;
	case CHANGE_RIGHTS:
		pages_protect(run->start, run->end, c->how->rights, &c->taken);
		return 0;
	case CHANGE_TO_GUARDS:
		pages_take(run->start, run->end, NULL, &c->taken);
		return pages_guard(space, run->start, run->end);
	case CHANGE_CONTENTS:
		if (run->promised)
			return pages_clear(space, run->start, run->end);
		pages_take(run->start, run->end, NULL, &c->taken);
		return 0;
	case CHANGE_NO_GUARDS:
		pages_unguard(space, run->start, run->end);
		return 0;
	}
	return 0;
}

/* The areas get their attributes, unless nothing is to change, and are no longer busy. */
static void put_back(const struct changing *c, u64 start, u64 end, bool nothing)
{
	const struct area_change *how = c->how;
	struct space *space = c->taken.space;
	struct area area;

	for (u64 at = start; at < end;) {
		area_tree_from(&space->tree, at, &area);
		at = area.end;
		area.flags &= (u16)~AREA_BUSY;
		if (!nothing) {
			area.flags = (u16)((area.flags & ~how->clear) | how->set);
			area.rights = how->pages == CHANGE_RIGHTS ? how->rights : area.rights;
			area.policy = how->policy ? *how->policy : area.policy;
		}
		space_put_back(space, &area);
	}
}

static void end_runs(struct changing *c, bool nothing)
{
	for (unsigned i = 0; i < c->runs && !nothing && c->err == 0; i++)
		c->err = change_run(c, &c->run[i]);
	taken_finish(&c->taken);
	for (unsigned i = 0; i < c->runs; i++)
		put_back(c, c->run[i].start, c->run[i].end, nothing);
	c->runs = 0;
}

static void add_to_runs(struct changing *c, const struct area *area)
{
	const struct run next = {area->start, area->end,
				 area_is_promised(area) && !area_has_contents(area)};
	struct run *last = c->runs > 0 ? &c->run[c->runs - 1] : NULL;

	if (last && last->end == next.start && last->promised == next.promised) {
		last->end = next.end;
		return;
	}
	if (c->runs == RUNS_MAX)
		end_runs(c, false);
	c->run[c->runs++] = next;
}

s64 mapping_change(struct space *space, u64 start, u64 end, const struct area_change *how)
{
	struct changing c = {.how = how, .taken = {.space = space, .areas_stay = true}};
	struct area area;
	s64 err = 0;

	c.taken.spare = how->spare ? *how->spare : NULL;
	for (;;) {
		if (how->pages >= CHANGE_CONTENTS)
			err = space_take_to_release(space, &start, end, &area);
		else
			err = space_take(space, &start, end, &area);
		if (err <= 0)
			break;
		err = may_change(&area, how);
		if (err < 0) {
			space_put_back(space, &area);
			break;
		}
		add_to_runs(&c, &area);
	}
	end_runs(&c, err < 0 && how->whole);
	if (how->spare)
		*how->spare = c.taken.spare;
	return c.err < 0 ? c.err : err;
}

s64 mapping_protect(struct space *space, u64 start, u64 end, u8 rights)
{
	if (space_mapped_until(space, start, end) < end)
		return -ENOMEM;
	return mapping_change(space, start, end,
			      &(struct area_change){.pages = CHANGE_RIGHTS, .rights = rights});
}

s64 mapping_populate(struct space *space, u64 start, u64 end, bool write)
{
	for (u64 at = start; at < end; at += PAGE_SIZE) {
		enum pt_level level = PT_PAGE;
		struct area area;
		pte_t pte;
		const enum touch touch = space_touch(space, at, write ? USER_WRITE : USER_READ);

		if (touch != TOUCH_DONE)
			return touch == TOUCH_NO_RIGHT                         ? -EINVAL
			       : touch == TOUCH_BEYOND || touch == TOUCH_GUARD ? -EFAULT
									       : -ENOMEM;
		if (space->interrupted && space->interrupted())
			return -EINTR;
		if (!space_pin(space, at, PT_PAGE, &area))
			return -ENOMEM;
		if (pages_find(space, at, &pte, &level))
			at = ALIGN_DOWN(at, pt_level_size(level)) + pt_level_size(level) -
			     PAGE_SIZE;
		space_unpin(space);
	}
	return 0;
}
