/* Calls that make, remove and move mappings: mmap, munmap, mremap. Numbers: mmap(2), mremap(2). */
#include "mm/vm/space.h"
#include "kernel/program/calls.h"
#include "kernel/program/file.h"
#include "mm/vm/mapping.h"
#include "mm/vm/pages.h"
#include "kernel/program/program_space.h"

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
static u64 pages_asked(u64 flags, struct area *area)
{
	const u64 shift = flags >> MAP_HUGE_SHIFT & MAP_HUGE_MASK;

	if (!(flags & MAP_HUGETLB))
		return PAGE_SIZE;
	area->flags |= AREA_POOL | AREA_WHOLE;
	if (shift == 0 || shift == 21) {
		area->level = PT_PMD;
		return MIB(2);
	}
	if (shift == 30) {
		area->level = PT_PUD;
		return GIB(1);
	}
	return 0;
}

static int file_for(const struct call_args *args, struct area *area)
{
	const u64 flags = args->arg[3];
	struct file *file;

	if (flags & MAP_ANONYMOUS)
		return 0;
	if (flags & MAP_HUGETLB)
		return -EINVAL;
	area->offset = args->arg[5];
	if (!IS_ALIGNED(area->offset, PAGE_SIZE) ||
	    area->offset + (area->end - area->start) < area->offset)
		return -EINVAL;
	file = file_of((int)args->arg[4]);
	if (!file)
		return -EBADF;
	if ((flags & MAP_TYPE) != MAP_PRIVATE)
		area->flags |= AREA_SHARED;
	if (!file_can_map(file, (area->flags & AREA_SHARED) && (area->rights & USER_RIGHT_WRITE))) {
		file_put(file);
		return -EACCES;
	}
	area->object = file_object(file);
	return 0;
}

static s64 call_mmap(const struct call_args *args)
{
	const u64 at = args->arg[0], flags = args->arg[3];
	const bool fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
	struct area area = {.rights = (u8)(args->arg[2] & PROT_ALL)};
	const u64 bytes = pages_asked(flags, &area);
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
	if (fixed && !mapping_range_ok(&program_space, area.start, area.end))
		return at < USER_START ? -EPERM : -ENOMEM;
	if (flags & MAP_NORESERVE)
		area.flags |= AREA_NO_RESERVE;
	err = file_for(args, &area);
	if (err < 0)
		return err;
	start = mapping_make(&program_space, &area,
			     !fixed                        ? MAPPING_ANYWHERE
			     : flags & MAP_FIXED_NOREPLACE ? MAPPING_NO_REPLACE
							   : MAPPING_FIXED);
	if (start >= 0 && (flags & (MAP_POPULATE | MAP_LOCKED)) && area.rights)
		mapping_populate(&program_space, (u64)start, (u64)start + size,
				 area.rights & USER_RIGHT_WRITE);
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
	return end <= USER_START ? 0 : mapping_remove(&program_space, MAX(start, USER_START), end);
}
CALL(munmap, 11);

/* ---- mremap ---- */

enum { MREMAP_MAYMOVE = 1, MREMAP_FIXED = 2 };

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
static s64 grow(const struct area *old, u64 new_end)
{
	struct area more;

	if (!mapping_range_ok(&program_space, old->end, new_end))
		return -ENOMEM;
	more = part_of(old, old->end, old->end, new_end - old->end);
	return mapping_make(&program_space, &more, MAPPING_NO_REPLACE);
}

/*
 * Move the pages of the busy mapping `old` to `moved`, which is busy as well, so a touch of either
 * waits. One round. Returns 0 or -ENOMEM. `old` is no longer busy then: it is gone, or as it was.
 */
static s64 move_pages(const struct area *old, const struct area *moved)
{
	const u64 from = old->start, size = old->end - old->start,
		  new_size = moved->end - moved->start;
	struct taken taken = {.space = &program_space};
	struct hull hull;
	s64 err = space_claim_taken(&program_space, old, &hull);

	if (err < 0) {
		space_put_back(&program_space, old);
		return err;
	}
	err = pages_move(from, moved->start, MIN(size, new_size), &taken);
	/* beyond the new size nothing was moved */
	if (err == 0)
		pages_take(from, from + size, &hull, &taken);
	taken_finish(&taken);
	if (err < 0) {
		space_settle(&program_space, &hull, old);
		return err;
	}
	space_release(&program_space, &hull);
	vm_object_put(old->object);
	return 0;
}

