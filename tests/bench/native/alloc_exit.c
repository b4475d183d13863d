/*
 * The exit of a large program: one CPU frees all the pages that other CPUs allocated; see
 * alloc_round.h.
 *
 * Each of the other CPUs allocates its share of the pages in turn. CPU 0 then frees them all,
 * owner by owner and in the order of allocation, as a program's address space is torn down.
 */
#include <stdlib.h>

#include <arch/clock.h>

#include "tests/bench/native/alloc_round.h"
#include "tests/bench/native/probe.h"

enum { CHUNK = 10000 }; /* pages between two readings of a count that wraps at 2^16 */

/* Part of the pages, for one CPU to take. */
struct share {
	u64 *pages;
	unsigned count;
};

static void take_page(u64 *page)
{
	*page = alloc_take(cpu_id(), 0);
}

static void give_page(u64 *page)
{
	alloc_give(cpu_id(), *page, 0);
}

/* Allocate or free pages as this CPU, in chunks. Returns the takings of the lock. */
static inline __attribute__((always_inline)) u64 each_page(void (*act)(u64 *page), u64 *pages,
							   unsigned count)
{
	u64 locks = 0;

	for (unsigned first = 0; first < count; first += CHUNK) {
		const u16 before = alloc_locks();

		for (unsigned i = first; i < MIN(first + CHUNK, count); i++)
			act(&pages[i]);
		locks += (u16)(alloc_locks() - before);
	}
	return locks;
}

static u64 taken_ns, taken_locks; /* written by the CPU that takes its share, one at a time */

static void take_share(void *arg)
{
	const struct share *share = arg;
	const u64 start = clock_cpu_ns();

	taken_locks += each_page(take_page, share->pages, share->count);
	taken_ns += clock_cpu_ns() - start;
}

/* False if a CPU would not work, or memory ran out. */
static bool take_all(u64 *pages, unsigned count)
{
	const unsigned cpus = MIN(cpu_count - 1, ALLOC_EXIT_CPUS);

	taken_ns = taken_locks = 0;
	for (unsigned i = 0; i < count; i++)
		pages[i] = PROBE_NONE;
	for (unsigned n = 0; n < cpus; n++) {
		const unsigned first = count / cpus * n;
		struct share share = {.pages = pages + first,
				      .count = n + 1 < cpus ? count / cpus : count - first};

		if (work_start(n + 1, take_share, &share) < 0)
			return false;
		work_wait(n + 1, 0);
	}
	for (unsigned i = 0; i < count; i++)
		if (pages[i] == PROBE_NONE)
			return false;
	return true;
}

bool alloc_exit_round(const struct alloc_row *row, struct alloc_result *result)
{
	u64 *pages = malloc(row->count * sizeof(*pages)), start, locks;
	const bool taken = pages && cpu_count > 1 && take_all(pages, row->count);

	if (taken) {
		start = clock_cpu_ns();
		locks = each_page(give_page, pages, row->count);
		*result = (struct alloc_result){
			.ps = {taken_ns * 1000 / row->count,
			       (clock_cpu_ns() - start) * 1000 / row->count},
			.locks = {taken_locks * 1000000 / row->count, locks * 1000000 / row->count},
		};
	}
	free(pages);
	return taken;
}
