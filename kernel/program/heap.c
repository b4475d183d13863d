/* The heap of a program: brk(2). */
#include "kernel/program/heap.h"

#include <arch/atomic.h>
#include <arch/pgtable.h>
#include <arch/user.h>

#include "kernel/core/wait.h"
#include "kernel/program/calls.h"
#include "kernel/program/commit.h"
#include "kernel/program/program_space.h"
#include "mm/vm/mapping.h"

static struct heap {
	u64 start, end; /* what brk() says; bytes */
	u32 busy;       /* a call is changing it */
} heap;

void heap_begin(u64 start)
{
	heap = (struct heap){.start = start, .end = start};
}

bool heap_has(u64 addr)
{
	return addr >= heap.start && addr < atomic_load_relaxed(&heap.end);
}

static s64 grow(struct area *more)
{
	struct commit commit;
	struct area next;
	s64 result;

	/* as on Linux, a page stays free between the heap and a mapping behind it */
	if ((space_next(&program_space, more->start, &next) &&
	     next.start < more->end + PAGE_SIZE) ||
	    commit_ask(&commit, more, false) != 0)
		return -ENOMEM;
	result = mapping_make(&program_space, more, MAPPING_NO_REPLACE);
	commit_made(&commit);
	return result;
}

static void set_heap_end(u64 wish)
{
	const u64 old = ALIGN_UP(heap.end, PAGE_SIZE), new = ALIGN_UP(wish, PAGE_SIZE);
	struct area more = {.start = old, .end = new, .rights = USER_RIGHT_READ | USER_RIGHT_WRITE};
	s64 err = 0;

	more.flags = commit_flags(&more, false);
	if (new > old)
		err = grow(&more);
	else if (new < old)
		err = mapping_remove(&program_space, new, old);
	if (err >= 0)
		atomic_store_relaxed(&heap.end, wish);
}

s64 call_brk(const struct call_args *args)
{
	u64 end;

	wait_turn(&heap.busy, "another thread's brk()");
	if (args->arg[0] >= heap.start && args->arg[0] < USER_END)
		set_heap_end(args->arg[0]);
	end = heap.end;
	atomic_store_release(&heap.busy, 0);
	return (s64)end;
}
