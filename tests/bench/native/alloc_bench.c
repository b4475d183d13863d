/*
 * The page allocator at native speed, in the rows by which page-frame allocators are compared, with
 * one and two threads, in fresh and aged memory. The rows are measured for the allocator, for the
 * allocator without per-CPU lists (the plain locked buddy that remains), and for probes (probe.h),
 * which show how fast this machine is.
 *
 *   pair     allocate and free, again and again
 *   bulk     10,000 pages (512 of 2 MiB): all allocated, then all freed
 *   xfree    each thread frees the pages that the other allocated
 *   aged     half of all pages, at random, stay in use throughout
 *   bulkapi  page_alloc_bulk(), page_free_bulk()
 *   exit     one thread frees 1,000,000 pages that four other CPUs allocated in aged memory (with
 *            fewer than five CPUs, all the others)
 *
 * A second table says how often the allocator took the zone's lock for 1,000 calls of each row.
 *
 * Values are nanoseconds per call (per page), the median of up to ROUNDS rounds within ROW_MS.
 * Rounds in which a thread was switched away from are left out, and rows without an undisturbed
 * round are "-". All allocators get the same number of frames in the same states. The allocator's
 * are phantom RAM of an arena, whose struct pages are real.
 *
 * Source of the rows: Wrenger et al., "LLFree", USENIX ATC 2023, and the harness that compares it
 * with others.
 */
#include <stdlib.h>

#include <arch/clock.h>

#include "kernel/console/input.h"
#include "kernel/core/printk.h"
#include "kernel/run/bench.h"
#include "mm/page/pcp_drain.h"
#include "tests/bench/native/alloc_round.h"
#include "tests/bench/native/probe.h"
#include "tests/bench/sort.h"

enum {
	ROUNDS = 9,
	PAIRS = 20000,
	BULK = ALLOC_BULK_MAX,
	BULK9 = 512,
	EXIT_PAGES = 1000000,
	THREADS = ALLOC_THREADS,
	ROW_MS = 500,
	GIB_OF_FRAMES = 8
};

static const struct alloc_row rows[] = {
	{"pair0", PAIR, 0, PAIRS, .aged = false},
	{"bulk0-inorder", IN_ORDER, 0, BULK, .aged = false},
	{"bulk0-random", RANDOM, 0, BULK, .aged = false},
	{"bulkapi", BULK_API, 0, BULK, .ours_only = true},
	{"pair9", PAIR, 9, PAIRS, .aged = false},
	{"bulk9-inorder", IN_ORDER, 9, BULK9, .aged = false},
	{"bulk9-random", RANDOM, 9, BULK9, .aged = false},
	{"xfree", CROSS, 0, BULK, .two_only = true},
	{"aged-pair0", PAIR, 0, PAIRS, .aged = true},
	{"aged", RANDOM, 0, BULK, .aged = true},
	{"exit", EXIT, 0, EXIT_PAGES, .aged = true, .one_only = true},
};

static const struct subject {
	const char *name;
	bool ours, lists;
	enum probe_kind probe;
} subjects[] = {
	{"ashlar", .ours = true, .lists = true}, {"without-lists", .ours = true},
	{"ring", .probe = PROBE_RING},           {"pcp-list", .probe = PROBE_LIST},
	{"buddy", .probe = PROBE_BUDDY},
};

enum { SUBJECTS = ARRAY_LEN(subjects), ROWS = ARRAY_LEN(rows) };

/* medians; ps[] is 0 for a part that was not measured */
static struct alloc_result results[SUBJECTS][ROWS][THREADS + 1];

static const struct subject *subject;
static struct arena *arena; /* NULL: the subject is a probe */

/* ---- rounds ---- */

static void run_row(unsigned s, unsigned r, unsigned threads)
{
	const u64 until = clock_ns() + ROW_MS * 1000000ULL;
	u64 ps[2][ROUNDS], locks[2][ROUNDS];
	struct alloc_result one;
	unsigned good = 0;

	for (unsigned attempt = 0; attempt < 2 * ROUNDS && good < ROUNDS && clock_ns() < until;
	     attempt++) {
		if (rows[r].kind == EXIT ? !alloc_exit_round(&rows[r], &one)
					 : !alloc_round(&rows[r], threads, &one))
			continue;
		for (unsigned i = 0; i < 2; i++) {
			ps[i][good] = one.ps[i];
			locks[i][good] = one.locks[i];
		}
		good++;
	}
	for (unsigned i = 0; i < 2; i++) {
		results[s][r][threads].ps[i] = median_u64(ps[i], good);
		results[s][r][threads].locks[i] = median_u64(locks[i], good);
	}
}

static void run_rows(unsigned s, bool aged)
{
	for (unsigned r = 0; r < ROWS && !input_stop_asked(); r++) {
		if (rows[r].aged != aged || (rows[r].ours_only && !subjects[s].ours))
			continue;
		for (unsigned threads = rows[r].two_only ? 2 : 1;
		     threads <= (rows[r].one_only ? 1 : MIN(cpu_count, THREADS)); threads++)
			run_row(s, r, threads);
	}
}

