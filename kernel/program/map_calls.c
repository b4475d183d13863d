/* Calls that make, remove and move mappings: mmap, munmap, mremap. Numbers: mmap(2), mremap(2). */
#include <arch/atomic.h>

#include "kernel/core/wait.h"
#include "kernel/program/calls.h"
#include "kernel/program/commit.h"
#include "kernel/program/cut.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "mm/pools.h"
#include "mm/vm/mapping.h"
#include "mm/vm/movable.h"
#include "mm/vm/move.h"
#include "mm/vm/pages.h"
#include "kernel/program/program_space.h"

enum map_flags {
	MAP_SHARED = 1,
	MAP_PRIVATE = 2,
	MAP_SHARED_VALIDATE = 3,
	MAP_TYPE = 0xf,
	MAP_FIXED = 0x10,
	MAP_ANONYMOUS = 0x20,
	MAP_32BIT = 0x40,
	MAP_IGNORED = 0x31900, /* GROWSDOWN, DENYWRITE, EXECUTABLE, NONBLOCK, STACK */
	MAP_LOCKED = 0x2000,
	MAP_NORESERVE = 0x4000,
	MAP_POPULATE = 0x8000,
	MAP_HUGETLB = 0x40000,
	MAP_FIXED_NOREPLACE = 0x100000,
	/* those that MAP_SHARED_VALIDATE knows for files in memory */
	MAP_VALID = MAP_TYPE | MAP_FIXED | MAP_32BIT | MAP_LOCKED | MAP_NORESERVE | MAP_POPULATE |
		    MAP_IGNORED
};

enum { PROT_ALL = USER_RIGHT_READ | USER_RIGHT_WRITE | USER_RIGHT_EXEC };

/* ---- mmap ---- */

/* Size of the pages that the call or its file asks for; 0: no such pages. */
static u64 pages_asked(u64 flags, const struct file *file, struct area *area)
{
	const enum pt_level level = file                  ? inode_level(file->inode)
				    : flags & MAP_HUGETLB ? huge_level(flags)
							  : PT_PAGE;

	if (level == PT_PAGE)
		return flags & MAP_HUGETLB ? 0 : PAGE_SIZE;
	area->flags |= AREA_POOL | AREA_WHOLE;
	area->level = level;
	return pt_level_size(level);
}

/*
 * The pool promises the pages of a shared mapping to the file, and those of a private one to the
 * area. As on Linux, a mapping that may write makes a file of huge pages long enough for itself. If
 * the limits refuse the mapping, the file stays as it was.
 */
static int show_huge(struct inode *inode, struct area *area, u64 flags)
{
	const enum contents_extend extend =
		(area->rights & USER_RIGHT_WRITE) && !file_has_seal(inode, SEAL_GROW)
			? CONTENTS_EXTEND
			: CONTENTS_KEEP_SIZE;
	const u64 size = area->end - area->start;
	struct commit commit;
	int err;

	area->flags |= commit_flags(area, flags & MAP_NORESERVE);
	err = commit_ask(&commit, area, flags & MAP_FIXED);
	if (err < 0)
		return err;
	commit_made(&commit);
	if ((area->flags & AREA_SHARED) && !(flags & MAP_NORESERVE))
		err = contents_promise(&inode->contents, area->offset, size, extend);
	else if (extend == CONTENTS_EXTEND)
		contents_extend(&inode->contents, area->offset + size);
	area->flags |= area->flags & AREA_SHARED ? AREA_NO_RESERVE : 0;
	return err;
}

/* Have the area show the file of the call; /dev/zero stands for memory without a file. */
static int file_for(const struct call_args *args, struct file *file, struct area *area)
{
	const u64 flags = args->arg[3], type = flags & MAP_TYPE, offset = args->arg[5];
	int err;

	if (type != MAP_PRIVATE)
		area->flags |= AREA_SHARED;
	if (!file)
		return type == MAP_SHARED || type == MAP_PRIVATE ? 0 : -EINVAL;
	if (type == 0 || type > MAP_SHARED_VALIDATE)
		return -EINVAL;
	if (type == MAP_SHARED_VALIDATE && (flags & ~(u64)MAP_VALID))
		return -ENOTSUP;
	if (!file_is_zeros(file) && offset > CONTENTS_MAX - (area->end - area->start))
		return -EOVERFLOW;
	err = file_map_error(file, area->flags & AREA_SHARED, area->rights & USER_RIGHT_WRITE);
	if (err < 0 || file_is_zeros(file))
		return err;
	area->offset = offset;
	if (area->level > PT_PAGE)
		err = show_huge(file->inode, area, flags);
	if (err == 0)
		vm_object_get(area->object = file_object(file));
	return err;
}

