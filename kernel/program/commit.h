/*
 * How much a program may map: overcommit, RLIMIT_AS and RLIMIT_DATA. Nothing is counted beside the
 * areas; their sums are taken when a limit asks for them.
 *
 * A program is *committed* to what it may write and nobody else holds: private memory that is or
 * was writable (AREA_COMMIT), and shared memory without a file; not with MAP_NORESERVE, and not to
 * pages of pools. The modes are those of /proc/sys/vm/overcommit_memory:
 *
 *   0   one request for more than all RAM is refused
 *   1   everything is granted
 *   2   all that the program is committed to stays below the limit: program.overcommit_ratio=
 *       percent of RAM without the pools. MAP_NORESERVE then means nothing
 *
 * Pages of files are not counted; they are refused when they cannot be had.
 *
 * Sources: Linux, Documentation/mm/overcommit-accounting; getrlimit(2).
 */
#pragma once

#include "kernel/lib/types.h"

struct area;

/* Before a program starts, after limits_begin(). */
void commit_begin(void);

/* Flags that an area gets by its rights and by MAP_NORESERVE. */
u16 commit_flags(const struct area *area, bool no_reserve);

/*
 * May `want` be mapped, in place of what is there if `replaces`? May [start, end) get these rights?
 * Both return 0 or -ENOMEM. After 0, commit_made() follows when the areas are there, or could not
 * be made: until then requests of other threads wait in mode 2. Context: ordinary.
 */
struct commit {
	bool turn; /* which others wait for */
};
int commit_ask(struct commit *commit, const struct area *want, bool replaces);
int commit_ask_rights(struct commit *commit, u64 start, u64 end, u8 rights);
void commit_made(const struct commit *commit);

/* CommitLimit and Committed_AS of /proc/meminfo, in bytes. */
u64 commit_limit(void);
u64 commit_now(void);
