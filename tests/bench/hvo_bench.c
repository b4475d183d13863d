/*
 * The table of the HVO series (Kravetz 2023): the cost of growing and shrinking a pool of huge
 * pages in each HVO mode, and the frames that each mode saves.
 *
 * Every leg starts from a reset state. All sections are closed, then as many as the leg needs are
 * opened in its mode's style, untimed. Each mode runs once unmeasured first, so that the host
 * behind a virtual machine has backed the memory. Each leg reports whether its blocks were fresh;
 * where no section can be closed (small machines) it reports `again`.
 *
 *   source=fresh      never allocated since their section was opened: bare for on, under a PMD leaf
 *                     for the baselines
 *   source=recycled   every block was split to order 0, every page written and freed, and the
 *                     per-CPU lists drained
 *   source=again      grown and shrunk once before
 *
 * Debt is the work that a mode postpones; it is printed beside the mode. debt_open: opening the
 * sections beforehand. debt_split: allocating every returned block afterwards (hvo_split.c). A
 * second table adds up all four.
 *
 * With size=1G a third leg, demote, makes the pages of a pool grown anew into pages of 2 MiB.
 *
 * A record has the work (work.h) that a leg did before its clock (before_opened= ...) and under it,
 * that of splitting the pages (after_opened= ...), and whether memory was warm: a leg from the same
 * state had as many pages before.
 *
 * A leg fails if memory is not in the leg's state when it begins. One that begins in memory that
 * could not be reset is skipped: it is measured, recorded as `again` and counted as a skip. A round
 * that was deferred is due when a page is used; the rounds of the first use are counted beside the
 * grow leg.
 *
 * runs=N: every mode is measured N times, in turns, so that a slow moment of the host affects all.
 * The table shows the fastest, because other work of the host only adds time: 4 ms of it double
 * that of a leg. Beside its ratio to mode off stand the lowest and the highest of the runs. The
 * records have every run.
 */
#include "kernel/console/input.h"
#include "kernel/run/bench.h"
#include "mm/hvo/hvo_make.h"
#include "mm/debug/account.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/page/pcp.h"
#include "mm/zone/section_close.h"
#include "tests/bench/hvo_bench.h"
#include "tests/kernel/rounds.h"
#include "tests/kernel/modes.h"
#include "tests/kernel/scratch.h"

enum { UNBATCHED_SHARE = 16, HVO_RUNS_MAX = 21 };

u64 hvo_pages = 4096, hvo_runs = 5;
static u64 hvo_pages_unbatched;
OPTION_U64(bench.hvo.pages, hvo_pages, 1, 1ULL << 30, "huge pages of the pool");
OPTION_U64(bench.hvo.pages_unbatched, hvo_pages_unbatched, 0, 1ULL << 30,
	   "pages for the modes with a round for each page; 0: a sixteenth of the others");
OPTION_U64(bench.hvo.runs, hvo_runs, 1, HVO_RUNS_MAX,
	   "times each mode is measured, in turns; the fastest is shown");
OPTION_U64(bench.quiet.pages, hvo_pages, 1, 1ULL << 30, "huge pages of the pool");

static const char *hvo_modes_wanted = "";
OPTION(bench.hvo.modes, .values = "text", .parse = option_parse_text, .target = &hvo_modes_wanted,
       .help = "modes to measure, commas between; none: all but parts of the series");

const char *const hvo_source_names[] = {"fresh", "recycled", "again"};
static unsigned hvo_source = SOURCE_FRESH;
OPTION_CHOICE(bench.hvo.source, hvo_source, "fresh|recycled|again|all",
	      "state of the memory that the pool takes");

enum { SIZE_2M, SIZE_1G };
static unsigned hvo_size = SIZE_2M;
OPTION_CHOICE(bench.hvo.size, hvo_size, "2M|1G", "page size of the pool");

struct pool *hvo_pool(void)
{
	return hvo_size == SIZE_1G ? &pool_1g : &pool_2m;
}

const char *hvo_size_name(void)
{
	return hvo_size == SIZE_1G ? "1G" : "2M";
}

/* ---- one leg ---- */