/* Take all pages and free a random half of them. */
static void age(u64 frames)
{
	u64 *all = malloc(frames * sizeof(*all)), count = 0;

	if (!all)
		return;
	while (count < frames && (all[count] = alloc_take(0, 0)) != PROBE_NONE)
		count++;
	alloc_shuffle(all, count);
	for (u64 i = 0; i < count / 2; i++)
		alloc_give(0, all[i], 0);
	if (subject->ours)
		pcp_drain_all(&arena->mm);
	else
		probe_drain(THREADS);
	free(all);
}

static bool run_subject(unsigned s)
{
	const u64 bytes = GIB(GIB_OF_FRAMES), frames = bytes >> PAGE_SHIFT;

	subject = &subjects[s];
	arena = NULL;
	if (subject->ours) {
		arena = arena_borrow_with(&(const struct arena_options){
			.bytes = arena_bytes_for(bytes), .phantom = bytes});
		if (!arena)
			return false;
		arena_open_all(arena);
		if (!subject->lists)
			pcp_disable(arena_phantom_zone(arena));
	} else if (!probe_init(subject->probe, frames)) {
		return false;
	}
	alloc_from(arena);
	run_rows(s, false);
	age(frames);
	run_rows(s, true);
	if (subject->ours)
		arena_return(arena);
	else
		probe_exit();
	return true;
}

/* ---- the table ---- */

static void print_cell(const struct alloc_result *result, bool pair)
{
	char text[32];

	if (result->ps[0] == 0)
		format(text, sizeof(text), "-");
	else if (pair)
		format(text, sizeof(text), "%llu.%llu", result->ps[0] / 1000,
		       result->ps[0] % 1000 / 100);
	else
		format(text, sizeof(text), "%llu.%llu / %llu.%llu", result->ps[0] / 1000,
		       result->ps[0] % 1000 / 100, result->ps[1] / 1000,
		       result->ps[1] % 1000 / 100);
	print(" %15s", text);
}

static void print_records(unsigned s, unsigned r, unsigned threads)
{
	static const char *const names[] = {"alloc", "free"};
	const struct alloc_result *result = &results[s][r][threads];

	for (unsigned i = 0; i < 2; i++) {
		if (result->ps[i] == 0)
			continue;
		if (subjects[s].ours && subjects[s].lists)
			print("BENCH alloc test=%s", rows[r].name);
		else
			print("BENCH probe name=%s test=%s", subjects[s].name, rows[r].name);
		print(" threads=%u op=%s ns=%llu.%03llu", threads,
		      rows[r].kind == PAIR ? "pair" : names[i], result->ps[i] / 1000,
		      result->ps[i] % 1000);
		if (subjects[s].ours && subjects[s].lists)
			print(" locks=%llu.%03llu", result->locks[i] / 1000,
			      result->locks[i] % 1000);
		print("\n");
	}
}

/* How often the allocator, with its lists, took the zone's lock. */
static void print_locks(void)
{
	print("\n  takings of the zone's lock, 1,000 calls\n");
	print("  %-18s %7s %10s %10s\n", "", "threads", "alloc", "free");
	for (unsigned threads = 1; threads <= THREADS; threads++) {
		for (unsigned r = 0; r < ROWS; r++) {
			const struct alloc_result *result = &results[0][r][threads];

			if (result->ps[0] == 0)
				continue;
			print("  %-18s %7u", rows[r].name, threads);
			for (unsigned i = 0; i < 2 && result->ps[i]; i++)
				print(" %6llu.%03llu", result->locks[i] / 1000,
				      result->locks[i] % 1000);
			print("\n");
		}
	}
}

static void print_table(void)
{
	print("\n  ns a call          threads");
	for (unsigned s = 0; s < SUBJECTS; s++)
		print(" %15s", subjects[s].name);
	print("\n");
	for (unsigned threads = 1; threads <= THREADS; threads++) {
		for (unsigned r = 0; r < ROWS; r++) {
			if (results[0][r][threads].ps[0] == 0)
				continue;
			print("  %-18s %7u", rows[r].name, threads);
			for (unsigned s = 0; s < SUBJECTS; s++)
				print_cell(&results[s][r][threads], rows[r].kind == PAIR);
			print("\n");
		}
	}
	print_locks();
	print("\n");
	for (unsigned s = 0; s < SUBJECTS; s++)
		for (unsigned r = 0; r < ROWS; r++)
			for (unsigned threads = 1; threads <= THREADS; threads++)
				print_records(s, r, threads);
}

static bool alloc_bench(void)
{
	print("\nThe page allocator, %u GiB of frames: allocate / free, medians of %u rounds\n",
	      GIB_OF_FRAMES, ROUNDS);
	for (unsigned s = 0; s < SUBJECTS && !input_stop_asked(); s++)
		if (!run_subject(s))
			return false;
	print_table();
	return true;
}

BENCH(alloc, "the page allocator at native speed, beside probes (hosted builds only)", alloc_bench);
