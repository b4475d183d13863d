/*
 * Calls that change or describe what is mapped: mprotect, madvise, mincore, msync, mlock. Numbers:
 * madvise(2).
 */
#include "kernel/program/calls.h"
#include "kernel/program/commit.h"
#include "kernel/program/cut.h"
#include "mm/vm/collapse.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "mm/vm/mapping.h"
#include "mm/vm/pages.h"
#include "kernel/program/layout.h"
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

enum { PROT_SEM = 8, PROT_GROWSDOWN = 0x01000000, PROT_GROWSUP = 0x02000000 };

static s64 protect(u64 start, u64 end, u8 rights)
{
	const u64 stop = space_mapped_until(&program_space, start, end);
	const u16 flags = rights & USER_RIGHT_WRITE ? AREA_COMMIT : 0;
	struct commit commit;
	s64 err = commit_ask_rights(&commit, start, stop, rights);

	if (err == 0) {
		err = mapping_change(&program_space, start, stop,
				     &(struct area_change){.pages = CHANGE_RIGHTS,
							   .rights = rights,
							   .set = flags});
		commit_made(&commit);
	}
	return err == 0 && stop < end ? -ENOMEM : err;
}

/* Only the first thread's stack is a mapping that grows, and all of it is mapped from the start. */
s64 call_mprotect(const struct call_args *args)
{
	u64 start, end;
	s64 go = range_of(args, &start, &end);
	u64 rights = args->arg[2];
	struct area area;

	if ((rights & PROT_GROWSUP) && (rights & PROT_GROWSDOWN))
		return -EINVAL;
	if (go <= 0)
		return go;
	if (rights & ~(u64)(7 | PROT_SEM | PROT_GROWSDOWN | PROT_GROWSUP))
		return -EINVAL;
	if (rights & (PROT_GROWSUP | PROT_GROWSDOWN)) {
		if (!space_look(&program_space, start, &area))
			return -ENOMEM;
		if ((rights & PROT_GROWSUP) || !layout_in_stack(start))
			return -EINVAL;
		start = area.start;
	}
	return protect(start, end, (u8)(rights & 7));
}

/* ---- madvise ---- */

enum advice {
	MADV_DONTNEED = 4,
	MADV_FREE = 8,
	MADV_REMOVE = 9,
	MADV_HUGEPAGE = 14,
	MADV_NOHUGEPAGE = 15,
	MADV_WIPEONFORK = 18,
	MADV_POPULATE_READ = 22,
	MADV_POPULATE_WRITE = 23,
	MADV_DONTNEED_LOCKED = 24,
	MADV_COLLAPSE = 25,
	MADV_GUARD_INSTALL = 102,
	MADV_GUARD_REMOVE = 103,
};

/*
 * Advice for an area: 1 is followed, 0 has nothing to do. Shared memory without a file belongs to
 * all who share it, so MADV_DONTNEED leaves it, and MADV_REMOVE makes it zero.
 */
static int takes_advice(const struct area *area, u64 advice)
{
	const bool shared = area->flags & AREA_SHARED;

	switch (advice) {
	case MADV_DONTNEED:
	case MADV_DONTNEED_LOCKED:
		return area->object || !shared;
	case MADV_FREE:
		return area->object || shared || (area->flags & AREA_POOL) ? -EINVAL : 1;
	case MADV_WIPEONFORK:
		return area->object || shared ? -EINVAL : 1;
	case MADV_REMOVE:
		if (!area->object && !shared)
			return -EINVAL;
		return shared ? 1 : -EACCES;
	default:
		return 1;
	}
}

/* Where the first area is that does not take the advice, and why; `end` and 1 if there is none. */
static u64 taken_until(u64 at, u64 end, u64 advice, struct area *area, int *takes)
{
	*takes = 1;
	while (at < end && space_next(&program_space, at, area) && area->start < end) {
		*takes = takes_advice(area, advice);
		if (*takes <= 0)
			return MAX(at, area->start);
		at = area->end;
	}
	return end;
}

static const struct area_change to_zeros = {.pages = CHANGE_CONTENTS},
				to_guards = {.pages = CHANGE_TO_GUARDS},
				no_guards = {.pages = CHANGE_NO_GUARDS},
				to_huge = {.set = AREA_HUGE, .clear = AREA_SMALL},
				to_small = {.set = AREA_SMALL, .clear = AREA_HUGE};

/*
 * The bytes of files become zero, and their pages are freed, as far as the file can: a page of
 * FILES= needs memory to be other than it was.
 */
static s64 remove_contents(u64 start, u64 end)
{
	struct area area;
	s64 err = 0;
	u64 stop;

	for (u64 at = start; at < end && err == 0 && space_next(&program_space, at, &area);
	     at = stop) {
		at = MAX(at, area.start);
		stop = MIN(area.end, end);
		if (at >= end || !space_pin(&program_space, at, PT_PAGE, &area))
			continue;
		stop = MIN(area.end, end);
		vm_object_get(area.object);
		space_unpin(&program_space);
		err = !area.object ? mapping_change(&program_space, at, stop, &to_zeros)
		      : area.object->ops->can_write(area.object)
			      ? file_punch(file_of_object(area.object)->inode,
					   area.offset + (at - area.start), stop - at)
			      : -EACCES;
		vm_object_put(area.object);
	}
	return err;
}