/* The stretches that a CPU did for others since the leg began; no other CPU is at work then. */
static u64 *stretches_helped(cpu_t cpu)
{
	return &mm_kernel.pcp[cpu]->counts->count[COUNT_STRETCHES_HELPED];
}

/* The CPU that asks, and those that did something for it. */
static unsigned cpus_at_work(void)
{
	unsigned cpus = 1;

	for (cpu_t cpu = 0; cpu < cpu_count; cpu++)
		cpus += atomic_load_relaxed(stretches_helped(cpu)) > 0;
	return cpus;
}

static void leg_begin(struct leg *leg)
{
	shootdown_stats_reset_interrupted();
	shootdown_stats_read(&leg->stats);
	for (cpu_t cpu = 0; cpu < cpu_count; cpu++)
		atomic_store_relaxed(stretches_helped(cpu), 0);
	leg_work_begin(&leg->work);
	check_spent(&leg->spent);
	leg->ns = clock_ns();
}

static void leg_end(struct leg *leg)
{
	struct shootdown_stats now;
	struct check_spent spent;

	leg->ns = clock_ns() - leg->ns;
	check_spent(&spent);
	leg->spent.ns = spent.ns - leg->spent.ns;
	leg->spent.host_faults = spent.host_faults - leg->spent.host_faults;
	shootdown_stats_read(&now);
	leg->threads = cpus_at_work();
	leg->stats.flushes = now.flushes - leg->stats.flushes;
	leg->stats.ipis = now.ipis - leg->stats.ipis;
	leg->stats.skipped = now.skipped - leg->stats.skipped;
	leg->stats.interrupted = now.interrupted;
	leg_work_end(&leg->work);
}

/* ---- legs ---- */

/* Rounds that were put off until a page is given to a user. */
static u64 flushes_of_first_use(void)
{
	const u64 before = rounds_so_far();
	struct page *page = pool_page_take(hvo_pool(), NODE_NONE, POOL_ANY);
	const u64 rounds = rounds_so_far() - before;

	if (page)
		pool_page_give(hvo_pool(), page);
	return rounds;
}

/* Grow and shrink once from the state hvo_leg_begin() made. False if pages were lost. */
static bool run_legs(const struct hvo_mode *mode, struct leg *grow, struct leg *shrink)
{
	struct page *held;

	leg_begin(grow);
	grow->done = pool_grow(hvo_pool(), mode, grow->pages);
	leg_end(grow);
	grow->saved = pool_frames_saved(hvo_pool());
	grow->use_flushes = flushes_of_first_use();

	*shrink = (struct leg){.mode = mode,
			       .pages = grow->done,
			       .debt_open_ns = grow->debt_open_ns,
			       .source = grow->source,
			       .work.warm = grow->work.warm};
	leg_work_prepare(&shrink->work);
	held = hvo_hold_rest(grow->done);
	leg_begin(shrink);
	shrink->done = pool_shrink(hvo_pool(), mode, grow->done);
	leg_end(shrink);
	grow->split = shrink->split = hvo_split_debt(shrink->done, held);
	if (shrink->done != grow->done)
		pr_err("hvo: %s: %llu of %llu pages came back", mode->name, shrink->done,
		       grow->done);
	return shrink->done == grow->done && grow->done > 0;
}

/* Grow untimed from the state hvo_leg_begin() made, and demote. False if pages were lost. */
static bool run_demotion(const struct hvo_mode *mode, struct leg *demote)
{
	const u64 grown = pool_grow(hvo_pool(), mode, demote->pages);

	leg_begin(demote);
	demote->done = pool_demote(hvo_pool(), &pool_2m, mode, grown);
	leg_end(demote);
	if (demote->done != grown)
		pr_err("hvo: %s: %llu of %llu pages were demoted", mode->name, demote->done, grown);
	return pool_shrink(&pool_2m, mode, demote->done * GIB_BLOCKS) ==
		       demote->done * GIB_BLOCKS &&
	       pool_shrink(hvo_pool(), mode, grown - demote->done) == 0 && grown > 0;
}

/* Results of one mode in one run. */
struct mode_result {
	struct leg leg[OPS];
	u64 ps[OPS + 1]; /* of a page; the last one is what it costs in all */
	bool ran;
};

