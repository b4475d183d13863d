/*
 * Calls that change or describe what is mapped: mprotect, madvise, mincore, msync, mlock. Numbers:
 * madvise(2).
 */
#include "mm/vm/space.h"
#include "kernel/program/calls.h"
#include "mm/vm/collapse.h"
#include "kernel/program/file.h"
#include "mm/vm/mapping.h"
#include "mm/vm/pages.h"
#include "kernel/program/thread.h"
#include "kernel/program/program_space.h"

/* The range of a call: start and size of its arguments. 1: go on. 0: empty. */
static s64 range_of(const struct call_args *args, u64 *start, u64 *end)
{
	*start = args->arg[0];
	*end = ALIGN_UP(*start + args->arg[1], PAGE_SIZE);
	if (!IS_ALIGNED(*start, PAGE_SIZE))
		return -EINVAL;
	if (args->arg[1] == 0)
		return 0;
	return args->arg[1] <= USER_END && mapping_range_ok(&program_space, *start, *end) ? 1
											  : -ENOMEM;
}

/* ---- mprotect ---- */

static s64 call_mprotect(const struct call_args *args)
{
	enum { GROWS = 0x03000000 };
	u64 start, end;
	const s64 go = range_of(args, &start, &end);

	if (args->arg[2] & ~(u64)(7 | GROWS))
		return -EINVAL;
	return go <= 0 ? go : mapping_protect(&program_space, start, end, (u8)(args->arg[2] & 7));
}
CALL(mprotect, 10);

/* ---- madvise ---- */

enum advice {
	MADV_NORMAL = 0,
	MADV_WILLNEED = 3,
	MADV_DONTNEED = 4,
	MADV_FREE = 8,
	MADV_REMOVE = 9,
	MADV_HUGEPAGE = 14,
	MADV_NOHUGEPAGE = 15,
	MADV_POPULATE_READ = 22,
	MADV_POPULATE_WRITE = 23,
	MADV_DONTNEED_LOCKED = 24,
	MADV_COLLAPSE = 25,
	MADV_LAST = 25,
};

/* Holes are skipped, and reported at the end, as Linux does. */
static s64 advise(u64 start, u64 end, const struct area_change *change)
{
	const s64 holes = space_cover(&program_space, start, end) ? 0 : -ENOMEM;
	const s64 err = mapping_change(&program_space, start, end, change);

	return err < 0 ? err : holes;
}

static s64 call_madvise(const struct call_args *args)
{
	static const struct area_change forget = {.pages = CHANGE_CONTENTS},
					huge = {.set = AREA_HUGE, .clear = AREA_SMALL},
					small = {.set = AREA_SMALL, .clear = AREA_HUGE};
	const u64 advice = args->arg[2];
	u64 start, end;
	const s64 go = range_of(args, &start, &end);

	if (go <= 0)
		return go;
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_DONTNEED_LOCKED:
	case MADV_FREE:
		return advise(start, end, &forget);
	case MADV_HUGEPAGE:
		return advise(start, end, &huge);
	case MADV_NOHUGEPAGE:
		return advise(start, end, &small);
	case MADV_POPULATE_READ:
	case MADV_POPULATE_WRITE:
		return mapping_populate(&program_space, start, end, advice == MADV_POPULATE_WRITE);
	case MADV_COLLAPSE:
		return collapse_range(&program_space, start, end);
	case MADV_REMOVE:
		return -ENOTSUP;
	default:
		/* advice that asks for nothing that a program could notice */
		if (advice > MADV_LAST)
			return -EINVAL;
		return space_cover(&program_space, start, end) ? 0 : -ENOMEM;
	}
}
CALL(madvise, 28);

/* ---- looking ---- */

static bool is_present(u64 addr)
{
	enum pt_level level;
	struct area area;
	bool present;
	pte_t pte;

	if (!space_pin(&program_space, addr, PT_PAGE, &area))
		return false;
	present = pages_find(&program_space, addr, &pte, &level);
	space_unpin(&program_space);
	return present;
}

static s64 call_mincore(const struct call_args *args)
{
	u64 start, end;
	const s64 go = range_of(args, &start, &end);

	if (go <= 0)
		return go;
	if (!space_cover(&program_space, start, end))
		return -ENOMEM;
	for (u64 at = start, to = args->arg[2]; at < end; at += PAGE_SIZE, to++) {
		if (thread_must_end(thread_current()))
			return -EINTR;
		const u8 present = is_present(at);

		if (user_write(to, &present, sizeof(present)) < 0)
			return -EFAULT;
	}
	return 0;
}
CALL(mincore, 27);

/* Memory is never written out, so there is nothing to wait for. */
static s64 call_msync(const struct call_args *args)
{
	u64 start, end;
	const s64 go = range_of(args, &start, &end);

	if (go <= 0)
		return go;
	return space_cover(&program_space, start, end) ? 0 : -ENOMEM;
}
CALL(msync, 26);

/* ---- mlock: pages never leave, so locking is bringing them ---- */

/* Lock or unlock the pages of a range, which has to be mapped. `bring`: all are there then. */
static s64 lock_range(u64 start, u64 size, bool bring)
{
	const u64 first = ALIGN_DOWN(start, PAGE_SIZE), end = ALIGN_UP(start + size, PAGE_SIZE);
	s64 err;

	if (size == 0)
		return 0;
	if (size > USER_END || !mapping_range_ok(&program_space, first, end) ||
	    !space_cover(&program_space, first, end))
		return -ENOMEM;
	err = bring ? mapping_populate(&program_space, first, end, false) : 0;
	return err < 0 && err != -EINTR ? -ENOMEM : err;
}

static s64 call_mlock(const struct call_args *args)
{
	return lock_range(args->arg[0], args->arg[1], true);
}
CALL(mlock, 149);

static s64 call_mlock2(const struct call_args *args)
{
	enum { ON_FAULT = 1 };

	if (args->arg[2] & ~(u64)ON_FAULT)
		return -EINVAL;
	return lock_range(args->arg[0], args->arg[1], !(args->arg[2] & ON_FAULT));
}
CALL(mlock2, 325);

static s64 call_munlock(const struct call_args *args)
{
	return lock_range(args->arg[0], args->arg[1], false);
}
CALL(munlock, 150);

static s64 call_mlockall(const struct call_args *args)
{
	return args->arg[0] == 0 || args->arg[0] > 7 ? -EINVAL : 0;
}
CALL(mlockall, 151);

static s64 call_munlockall(const struct call_args *args)
{
	return 0;
}
CALL(munlockall, 152);
