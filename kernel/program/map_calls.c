/* Calls that make, remove and move mappings: mmap, munmap, mremap. Numbers: mmap(2), mremap(2). */
#include "mm/vm/space.h"
#include "kernel/program/calls.h"
#include "kernel/program/file.h"
#include "mm/vm/mapping.h"
#include "mm/vm/move.h"
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

static s64 call_mremap(const struct call_args *args)
{
	const u64 from = args->arg[0], old_size = ALIGN_UP(args->arg[1], PAGE_SIZE),
		  new_size = ALIGN_UP(args->arg[2], PAGE_SIZE), flags = args->arg[3];

	if ((flags & ~(u64)(MREMAP_MAYMOVE | MREMAP_FIXED)) != 0 ||
	    ((flags & MREMAP_FIXED) && !(flags & MREMAP_MAYMOVE)) || args->arg[1] > USER_END ||
	    args->arg[2] > USER_END || new_size == 0 || !IS_ALIGNED(from, PAGE_SIZE) ||
	    !mapping_range_ok(&program_space, from, from + old_size))
		return -EINVAL;
	if (flags & MREMAP_FIXED)
		return mapping_move(&program_space, from, old_size, args->arg[4], new_size,
				    MOVE_UNMAPS);
	return mapping_resize(&program_space, from, old_size, new_size, flags & MREMAP_MAYMOVE);
}
CALL(mremap, 25);