enum { MODES_MAX = 8, IN_ALL = OPS };
typedef struct mode_result mode_results[HVO_RUNS_MAX];
static mode_results *results; /* of each mode */

static u64 pages_for(const struct hvo_mode *mode)
{
	if (!mode->page_rounds)
		return hvo_pages;
	return hvo_pages_unbatched ? hvo_pages_unbatched : MAX(hvo_pages / UNBATCHED_SHARE, 1);
}

/* Is the mode named in modes=? */
static bool mode_wanted(const struct hvo_mode *mode)
{
	const size_t length = strlen(mode->name);
	const char *at = hvo_modes_wanted;

	if (!*at)
		return !mode->born;
	for (; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, mode->name, length) == 0 && (at[length] == ',' || at[length] == 0))
			return true;
	}
	return false;
}

/*
 * Does the mode take part? Modes with a round for each page run only once, from fresh memory and
 * with idle CPUs.
 */
static bool mode_applies(const struct hvo_mode *mode, unsigned source)
{
	return mode_wanted(mode) && (!mode->page_rounds || source == SOURCE_FRESH);
}

/*
 * Run one mode. If `first`, run it unmeasured before, so that the host behind a virtual machine has
 * backed the memory, and an emulator has translated the code. Where each page costs a round, a few
 * pages do: the modes before it have touched the memory.
 */
static bool run_mode(const struct hvo_mode *mode, unsigned source, bool first,
		     struct mode_result *result)
{
	struct leg *grow = &result->leg[GROW], *shrink = &result->leg[SHRINK];
	struct leg *demote = &result->leg[DEMOTE];

	for (unsigned i = !first; i < 2; i++) {
		*grow = (struct leg){.mode = mode, .pages = pages_for(mode)};
		if (i == 0 && mode->page_rounds)
			grow->pages = MIN(grow->pages, WARM_ROUNDS);
		if (!hvo_leg_begin(grow, source))
			return true;
		if (!run_legs(mode, grow, shrink))
			return false;
		if (hvo_size != SIZE_1G)
			continue;
		*demote = (struct leg){.mode = mode, .pages = grow->pages};
		if (hvo_leg_begin(demote, source) && !run_demotion(mode, demote))
			return false;
	}
	for (unsigned op = 0; op < OPS; op++)
		result->ps[op] = hvo_ps_per_page(&result->leg[op]);
	result->ps[IN_ALL] = hvo_cost_ps(grow, shrink);
	result->ran = true;
	return true;
}

static bool is_warm(const struct mode_result *run, unsigned op)
{
	return run->leg[op % OPS].work.warm;
}

/* Runs are sorted by time, those in warm memory before all others. */
static u64 rank(const struct mode_result *run, unsigned op)
{
	return run->ps[op] | (is_warm(run, op) ? 0 : 1ULL << 63);
}

/*
 * The run that took least for one operation, of those in warm memory if there are any, or NULL if
 * none ran. The tables show that run.
 */
static const struct mode_result *fastest(const struct mode_result *runs, unsigned op)
{
	const struct mode_result *least = NULL;

	for (u64 run = 0; run < hvo_runs; run++)
		if (runs[run].ran && (!least || rank(&runs[run], op) < rank(least, op)))
			least = &runs[run];
	return least;
}

/* The results of mode off, or NULL. */
static const struct mode_result *runs_off(void)
{
	for (unsigned i = 0; hvo_modes[i].name; i++)
		if (hvo_modes[i].make == hvo_form && fastest(results[i], GROW))
			return results[i];
	return NULL;
}

/*
 * A mode beside off: the fastest run of both, and the lowest and the highest ratio of one run. A
 * leg in cold memory is compared with no other.
 */
static struct hvo_ratio ratio_to_off(const struct mode_result *runs, unsigned op)
{
	const struct mode_result *off = runs_off(), *base = off ? fastest(off, op) : NULL;
	struct hvo_ratio ratio = {0};