/* mapping_make(), within the program's limits. */
static s64 make(struct area *area, enum mapping_place place)
{
	struct commit commit;
	s64 start = commit_ask(&commit, area, place == MAPPING_FIXED);

	if (start < 0) {
		vm_object_put(area->object);
		return start;
	}
	start = mapping_make(&program_space, area, place);
	commit_made(&commit);
	return start;
}

/*
 * MAP_32BIT: the place asked for, or the lowest free one of the second GiB, as Linux has it for
 * code that jumps by 31 bits. Each try takes a reference to the object.
 */
static s64 make_low(struct area *area, u64 align)
{
	const u64 size = area->end - area->start;
	u64 asked = area->end <= GIB(2) ? area->start : 0;
	struct vm_object *object = area->object;
	s64 start = -ENOMEM;
	struct area found;

	for (u64 at = asked ? asked : GIB(1); at + size <= GIB(2) && start < 0;
	     at = asked ? GIB(1) : ALIGN_UP(found.end, align), asked = 0) {
		if (space_next(&program_space, at, &found) && found.start < at + size)
			continue;
		area->start = at;
		area->end = found.end = at + size;
		vm_object_get(object);
		start = make(area, MAPPING_NO_REPLACE);
	}
	vm_object_put(object);
	return start;
}

static s64 map(const struct call_args *args, struct file *file)
{
	const u64 at = args->arg[0], flags = args->arg[3];
	const bool fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
	struct area area = {.rights = (u8)(args->arg[2] & PROT_ALL)}, found;
	const u64 bytes = pages_asked(flags, file, &area);
	s64 start;

	if (bytes == 0 || args->arg[1] == 0 || !IS_ALIGNED(args->arg[5], file ? bytes : PAGE_SIZE))
		return -EINVAL;
	if (args->arg[1] > USER_END)
		return -ENOMEM;
	if (fixed && !IS_ALIGNED(at, bytes))
		return -EINVAL;
	area.start =
		fixed || at == 0 ? at : MAX(ALIGN_DOWN(at, bytes), ALIGN_UP(USER_START, bytes));
	area.end = area.start + ALIGN_UP(args->arg[1], bytes);
	if (fixed && !mapping_range_ok(&program_space, area.start, area.end))
		return at < USER_START ? -EPERM : -ENOMEM;
	if (file && (flags & MAP_FIXED_NOREPLACE) &&
	    space_next(&program_space, area.start, &found) && found.start < area.end)
		return -EEXIST; /* before the file grows */
	start = file_for(args, file, &area);
	if (start < 0)
		return start;
	area.flags |= commit_flags(&area, flags & MAP_NORESERVE);
	if (!fixed && (flags & MAP_32BIT))
		start = make_low(&area, bytes);
	else
		start = make(&area, !fixed                        ? MAPPING_ANYWHERE
				    : flags & MAP_FIXED_NOREPLACE ? MAPPING_NO_REPLACE
								  : MAPPING_FIXED);
	if (start >= 0 && (flags & (MAP_POPULATE | MAP_LOCKED)) && area.rights)
		mapping_populate(&program_space, (u64)start,
				 (u64)start + ALIGN_UP(args->arg[1], bytes),
				 area.rights & USER_RIGHT_WRITE);
	return start;
}

/* Are pages of a pool asked for, which may make more of them? */
static bool pool_may_make(u64 flags, const struct file *file)
{
	struct area area = {0};
	struct pool_usage usage = {0};

	if (pages_asked(flags, file, &area) > PAGE_SIZE)
		pool_usage(pages_pool(area.level), &usage);
	return usage.overcommit > 0;
}

s64 call_mmap(const struct call_args *args)
{
	const u64 flags = args->arg[3];
	struct file *file = flags & MAP_ANONYMOUS ? NULL : file_of((int)args->arg[4]);
	s64 result = file || flags & MAP_ANONYMOUS ? map(args, file) : -EBADF;

	/* the program's own pages may be in the way of one that the pool makes */
	if (result == -ENOMEM && pool_may_make(flags, file)) {
		movable_announce(&program_space);
		result = map(args, file);
	}
	file_put(file);
	return result;
}

