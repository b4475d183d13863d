/*
 * One round of a row; see alloc_round.h.
 *
 * Threads are pinned, and synchronise before and after each timed part. The time of a call is the
 * mean over the threads.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <arch/clock.h>

#include "mm/page/page_alloc.h"
#include "tests/bench/native/alloc_round.h"
#include "tests/bench/native/probe.h"
#include "tests/kernel/random.h"

/* ---- the allocator under test ---- */

static struct arena *arena; /* NULL: the probe */

void alloc_from(struct arena *from)
{
	arena = from;
}

u64 alloc_take(cpu_t cpu, unsigned order)
{
	struct page *page;

	if (!arena)
		return probe_alloc(cpu, order);
	page = mm_page_alloc(&arena->mm, order, USE_MOVABLE, PAGE_NODE, arena->options.nodes);
	return page ? (u64)(virt_t)page : PROBE_NONE;
}

void alloc_give(cpu_t cpu, u64 what, unsigned order)
{
	if (!arena)
		probe_free(cpu, what, order);
	else
		mm_page_free(&arena->mm, (struct page *)(virt_t)what);
}

/* The tickets drawn at the lock count it exactly, and cost nothing. */
u16 alloc_locks(void)
{
	return arena ? atomic_load_relaxed(&arena_phantom_zone(arena)->lock.next) : 0;
}

/* ---- threads ---- */

static struct job {
	const struct alloc_row *row;
	unsigned threads;
	u64 taken[ALLOC_THREADS][ALLOC_BULK_MAX];
	u64 ns[ALLOC_THREADS][2];
	long switches[ALLOC_THREADS];
	u16 locks[2]; /* written by CPU 0 between parts, while no thread is in a call */
	u32 arrived, gone;
} job;

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nivcsw;
}

static void meet(void)
{
	const u32 generation = atomic_load_acquire(&job.gone);

	if (atomic_fetch_add(&job.arrived, 1) + 1 == job.threads) {
		atomic_store_relaxed(&job.arrived, 0);
		atomic_store_release(&job.gone, generation + 1);
		return;
	}
	while (atomic_load_acquire(&job.gone) == generation)
		__builtin_ia32_pause();
}

void alloc_shuffle(u64 *values, u64 count)
{
	static u64 random = 88172645463325252ULL;

	for (u64 i = count - 1; i > 0; i--) {
		const u64 j = next_random(&random) % (i + 1), value = values[i];

		values[i] = values[j];
		values[j] = value;
	}
}

/*
 * All threads begin and end a timed part together. CPU 0 reads the count of the lock while the
 * others wait for it.
 */
static void begin_part(cpu_t me, unsigned part)
{
	meet();
	if (me == 0)
		job.locks[part] = alloc_locks();
	meet();
}

static void end_part(cpu_t me, unsigned part)
{
	meet();
	if (me == 0)
		job.locks[part] = (u16)(alloc_locks() - job.locks[part]);
	meet();
}

static void run_pairs(cpu_t me)
{
	const struct alloc_row *row = job.row;
	u64 start;

	for (unsigned i = 0; i < 1000; i++)
		alloc_give(me, alloc_take(me, row->order), row->order);
	begin_part(me, 0);
	start = clock_ns();
	for (unsigned i = 0; i < row->count; i++)
		alloc_give(me, alloc_take(me, row->order), row->order);
	job.ns[me][0] = clock_ns() - start;
	end_part(me, 0);
}

static void take_all(cpu_t me, u64 *taken)
{
	const struct alloc_row *row = job.row;

	if (row->kind == BULK_API) {
		if (mm_page_alloc_bulk(&arena->mm, USE_MOVABLE, PAGE_NODE, arena->options.nodes,
				       (struct page **)taken, row->count) != row->count)
			abort();
		return;
	}
	for (unsigned i = 0; i < row->count; i++)
		taken[i] = alloc_take(me, row->order);
}

static void give_all(cpu_t me, u64 *taken)
{
	const struct alloc_row *row = job.row;

	if (row->kind == BULK_API) {
		mm_page_free_bulk(&arena->mm, (struct page *const *)taken, row->count);
		return;
	}
	for (unsigned i = 0; i < row->count; i++)
		alloc_give(me, taken[i], row->order);
}

static void run_bulk(cpu_t me)
{
	const struct alloc_row *row = job.row;
	u64 start, *taken = job.taken[me];

	begin_part(me, 0);
	start = clock_ns();
	take_all(me, taken);
	job.ns[me][0] = clock_ns() - start;
	end_part(me, 0);
	for (unsigned i = 0; i < row->count; i++)
		if (taken[i] == PROBE_NONE)
			abort();
	if (row->kind == RANDOM && me == 0)
		for (unsigned t = 0; t < job.threads; t++)
			alloc_shuffle(job.taken[t], row->count);
	if (row->kind == CROSS)
		taken = job.taken[(me + 1) % job.threads];
	begin_part(me, 1);
	start = clock_ns();
	give_all(me, taken);
	job.ns[me][1] = clock_ns() - start;
	end_part(me, 1);
}

static void run_thread(void *arg)
{
	const cpu_t me = cpu_id();
	cpu_set_t set;
	long before;

	CPU_ZERO(&set);
	CPU_SET(me, &set);
	sched_setaffinity(0, sizeof(set), &set);
	meet();
	before = switches();
	if (job.row->kind == PAIR)
		run_pairs(me);
	else
		run_bulk(me);
	job.switches[me] = switches() - before;
}

/* ---- a round ---- */

bool alloc_round(const struct alloc_row *row, unsigned threads, struct alloc_result *result)
{
	long disturbed = 0;

	job.row = row;
	job.threads = threads;
	if (threads > 1 && work_start(1, run_thread, NULL) < 0)
		return false;
	run_thread(NULL);
	if (threads > 1)
		work_wait(1, 0);
	*result = (struct alloc_result){0};
	for (unsigned part = 0; part < (row->kind == PAIR ? 1 : 2); part++) {
		for (unsigned t = 0; t < threads; t++)
			result->ps[part] += job.ns[t][part] * 1000 / row->count / threads;
		result->locks[part] = job.locks[part] * 1000000ULL / row->count / threads;
	}
	for (unsigned t = 0; t < threads; t++)
		disturbed += job.switches[t];
	return disturbed == 0;
}
