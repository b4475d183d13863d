/* Moving and resizing mappings: see move.h. */
#include "mm/vm/move.h"

#include <arch/atomic.h>

#include "mm/vm/mapping.h"
#include "mm/vm/pages.h"
#include "mm/vm/space.h"

/* The part of `area` from `start` on, as [to, to + size). Its object gets a reference. */
static struct area part_of(const struct area *area, u64 start, u64 to, u64 size)
{
	struct area part = *area;

	part.offset += start - area->start;
	part.start = to;
	part.end = to + size;
	vm_object_get(part.object);
	return part;
}

/* Make the busy mapping longer where it is. */
static s64 grow(struct space *space, const struct area *old, u64 new_end)
{
	struct area more;

	if (!mapping_range_ok(space, old->end, new_end))
		return -ENOMEM;
	more = part_of(old, old->end, old->end, new_end - old->end);
	return mapping_make(space, &more, MAPPING_NO_REPLACE);
}

/*
 * Move the pages of the busy mapping `old` to `moved`, which is busy as well, so a touch of either
 * waits. One round. Returns 0 or -ENOMEM. `old` is no longer busy then: gone, empty, or as it was.
 */
static s64 move_pages(struct space *space, const struct area *old, const struct area *moved,
		      enum move_old how)
{
	const u64 from = old->start, size = old->end - old->start,
		  new_size = moved->end - moved->start;
	struct taken taken = {.space = space};
	struct hull hull;
	s64 err = space_claim_taken(space, old, &hull);

	if (err < 0) {
		space_put_back(space, old);
		return err;
	}
	err = pages_move(from, moved->start, MIN(size, new_size), &taken);
	/* beyond the new size nothing was moved */
	if (err == 0)
		pages_take(from, from + size, &hull, &taken);
	taken_finish(&taken);
	if (err < 0 || how == MOVE_LEAVES) {
		space_settle(space, &hull, old);
		return err;
	}
	space_release(space, &hull);
	vm_object_put(old->object);
	return 0;
}

/* Move the busy mapping to [moved->start, moved->end), which is busy and empty. */
static s64 move_to(struct space *space, const struct area *old, const struct area *moved,
		   enum move_old how)
{
	struct area part = part_of(old, old->start, moved->start, moved->end - moved->start);
	const s64 err = move_pages(space, old, &part, how);

	space_put_back(space, &part);
	if (err < 0)
		mapping_remove(space, part.start, part.end);
	return err < 0 ? err : (s64)part.start;
}

/*
 * Is all of [start, end) in one area without pages of a pool? An area of which a call has made a
 * part busy is waited for, as it is one again afterwards. Returns 0, -EFAULT or -EINVAL. Another
 * thread may change the area at any time.
 */
static s64 await_one_area(struct space *space, u64 start, u64 end)
{
	for (;;) {
		const u64 seq = atomic_load_acquire(&space->tree.seq);
		struct area area, next;

		if (!area_tree_from(&space->tree, start, &area) || area.start > start)
			return -EFAULT;
		if (area.flags & AREA_BUSY)
			space_wait_settled(space, start);
		else if (area.end >= end)
			return area_page_bytes(&area) == PAGE_SIZE ? 0 : -EINVAL;
		else if (area_tree_from(&space->tree, area.end, &next) && next.start == area.end &&
			 (next.flags & AREA_BUSY))
			space_wait_settled(space, area.end);
		else if (atomic_load_acquire(&space->tree.seq) == seq)
			return -EFAULT;
	}
}

/*
 * Make the mapping [from, end) busy, which is all in one area. The range is the caller's from then
 * on, whatever other threads do.
 */
static s64 take_old(struct space *space, u64 from, u64 end, struct area *old)
{
	for (;;) {
		u64 at = from;
		s64 err = await_one_area(space, from, end);

		if (err)
			return err;
		err = space_take(space, &at, end, old);
		if (err < 0)
			return err;
		if (err > 0 && old->start == from && old->end == end &&
		    area_page_bytes(old) == PAGE_SIZE)
			return 0;
		if (err > 0) /* it was changed meanwhile */
			space_put_back(space, old);
	}
}

/* Both ranges are made busy, the lower one first (mm/vm/space.h). */
s64 mapping_move(struct space *space, u64 from, u64 old_size, u64 to, u64 new_size,
		 enum move_old how)
{
	struct area moved = {.start = to, .end = to + new_size, .flags = AREA_BUSY}, old;
	s64 err = 0, err_to = 0;

	if (!mapping_range_ok(space, to, to + new_size) ||
	    (to < from + old_size && from < to + new_size))
		return -EINVAL;
	err = await_one_area(space, from, from + old_size);
	if (err < 0)
		return err;
	if (to < from)
		err_to = mapping_make(space, &moved, MAPPING_FIXED);
	if (space_failed(err_to))
		return err_to;
	err = take_old(space, from, from + old_size, &old);
	if (err == 0 && to > from)
		err_to = mapping_make(space, &moved, MAPPING_FIXED);
	if (err == 0 && !space_failed(err_to))
		return move_to(space, &old, &moved, how);
	if (err == 0)
		space_put_back(space, &old);
	if (err < 0 && to < from) {
		moved.flags = 0;
		space_put_back(space, &moved);
		mapping_remove(space, to, to + new_size);
	}
	return err < 0 ? err : err_to;
}

/* Make the mapping larger, where it is or elsewhere. */
static s64 enlarge(struct space *space, u64 from, u64 old_size, u64 new_size, bool may_move)
{
	struct area old, moved = {.end = new_size, .flags = AREA_BUSY};
	s64 result = take_old(space, from, from + old_size, &old);

	if (result)
		return result;
	if (!space_failed(grow(space, &old, from + new_size)))
		result = (s64)from;
	else if (may_move)
		result = mapping_make(space, &moved, MAPPING_ANYWHERE);
	else
		result = -ENOMEM;
	if (space_failed(result) || (u64)result == from) {
		space_put_back(space, &old);
		return result;
	}
	moved.start = (u64)result;
	moved.end = moved.start + new_size;
	return move_to(space, &old, &moved, MOVE_UNMAPS);
}

s64 mapping_resize(struct space *space, u64 from, u64 old_size, u64 new_size, bool may_move)
{
	struct area old;
	s64 err = 0;

	if (new_size > old_size)
		return enlarge(space, from, old_size, new_size, may_move);
	if (!space_look(space, from, &old))
		return -EFAULT;
	if (new_size < old_size)
		err = mapping_remove(space, from + new_size, from + old_size);
	return err < 0 ? err : (s64)from;
}
