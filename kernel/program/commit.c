/* How much a program may map: see commit.h. */
#include "kernel/program/commit.h"

#include <arch/atomic.h>
#include <arch/user.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/wait.h"
#include "kernel/program/layout.h"
#include "kernel/program/limits.h"
#include "kernel/program/proc_text.h"
#include "kernel/program/program_space.h"
#include "mm/mm.h"
#include "mm/pools.h"

enum mode { OVERCOMMIT_GUESS, OVERCOMMIT_ALWAYS, OVERCOMMIT_NEVER };

static unsigned mode;
OPTION_CHOICE(program.overcommit, mode, "0|1|2",
	      "memory that programs may ask for: 0 refuses more than all RAM at once, 1 nothing, 2 "
	      "all beyond CommitLimit");

static u64 ratio = 50;
OPTION_U64(program.overcommit_ratio, ratio, 0, 1000,
	   "CommitLimit of /proc/meminfo, in percent of RAM without pools");

static u64 ram;  /* bytes */
static u32 turn; /* a request of mode 2 is under way; atomic */

void commit_begin(void)
{
	struct mm_usage usage;

	mm_usage(&usage);
	ram = usage.ram * PAGE_SIZE;
}

static unsigned mode_now(void)
{
	return atomic_load_relaxed(&mode);
}

u16 commit_flags(const struct area *area, bool no_reserve)
{
	if (mode_now() == OVERCOMMIT_NEVER && !(area->flags & AREA_POOL))
		no_reserve = false;
	return (u16)((area->rights & USER_RIGHT_WRITE ? AREA_COMMIT : 0) |
		     (no_reserve ? AREA_NO_RESERVE : 0));
}

/* Sums over areas, in bytes. */
struct use {
	u64 all, data, committed;
};

static bool is_data(const struct area *area)
{
	return !(area->flags & AREA_SHARED) && (area->rights & USER_RIGHT_WRITE) &&
	       !layout_in_stack(area->start);
}

static bool is_committed(const struct area *area)
{
	if (area->flags & (AREA_POOL | AREA_NO_RESERVE))
		return false;
	return area->flags & AREA_SHARED ? !area->object : area->flags & AREA_COMMIT;
}

static void add(struct use *use, const struct area *area, u64 bytes)
{
	use->all += bytes;
	use->data += is_data(area) ? bytes : 0;
	use->committed += is_committed(area) ? bytes : 0;
}

/* Sums over the areas of [start, end), as if they had `rights` if that is not NULL. */
static struct use use_of(u64 start, u64 end, const u8 *rights)
{
	struct use use = {.all = 0};
	struct area area;

	for (u64 at = start; at < end && space_next(&program_space, at, &area) && area.start < end;
	     at = area.end) {
		if (rights) {
			area.rights = *rights;
			area.flags |= commit_flags(&area, false);
		}
		add(&use, &area, MIN(area.end, end) - MAX(area.start, at));
	}
	return use;
}

u64 commit_now(void)
{
	return use_of(USER_START, USER_END, NULL).committed;
}

u64 commit_limit(void)
{
	struct pool_usage of_2m, of_1g;
	u64 pools;

	pool_usage(&pool_2m, &of_2m);
	pool_usage(&pool_1g, &of_1g);
	pools = of_2m.pages * of_2m.page_bytes + of_1g.pages * of_1g.page_bytes;
	return saturating_sub(ram, pools) / 100 * atomic_load_relaxed(&ratio);
}

/* Would the program exceed a limit, if it has `now` and gets `more` in place of `less`? */
static bool exceeds(u64 limit, u64 now, u64 less, u64 more)
{
	return more > less && (more - less > limit || now > limit - (more - less));
}

/*
 * False if no limit looks at requests of this size; most calls end here. In mode 2 a request has
 * its turn alone until it is made: an area that is being replaced or moved is not there for a
 * while.
 */
static bool begin(struct commit *commit, u64 bytes)
{
	*commit = (struct commit){.turn = mode_now() == OVERCOMMIT_NEVER};
	if (commit->turn)
		wait_turn(&turn, "another thread's request for memory");
	return commit->turn || bytes > ram || limit_soft(RLIMIT_AS) != RLIMIT_NONE ||
	       limit_soft(RLIMIT_DATA) != RLIMIT_NONE;
}

static bool refused_by_mode(const struct use *less, const struct use *more)
{
	switch (mode_now()) {
	case OVERCOMMIT_GUESS:
		return saturating_sub(more->committed, less->committed) > ram;
	case OVERCOMMIT_NEVER:
		return exceeds(commit_limit(), commit_now(), less->committed, more->committed);
	default:
		return false;
	}
}

static int check(struct commit *commit, const struct use *less, const struct use *more)
{
	const u64 most_data = limit_soft(RLIMIT_DATA);

	if (!exceeds(limit_soft(RLIMIT_AS), atomic_load_relaxed(&program_space.bytes), less->all,
		     more->all) &&
	    (most_data == RLIMIT_NONE ||
	     !exceeds(most_data, use_of(USER_START, USER_END, NULL).data, less->data,
		      more->data)) &&
	    !refused_by_mode(less, more))
		return 0;
	commit_made(commit);
	return -ENOMEM;
}

int commit_ask(struct commit *commit, const struct area *want, bool replaces)
{
	struct use less = {.all = 0}, more = {.all = 0};

	if (!begin(commit, want->end - want->start))
		return 0;
	add(&more, want, want->end - want->start);
	if (replaces)
		less = use_of(want->start, want->end, NULL);
	return check(commit, &less, &more);
}

int commit_ask_rights(struct commit *commit, u64 start, u64 end, u8 rights)
{
	struct use less, more;

	*commit = (struct commit){.turn = false};
	if (!(rights & USER_RIGHT_WRITE) || !begin(commit, end - start))
		return 0;
	less = use_of(start, end, NULL);
	more = use_of(start, end, &rights);
	return check(commit, &less, &more);
}

void commit_made(const struct commit *commit)
{
	if (commit->turn)
		atomic_store_release(&turn, 0);
}

static void write_mode(struct text_sink *sink)
{
	text_print(sink, "%u\n", mode_now());
}
PROC_TEXT(overcommit, "/proc/sys/vm/overcommit_memory", write_mode);

static void write_ratio(struct text_sink *sink)
{
	text_print(sink, "%llu\n", atomic_load_relaxed(&ratio));
}
PROC_TEXT(overcommit_ratio, "/proc/sys/vm/overcommit_ratio", write_ratio);
