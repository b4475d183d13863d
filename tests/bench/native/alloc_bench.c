/*
 * The page allocator at native speed: the rows that page-frame allocators are compared by, one and two threads, fresh and aged
 * memory, for the allocator, for itself without per-CPU lists (the plain locked buddy it would be), and for probes
 * (probe.h), which say how fast this machine is.
 *
 *   pair     allocate and free, again and again          bulk     10,000 pages (512 of 2 MiB): all allocated, then all freed
 *   xfree    each frees what the other allocated         aged     half of all pages, at random, are in use for ever
 *   bulkapi  page_alloc_bulk(), page_free_bulk()
 *
 * Nanoseconds a call (a page), the median of up to ROUNDS rounds within ROW_MS; rounds in which a thread was switched away from are
 * left out, and rows without an undisturbed round are "-". All
 * allocators get the same frames in the same states; the allocator's are phantom RAM of an arena, whose struct pages are real.
 *
 * Source of the rows: Wrenger et al., "LLFree", USENIX ATC 2023, and the harness that compares it with others.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include <arch/cpu.h>

#include "kernel/bench.h"
#include "kernel/call.h"
#include "kernel/cmdline.h"
#include "kernel/input.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "mm/page_alloc.h"
#include "mm/pcp.h"
#include "tests/bench/native/probe.h"
#include "tests/kernel/arena.h"

enum { THREADS = 2, ROUNDS = 9, PAIRS = 20000, BULK = 10000, BULK9 = 512, ROW_MS = 500 };

static u64 gib = 8;
OPTION_U64(alloc_gib, gib, 4, 64, "GiB of frames that bench=alloc allocates from");

enum kind { PAIR, IN_ORDER, RANDOM, CROSS, BULK_API };

static const struct row {
	const char *name;
	enum kind kind;
	unsigned order, count;
	bool aged, two_only, ours_only;
} rows[] = {
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
};

static const struct subject {
	const char *name;
	bool ours, lists;
	enum probe_kind probe;
} subjects[] = {
	{"ashlar", .ours = true, .lists = true},
	{"without-lists", .ours = true},
	{"ring", .probe = PROBE_RING},
	{"pcp-list", .probe = PROBE_LIST},
	{"buddy", .probe = PROBE_BUDDY},
};

enum { SUBJECTS = ARRAY_LEN(subjects), ROWS = ARRAY_LEN(rows) };

static struct result {
	u64 ps[2]; /* alloc or pair, free; 0: not measured */
} results[SUBJECTS][ROWS][THREADS + 1];

/* ---- what is measured ---- */

static const struct subject *subject;
static struct arena *arena;

static inline u64 take(cpu_t cpu, unsigned order)
{
	struct page *page;

	if (!subject->ours)
		return probe_alloc(cpu, order);
	page = mm_page_alloc(&arena->mm, order, USE_MOVABLE, PAGE_NODE, arena->options.nodes);
	return page ? (u64)(virt_t)page : PROBE_NONE;
}

static inline void give(cpu_t cpu, u64 what, unsigned order)
{
	if (!subject->ours)
		probe_free(cpu, what, order);
	else
		mm_page_free(&arena->mm, (struct page *)(virt_t)what);
}

/* ---- threads ---- */

static struct job {
	const struct row *row;
	unsigned threads;
	u64 taken[THREADS][BULK];
	u64 ns[THREADS][2];
	long switches[THREADS];
	u32 arrived, gone;
} job;

static u64 now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

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

static u64 random_state = 88172645463325252ULL;