/* Holes are skipped and reported at the end. The first area that refuses ends it. */
static s64 advise(u64 start, u64 end, u64 advice, const struct area_change *how)
{
	const s64 holes = space_mapped_until(&program_space, start, end) < end ? -ENOMEM : 0;
	struct area area;
	int takes;

	for (; start < end; start = area.end) {
		const u64 stop = taken_until(start, end, advice, &area, &takes);
		const s64 err = stop == start           ? 0
				: advice == MADV_REMOVE ? remove_contents(start, stop)
				: how ? mapping_change(&program_space, start, stop, how)
				      : 0;

		if (err < 0 || takes < 0)
			return err < 0 ? err : takes;
		if (stop == end)
			break;
	}
	return holes;
}

s64 call_madvise(const struct call_args *args)
{
	const u64 advice = args->arg[2];
	u64 start, end;
	s64 go;

	if (advice > MADV_GUARD_REMOVE || (advice > MADV_COLLAPSE && advice < MADV_GUARD_INSTALL) ||
	    (advice > MADV_DONTNEED && advice < MADV_FREE))
		return -EINVAL;
	go = range_of(args, &start, &end);
	if (go <= 0)
		return go == -ENOMEM && end < start ? -EINVAL : go;
	switch (advice) {
	case MADV_POPULATE_READ:
	case MADV_POPULATE_WRITE:
		return mapping_populate(&program_space, start, end, advice == MADV_POPULATE_WRITE);
	case MADV_COLLAPSE:
		return collapse_range(&program_space, start, end);
	case MADV_DONTNEED:
	case MADV_DONTNEED_LOCKED:
	case MADV_FREE:
		return advise(start, end, advice, &to_zeros);
	case MADV_HUGEPAGE:
		return advise(start, end, advice, &to_huge);
	case MADV_NOHUGEPAGE:
		return advise(start, end, advice, &to_small);
	case MADV_GUARD_INSTALL:
		return advise(start, end, advice, &to_guards);
	case MADV_GUARD_REMOVE:
		return advise(start, end, advice, &no_guards);
	default: /* it asks for nothing that a program could notice */
		return advise(start, end, advice, NULL);
	}
}

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

s64 call_mincore(const struct call_args *args)
{
	u64 start, end;
	const s64 go = range_of(args, &start, &end);

	if (go <= 0)
		return go;
	if (space_mapped_until(&program_space, start, end) < end)
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

/* Memory is never written out, so there is nothing to wait for. */
s64 call_msync(const struct call_args *args)
{
	enum { MS_ASYNC = 1, MS_INVALIDATE = 2, MS_SYNC = 4 };
	const u64 flags = args->arg[2];
	u64 start, end;
	s64 go;

	if (flags & ~(u64)(MS_ASYNC | MS_INVALIDATE | MS_SYNC) ||
	    ((flags & MS_ASYNC) && (flags & MS_SYNC)))
		return -EINVAL;
	go = range_of(args, &start, &end);
	if (go <= 0)
		return go;
	return space_mapped_until(&program_space, start, end) == end ? 0 : -ENOMEM;
}

/* ---- mlock: pages never leave, so locking is bringing them ---- */

/* Lock or unlock the pages of a range, which has to be mapped. `bring`: all are there then. */
static s64 lock_range(u64 start, u64 size, bool bring)
{
	const u64 first = ALIGN_DOWN(start, PAGE_SIZE), end = ALIGN_UP(start + size, PAGE_SIZE);
	s64 err;

	if (size == 0)
		return 0;
	if (end < first)
		return -EINVAL;
	if (!mapping_range_ok(&program_space, first, end) ||
	    space_mapped_until(&program_space, first, end) < end)
		return -ENOMEM;
	err = bring ? mapping_populate(&program_space, first, end, false) : 0;
	if (err == -EFAULT || err == -EINVAL) /* a page that nobody may touch, or beyond a file */
		return -ENOMEM;
	return err == -ENOMEM ? -EAGAIN : err;
}

s64 call_mlock2(const struct call_args *args)
{
	enum { ON_FAULT = 1 };

	if (args->arg[2] & ~(u64)ON_FAULT)
		return -EINVAL;
	return lock_range(args->arg[0], args->arg[1], !(args->arg[2] & ON_FAULT));
}

s64 call_munlock(const struct call_args *args)
{
	return lock_range(args->arg[0], args->arg[1], false);
}

s64 call_mlockall(const struct call_args *args)
{
	enum { MCL_ONFAULT = 4, MCL_ALL = 7 };

	return args->arg[0] == 0 || args->arg[0] == MCL_ONFAULT || args->arg[0] > MCL_ALL ? -EINVAL
											  : 0;
}
