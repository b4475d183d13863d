/* Calls that make, remove and move mappings: mmap, munmap, mremap. Numbers: mmap(2), mremap(2). */
#include "kernel/program/areas.h"
#include "kernel/program/calls.h"
#include "kernel/program/file.h"
#include "kernel/program/mapping.h"
#include "kernel/program/pages.h"
#include "kernel/program/touch.h"

enum map_flags {
	MAP_SHARED = 1,
	MAP_PRIVATE = 2,
	MAP_SHARED_VALIDATE = 3,
	MAP_TYPE = 3,
	MAP_FIXED = 0x10,
	MAP_ANONYMOUS = 0x20,
	MAP_LOCKED = 0x2000,
	MAP_NORESERVE = 0x4000,
	MAP_POPULATE = 0x8000,
	MAP_HUGETLB = 0x40000,
	MAP_FIXED_NOREPLACE = 0x100000,
	MAP_HUGE_SHIFT = 26,
	MAP_HUGE_MASK = 63,
};

enum { PROT_ALL = USER_RIGHT_READ | USER_RIGHT_WRITE | USER_RIGHT_EXEC };

/* ---- mmap ---- */

/* Size of the pages asked for; 0: no such pages. */
static u64 pages_asked(u64 flags, u16 *area_flags)
{
	const u64 shift = flags >> MAP_HUGE_SHIFT & MAP_HUGE_MASK;

	if (!(flags & MAP_HUGETLB))
		return PAGE_SIZE;
	if (shift == 0 || shift == 21) {
		*area_flags |= AREA_POOL_2M;
		return MIB(2);
	}
	if (shift == 30) {
		*area_flags |= AREA_POOL_1G;
		return GIB(1);
	}
	return 0;
}

static int file_for(const struct call_args *args, struct area *area)
{
	const u64 flags = args->arg[3];

	if (flags & MAP_ANONYMOUS)
		return 0;
	if (flags & MAP_HUGETLB)
		return -EINVAL;
	area->offset = args->arg[5];
	if (!IS_ALIGNED(area->offset, PAGE_SIZE) ||
	    area->offset + (area->end - area->start) < area->offset)
		return -EINVAL;
	area->file = file_of((int)args->arg[4]);
	if (!area->file)
		return -EBADF;
	if ((flags & MAP_TYPE) != MAP_PRIVATE)
		area->flags |= AREA_SHARED;
	if (!file_can_map(area->file,
			  (area->flags & AREA_SHARED) && (area->rights & USER_RIGHT_WRITE))) {
		file_put(area->file);
		return -EACCES;
	}
	return 0;
}

static s64 call_mmap(const struct call_args *args)
{
	const u64 at = args->arg[0], flags = args->arg[3];
	const bool fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
	struct area area = {.rights = (u8)(args->arg[2] & PROT_ALL)};
	const u64 bytes = pages_asked(flags, &area.flags);
	u64 size;
	s64 start;
	int err;

	if (bytes == 0 || args->arg[1] == 0 || (flags & MAP_TYPE) == 0)
		return -EINVAL;
	if (args->arg[1] > USER_END)
		return -ENOMEM;
	size = ALIGN_UP(args->arg[1], bytes);
	if (fixed && !IS_ALIGNED(at, bytes))
		return -EINVAL;
	area.start = fixed ? at : ALIGN_DOWN(at, bytes);
	area.end = area.start + size;
	if (fixed && !mapping_range_ok(area.start, area.end))
		return at < USER_START ? -EPERM : -ENOMEM;
	if (flags & MAP_NORESERVE)
		area.flags |= AREA_NO_RESERVE;
	err = file_for(args, &area);
	if (err < 0)
		return err;
	start = mapping_make(&area, !fixed                        ? MAPPING_ANYWHERE
				    : flags & MAP_FIXED_NOREPLACE ? MAPPING_NO_REPLACE
								  : MAPPING_FIXED);
	if (start >= 0 && (flags & (MAP_POPULATE | MAP_LOCKED)) && area.rights)
		mapping_populate((u64)start, (u64)start + size, area.rights & USER_RIGHT_WRITE);
	return start;
}
CALL(mmap, 9);

static s64 call_munmap(const struct call_args *args)
{
	const u64 start = args->arg[0], end = ALIGN_UP(start + args->arg[1], PAGE_SIZE);

	if (args->arg[1] > USER_END || start >= USER_END || !IS_ALIGNED(start, PAGE_SIZE) ||
	    start >= end || end > USER_END)
		return -EINVAL;
	/* nothing is ever mapped below USER_START */
	return end <= USER_START ? 0 : mapping_remove(MAX(start, USER_START), end);
}
CALL(munmap, 11);