s64 call_munmap(const struct call_args *args)
{
	const u64 start = args->arg[0], end = ALIGN_UP(start + args->arg[1], PAGE_SIZE);

	if (args->arg[1] > USER_END || start >= USER_END || !IS_ALIGNED(start, PAGE_SIZE) ||
	    start >= end || end > USER_END)
		return -EINVAL;
	/* nothing is ever mapped below USER_START */
	return end <= USER_START ? 0 : mapping_remove(&program_space, MAX(start, USER_START), end);
}

/* ---- mremap ---- */

enum { MREMAP_MAYMOVE = 1, MREMAP_FIXED = 2, MREMAP_DONTUNMAP = 4, MREMAP_ALL = 7 };

/* The file of the shared mapping at `from`, once more. Memory without a file has one place. */
static s64 show_again(u64 from, u64 to, u64 size, u64 flags)
{
	struct area area;
	int err;

	if (!space_pin(&program_space, from, PT_PAGE, &area))
		return -EFAULT;
	err = !(area.flags & AREA_SHARED) || !area.object || area.level > PT_PAGE ? -EINVAL
	      : !(flags & MREMAP_MAYMOVE)                                         ? -ENOMEM
										  : 0;
	if (err == 0)
		vm_object_get(area.object);
	space_unpin(&program_space);
	if (err < 0)
		return err;
	area.offset += from - area.start;
	area.start = flags & MREMAP_FIXED ? to : 0;
	area.end = area.start + size;
	return mapping_make(&program_space, &area,
			    flags & MREMAP_FIXED ? MAPPING_FIXED : MAPPING_ANYWHERE);
}

/* The pages go to another place, and the old one stays, empty. */
static s64 leave(u64 from, u64 size, u64 to, u64 flags)
{
	struct area place = {.end = size};
	s64 result;

	if (flags & MREMAP_FIXED)
		return mapping_move(&program_space, from, size, to, size, MOVE_LEAVES);
	result = mapping_make(&program_space, &place, MAPPING_ANYWHERE);
	if (space_failed(result))
		return result;
	to = (u64)result;
	result = mapping_move(&program_space, from, size, to, size, MOVE_LEAVES);
	if (space_failed(result))
		mapping_remove(&program_space, to, to + size);
	return result;
}

static s64 remap(u64 from, u64 old_size, u64 to, u64 new_size, u64 flags)
{
	if (old_size == 0)
		return show_again(from, to, new_size, flags);
	if (flags & MREMAP_DONTUNMAP)
		return leave(from, old_size, to, flags);
	if (flags & MREMAP_FIXED)
		return mapping_move(&program_space, from, old_size, to, new_size, MOVE_UNMAPS);
	return mapping_resize(&program_space, from, old_size, new_size, flags & MREMAP_MAYMOVE);
}

s64 call_mremap(const struct call_args *args)
{
	const u64 from = args->arg[0], old_size = ALIGN_UP(args->arg[1], PAGE_SIZE),
		  new_size = ALIGN_UP(args->arg[2], PAGE_SIZE), flags = args->arg[3],
		  to = args->arg[4];
	struct commit commit;
	struct area more;
	s64 result;

	if ((flags & ~(u64)MREMAP_ALL) != 0 ||
	    ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) && !(flags & MREMAP_MAYMOVE)) ||
	    ((flags & MREMAP_DONTUNMAP) && args->arg[1] != args->arg[2]) || new_size == 0 ||
	    args->arg[2] > USER_END || !IS_ALIGNED(from, PAGE_SIZE))
		return -EINVAL;
	if (!space_look(&program_space, from, &more) || args->arg[1] > USER_END)
		return -EFAULT;
	if ((flags & MREMAP_FIXED) && !mapping_range_ok(&program_space, to, to + new_size))
		return to < USER_START && IS_ALIGNED(to, PAGE_SIZE) && new_size <= USER_END - to
			       ? -EPERM
			       : -EINVAL;
	more.start = 0;
	more.end = flags & MREMAP_DONTUNMAP ? new_size : saturating_sub(new_size, old_size);
	result = commit_ask(&commit, &more, false);
	if (result < 0)
		return result;
	/* a busy area, the place of a move, may show a file by the time that it is moved */
	wait_turn(&file_cut_turn, "a file that another thread cuts");
	result = remap(from, old_size, to, new_size, flags);
	atomic_store_release(&file_cut_turn, 0);
	commit_made(&commit);
	return result;
}