/* Move the busy mapping to [moved->start, moved->end), which is busy and empty. */
static s64 move_to(const struct area *old, const struct area *moved)
{
	struct area part = part_of(old, old->start, moved->start, moved->end - moved->start);
	const s64 err = move_pages(old, &part);

	space_put_back(&program_space, &part);
	if (err < 0)
		mapping_remove(&program_space, part.start, part.end);
	return err < 0 ? err : (s64)part.start;
}

/*
 * Make the mapping [from, end) busy, which is all in one area. The range is the caller's from then
 * on, whatever other threads do.
 */
static s64 take_old(u64 from, u64 end, struct area *old)
{
	u64 at = from;
	const int taken = space_take(&program_space, &at, end, old);

	if (taken <= 0)
		return taken < 0 ? taken : -EFAULT;
	if (old->start == from && old->end == end && area_page_bytes(old) == PAGE_SIZE)
		return 0;
	space_put_back(&program_space, old);
	return area_page_bytes(old) == PAGE_SIZE ? -EFAULT : -EINVAL;
}

/* Is all of [start, end) in one area? Another thread may change it at any time. */
static bool is_one_area(u64 start, u64 end)
{
	struct area area;

	return area_tree_from(&program_space.tree, start, &area) && area.start <= start &&
	       area.end >= end;
}

/* Both ranges are made busy, the lower one first (mm/vm/space.h). */
static s64 move_fixed(u64 from, u64 old_size, u64 to, u64 new_size)
{
	struct area moved = {.start = to, .end = to + new_size, .flags = AREA_BUSY}, old;
	s64 err = 0, err_to = 0;

	if (!mapping_range_ok(&program_space, to, to + new_size) ||
	    (to < from + old_size && from < to + new_size))
		return -EINVAL;
	if (!is_one_area(from, from + old_size))
		return -EFAULT;
	if (to < from)
		err_to = mapping_make(&program_space, &moved, MAPPING_FIXED);
	if (err_to < 0)
		return err_to;
	err = take_old(from, from + old_size, &old);
	if (err == 0 && to > from)
		err_to = mapping_make(&program_space, &moved, MAPPING_FIXED);
	if (err == 0 && err_to >= 0)
		return move_to(&old, &moved);
	if (err == 0)
		space_put_back(&program_space, &old);
	if (err < 0 && to < from) {
		moved.flags = 0;
		space_put_back(&program_space, &moved);
		mapping_remove(&program_space, to, to + new_size);
	}
	return err < 0 ? err : err_to;
}

/* Make the mapping larger, where it is or elsewhere. */
static s64 enlarge(u64 from, u64 old_size, u64 new_size, bool may_move)
{
	struct area old, moved = {.end = new_size, .flags = AREA_BUSY};
	s64 result = take_old(from, from + old_size, &old);

	if (result < 0)
		return result;
	result = grow(&old, from + new_size);
	if (result >= 0)
		result = (s64)from;
	else if (may_move)
		result = mapping_make(&program_space, &moved, MAPPING_ANYWHERE);
	else
		result = -ENOMEM;
	if (result < 0 || (u64)result == from) {
		space_put_back(&program_space, &old);
		return result;
	}
	moved.start = (u64)result;
	moved.end = moved.start + new_size;
	return move_to(&old, &moved);
}

static s64 call_mremap(const struct call_args *args)
{
	const u64 from = args->arg[0], old_size = ALIGN_UP(args->arg[1], PAGE_SIZE),
		  new_size = ALIGN_UP(args->arg[2], PAGE_SIZE), flags = args->arg[3];
	struct area old;
	s64 err;

	if ((flags & ~(u64)(MREMAP_MAYMOVE | MREMAP_FIXED)) != 0 ||
	    ((flags & MREMAP_FIXED) && !(flags & MREMAP_MAYMOVE)) || args->arg[1] > USER_END ||
	    args->arg[2] > USER_END || new_size == 0 || !IS_ALIGNED(from, PAGE_SIZE) ||
	    !mapping_range_ok(&program_space, from, from + old_size))
		return -EINVAL;
	if (flags & MREMAP_FIXED)
		return move_fixed(from, old_size, args->arg[4], new_size);
	if (new_size > old_size)
		return enlarge(from, old_size, new_size, flags & MREMAP_MAYMOVE);
	err = take_old(from, from + old_size, &old);
	if (err < 0)
		return err;
	space_put_back(&program_space, &old);
	if (new_size < old_size)
		err = mapping_remove(&program_space, from + new_size, from + old_size);
	return err < 0 ? err : (s64)from;
}
CALL(mremap, 25);