	if (!base || base->ps[op] == 0 || !is_warm(base, op) || !is_warm(fastest(runs, op), op))
		return ratio;
	ratio.off = &base->leg[op % OPS];
	ratio.fastest = fastest(runs, op)->ps[op] * 100 / base->ps[op];
	ratio.low = ratio.high = ratio.fastest;
	for (u64 run = 0; run < hvo_runs; run++) {
		u64 one;

		if (!runs[run].ran || !off[run].ran || off[run].ps[op] == 0 ||
		    !is_warm(&runs[run], op) || !is_warm(&off[run], op))
			continue;
		one = runs[run].ps[op] * 100 / off[run].ps[op];
		ratio.low = MIN(ratio.low, one);
		ratio.high = MAX(ratio.high, one);
	}
	return ratio;
}

static void print_times(const struct mode_result *runs, unsigned source)
{
	const struct mode_result *grown = fastest(runs, GROW), *shrunk = fastest(runs, SHRINK);

	if (!grown)
		return;
	for (unsigned op = 0; op < OPS; op++) {
		const struct leg *leg = &fastest(runs, op)->leg[op];
		const struct hvo_ratio ratio = ratio_to_off(runs, op);

		if (leg->done > 0)
			hvo_print_leg(leg, op, &ratio);
	}
	hvo_print_notes(&grown->leg[GROW], &shrunk->leg[SHRINK], pages_for(grown->leg[GROW].mode),
			hvo_source_names[source]);
}

static void print_counts(const struct mode_result *runs)
{
	for (unsigned op = 0; op < OPS && fastest(runs, op); op++)
		if (fastest(runs, op)->leg[op].done > 0)
			hvo_print_counts(&fastest(runs, op)->leg[op], op);
}

static void print_costs(const struct mode_result *runs)
{
	const struct mode_result *run = fastest(runs, IN_ALL);
	struct hvo_ratio ratio;

	if (!run)
		return;
	ratio = ratio_to_off(runs, IN_ALL);
	hvo_print_costs(&run->leg[GROW], &run->leg[SHRINK], &ratio);
}

static void record_mode(const struct mode_result *result, u64 run)
{
	if (!result->ran)
		return;
	for (unsigned op = 0; op < OPS; op++)
		if (op != DEMOTE || result->leg[op].done > 0)
			hvo_record_leg(&result->leg[op], op, run);
}

/* The tables come after the records of all runs, so that they are what stays on the screen. */
static bool run_source(unsigned source)
{
	bool ok = true;

	results = SCRATCH(mode_results, MODES_MAX);
	for (u64 run = 0; run < hvo_runs; run++) {
		for (unsigned i = 0; hvo_modes[i].name && !input_stop_asked(); i++) {
			if (!mode_applies(&hvo_modes[i], source))
				continue;
			ok &= run_mode(&hvo_modes[i], source, run == 0, &results[i][run]);
			record_mode(&results[i][run], run + 1);
		}
	}
	hvo_print_head(hvo_source_names[source]);
	for (unsigned i = 0; hvo_modes[i].name; i++)
		print_times(results[i], source);
	hvo_print_counts_head();
	for (unsigned i = 0; hvo_modes[i].name; i++)
		print_counts(results[i]);
	hvo_print_costs_head();
	for (unsigned i = 0; hvo_modes[i].name; i++)
		print_costs(results[i]);
	sections_close_all(&mm_kernel);
	if (account_machine())
		print("\n  every frame accounted for, owner by owner\n\n");
	else
		ok = false;
	return ok;
}

/* Does modes= name modes only? */
static bool modes_known(void)
{
	unsigned named = *hvo_modes_wanted != 0, known = 0;
	char all[128];

	for (const char *at = hvo_modes_wanted; *at; at++)
		named += *at == ',';
	for (unsigned i = 0; hvo_modes[i].name && named; i++)
		known += mode_wanted(&hvo_modes[i]);
	if (known == named)
		return true;
	option_values(option_find("hvo"), all, sizeof(all));
	pr_err("hvo: modes=%s names a mode twice, or one that is none (there are %s)",
	       hvo_modes_wanted, all);
	return false;
}

static bool bench_hvo(void)
{
	bool ok = modes_known();

	for (unsigned source = 0; source < SOURCES; source++)
		if (hvo_source == source || hvo_source == SOURCE_ALL)
			ok &= run_source(source);
	return ok;
}

BENCH(hvo, "grow and shrink a pool of huge pages in every HVO mode (HVO series)", bench_hvo);