/* ---- mremap ---- */

enum { MREMAP_MAYMOVE = 1, MREMAP_FIXED = 2 };

/* The area that holds all of [start, end). */
static bool one_area(u64 start, u64 end, struct area *area)
{
	return area_tree_from(&program_areas.tree, start, area) && area->start <= start &&
	       area->end >= end && !(area->flags & AREA_BUSY);
}

/* The part of `area` from `start` on, as [to, to + size). Its file gets a reference. */
static struct area part_of(const struct area *area, u64 start, u64 to, u64 size)
{
	struct area part = *area;

	part.offset += start - area->start;
	part.start = to;
	part.end = to + size;
	if (part.file)
		file_get(part.file);
	return part;
}

/* Make the mapping longer where it is. */
static s64 grow(const struct area *area, u64 old_end, u64 new_end)
{
	struct area more;

	if (area->end != old_end || !mapping_range_ok(old_end, new_end))
		return -ENOMEM;
	more = part_of(area, old_end, old_end, new_end - old_end);
	return mapping_make(&more, MAPPING_NO_REPLACE);
}

/*
 * Move [from, from + old_size) to a new place. The new area is busy until the pages are there, so a
 * touch waits; the old range is claimed meanwhile. One round. If memory runs out, the old mapping
 * stays.
 */
static s64 move(const struct area *area, u64 from, u64 old_size, u64 to, u64 new_size,
		enum mapping_place place)
{
	struct area moved = part_of(area, from, to, new_size);
	struct area old = part_of(area, from, from, old_size);
	struct pages_taken taken = {.tables = NULL};
	struct hull hull;
	s64 start, err;

	moved.flags |= AREA_BUSY;
	start = mapping_make(&moved, place);
	if (start < 0) {
		if (old.file)
			file_put(old.file);
		return start;
	}
	moved.start = (u64)start;
	moved.end = moved.start + new_size;
	/* the range is one area, so a claim is whole or has not begun */
	err = areas_claim(&program_areas, from, from + old_size, AREAS_REPLACE, &hull);
	if (err == 0) {
		err = pages_move(from, moved.start, MIN(old_size, new_size), &taken);
		/* beyond the new size nothing was moved */
		if (err == 0)
			pages_take(from, from + old_size, &hull, &taken);
		pages_finish(&taken);
		if (err == 0)
			areas_release(&program_areas, &hull);
		else
			areas_settle(&program_areas, &hull, &old);
	}
	moved.flags &= (u16)~AREA_BUSY;
	areas_put_back(&program_areas, &moved);
	if (err < 0)
		mapping_remove(moved.start, moved.end);
	else if (old.file)
		file_put(old.file);
	return err < 0 ? err : start;
}

static s64 call_mremap(const struct call_args *args)
{
	const u64 from = args->arg[0], old_size = ALIGN_UP(args->arg[1], PAGE_SIZE),
		  new_size = ALIGN_UP(args->arg[2], PAGE_SIZE), flags = args->arg[3],
		  to = args->arg[4];
	struct area area;
	s64 grown;

	if ((flags & ~(u64)(MREMAP_MAYMOVE | MREMAP_FIXED)) != 0 ||
	    ((flags & MREMAP_FIXED) && !(flags & MREMAP_MAYMOVE)) || args->arg[1] > USER_END ||
	    args->arg[2] > USER_END || new_size == 0 || !IS_ALIGNED(from, PAGE_SIZE) ||
	    !mapping_range_ok(from, from + old_size))
		return -EINVAL;
	if (!one_area(from, from + old_size, &area))
		return -EFAULT;
	if (area.flags & (AREA_POOL_2M | AREA_POOL_1G))
		return -EINVAL;
	if (flags & MREMAP_FIXED) {
		if (!mapping_range_ok(to, to + new_size) ||
		    (to < from + old_size && from < to + new_size))
			return -EINVAL;
		return move(&area, from, old_size, to, new_size, MAPPING_FIXED);
	}
	if (new_size == old_size)
		return (s64)from;
	if (new_size < old_size) {
		const s64 err = mapping_remove(from + new_size, from + old_size);

		return err < 0 ? err : (s64)from;
	}
	grown = grow(&area, from + old_size, from + new_size);
	if (grown >= 0)
		return (s64)from;
	if (!(flags & MREMAP_MAYMOVE))
		return -ENOMEM;
	return move(&area, from, old_size, 0, new_size, MAPPING_ANYWHERE);
}
CALL(mremap, 25);