static u64 random_number(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void shuffle(u64 *values, u64 count)
{
	for (u64 i = count - 1; i > 0; i--) {
		const u64 j = random_number() % (i + 1), value = values[i];

		values[i] = values[j];
		values[j] = value;
	}
}

static void run_pairs(cpu_t me)
{
	const struct row *row = job.row;
	u64 start;

	for (unsigned i = 0; i < 1000; i++)
		give(me, take(me, row->order), row->order);
	meet();
	start = now();
	for (unsigned i = 0; i < row->count; i++)
		give(me, take(me, row->order), row->order);
	job.ns[me][0] = now() - start;
	meet();
}

static void take_all(cpu_t me, u64 *taken)
{
	const struct row *row = job.row;

	if (row->kind == BULK_API) {
		if (mm_page_alloc_bulk(&arena->mm, USE_MOVABLE, PAGE_NODE, arena->options.nodes, (struct page **)taken,
				       row->count) != row->count)
			abort();
		return;
	}
	for (unsigned i = 0; i < row->count; i++)
		taken[i] = take(me, row->order);
}

static void give_all(cpu_t me, u64 *taken)
{
	const struct row *row = job.row;

	if (row->kind == BULK_API) {
		mm_page_free_bulk(&arena->mm, (struct page *const *)taken, row->count);
		return;
	}
	for (unsigned i = 0; i < row->count; i++)
		give(me, taken[i], row->order);
}

static void run_bulk(cpu_t me)
{
	const struct row *row = job.row;
	u64 start, *taken = job.taken[me];

	meet();
	start = now();
	take_all(me, taken);
	job.ns[me][0] = now() - start;
	meet();
	for (unsigned i = 0; i < row->count; i++)
		if (taken[i] == PROBE_NONE)
			abort();
	if (row->kind == RANDOM && me == 0)
		for (unsigned t = 0; t < job.threads; t++)
			shuffle(job.taken[t], row->count);
	if (row->kind == CROSS)
		taken = job.taken[(me + 1) % job.threads];
	meet();
	start = now();
	give_all(me, taken);
	job.ns[me][1] = now() - start;
	meet();
}

static void run_thread(void *arg)
{
	const cpu_t me = cpu_id();
	cpu_set_t set;
	long before;

	(void)arg;
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

/* ---- rounds ---- */

static u64 median(u64 *values, unsigned count)
{
	for (unsigned i = 1; i < count; i++) {
		for (unsigned j = i; j > 0 && values[j - 1] > values[j]; j--) {
			const u64 larger = values[j - 1];

			values[j - 1] = values[j];
			values[j] = larger;
		}
	}
	return count ? values[count / 2] : 0;
}

/* One round: false if a thread was disturbed. */
static bool run_once(const struct row *row, unsigned threads, u64 ps[2])
{
	long disturbed = 0;

	job.row = row;
	job.threads = threads;
	if (threads > 1 && work_start(1, run_thread, NULL) < 0)
		return false;
	run_thread(NULL);
	if (threads > 1)
		work_wait(1, 0);
	ps[0] = ps[1] = 0;
	for (unsigned t = 0; t < threads; t++) {
		ps[0] += job.ns[t][0] * 1000 / row->count / threads;
		ps[1] += job.ns[t][1] * 1000 / row->count / threads;
		disturbed += job.switches[t];
	}
	if (row->kind == PAIR)
		ps[1] = 0;
	return disturbed == 0;
}

static void run_row(unsigned s, unsigned r, unsigned threads)
{
	const u64 until = now() + ROW_MS * 1000000ULL;
	u64 ps[2][ROUNDS], one[2];
	unsigned good = 0;

	for (unsigned attempt = 0; attempt < 2 * ROUNDS && good < ROUNDS && now() < until; attempt++) {
		if (!run_once(&rows[r], threads, one))
			continue;
		ps[0][good] = one[0];
		ps[1][good] = one[1];
		good++;
	}
	for (unsigned i = 0; i < 2; i++)
		results[s][r][threads].ps[i] = median(ps[i], good);
}

static void run_rows(unsigned s, bool aged)
{
	for (unsigned r = 0; r < ROWS && !input_stop_asked(); r++) {
		if (rows[r].aged != aged || (rows[r].ours_only && !subjects[s].ours))
			continue;
		for (unsigned threads = rows[r].two_only ? 2 : 1; threads <= MIN(cpu_count, THREADS); threads++)
			run_row(s, r, threads);
	}
}

/* All pages taken, a random half given back. */
static void age(u64 frames)
{
	u64 *all = malloc(frames * sizeof(*all)), count = 0;

	if (!all)
		return;
	while (count < frames && (all[count] = take(0, 0)) != PROBE_NONE)
		count++;
	shuffle(all, count);
	for (u64 i = 0; i < count / 2; i++)
		give(0, all[i], 0);
	if (subject->ours)
		pcp_drain_all(&arena->mm);
	else
		probe_drain(THREADS);
	free(all);
}

static u64 real_memory(u64 bytes)
{
	u64 real = MIB(32);

	while (real < bytes / STRUCTS_PER_FRAME * 5 / 4)
		real *= 2;
	return real;
}

static bool run_subject(unsigned s)
{
	const u64 bytes = gib * GIB(1), frames = bytes >> PAGE_SHIFT;

	subject = &subjects[s];
	if (subject->ours) {
		arena = arena_borrow_with(&(const struct arena_options){.bytes = real_memory(bytes), .phantom = bytes});
		if (!arena)
			return false;
		arena_open_all(arena);
		if (!subject->lists)
			pcp_disable(arena_phantom_zone(arena));
	} else if (!probe_init(subject->probe, frames)) {
		return false;
	}
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

static void print_cell(const struct result *result, bool pair)
{
	char text[32];

	if (result->ps[0] == 0)
		format(text, sizeof(text), "-");
	else if (pair)
		format(text, sizeof(text), "%llu.%llu", (unsigned long long)(result->ps[0] / 1000),
		       (unsigned long long)(result->ps[0] % 1000 / 100));
	else
		format(text, sizeof(text), "%llu.%llu / %llu.%llu", (unsigned long long)(result->ps[0] / 1000),
		       (unsigned long long)(result->ps[0] % 1000 / 100), (unsigned long long)(result->ps[1] / 1000),
		       (unsigned long long)(result->ps[1] % 1000 / 100));
	print(" %15s", text);
}

static void print_records(unsigned s, unsigned r, unsigned threads)
{
	static const char *const names[] = {"alloc", "free"};
	const struct result *result = &results[s][r][threads];

	for (unsigned i = 0; i < 2; i++) {
		if (result->ps[i] == 0)
			continue;
		if (subjects[s].ours && subjects[s].lists)
			print("BENCH alloc test=%s", rows[r].name);
		else
			print("BENCH probe name=%s test=%s", subjects[s].name, rows[r].name);
		print(" threads=%u op=%s ns=%llu.%03llu\n", threads, rows[r].kind == PAIR ? "pair" : names[i],
		      (unsigned long long)(result->ps[i] / 1000), (unsigned long long)(result->ps[i] % 1000));
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
	print("\n");
	for (unsigned s = 0; s < SUBJECTS; s++)
		for (unsigned r = 0; r < ROWS; r++)
			for (unsigned threads = 1; threads <= THREADS; threads++)
				print_records(s, r, threads);
}

static bool alloc_bench(void)
{
	print("\nThe page allocator, %llu GiB of frames: allocate / free, medians of %u rounds\n", (unsigned long long)gib,
	      ROUNDS);
	for (unsigned s = 0; s < SUBJECTS && !input_stop_asked(); s++)
		if (!run_subject(s))
			return false;
	print_table();
	return true;
}

BENCH(alloc, "the page allocator at native speed, beside probes (hosted builds only)", alloc_bench);
