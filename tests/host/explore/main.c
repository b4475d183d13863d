/*
 * The explorer of schedules. Each schedule of a case gets a machine of its own in a child process,
 * which boots in the same way every time.
 *
 *	ashlar-host [-c cpus] [-m ram] [-k words] [-t seconds] [-S schedules] [-s seed]
 *	            [-p default|random|pct|all] [-R schedule] [-l] [-q] pattern
 *
 *	-S, -s, -p   how many schedules of each case, drawn from which seed by which strategy; `all`
 *	             takes turns, PCT with depths 1 to 4. The first schedule draws nothing
 *	-q           do not minimise what fails
 *	-R schedule  replay this one (text.c) of the case that matches, and show the output
 *
 * Every CHECK_EVERY-th schedule runs twice, and so does each that fails: if the two differ by a
 * point, something that decides is not input, and that is a finding, too.
 *
 * The first finding of a case ends its search. The runner then looks for a shorter schedule that
 * fails as well, by leaving out parts, larger ones first (Zeller and Hildebrandt, "Simplifying and
 * Isolating Failure-Inducing Input", IEEE TSE 2002), and prints how to replay it. Exit status: 0
 * without findings, 1 with some, 2 for wrong use, 3 if a schedule does not fit the code.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>

#include <arch/clock.h>

#include "kernel/core/printk.h"
#include "kernel/run/test.h"
#include "tests/host/child.h"
#include "tests/host/explore/explore.h"

enum {
	CHECK_EVERY = 64,
	DEPTHS = 4,
	MINIMISE_S = 30,
	SLACK = 40,
	LONGER = 30,
	WORDS_MAX = 512,
	HASHES_MAX = 1 << 20
};
enum { DECISIONS_FIRST = 1000 };

static struct {
	u32 schedules;
	u64 seed;
	const char *strategy, *words;
	char *replay;
	bool quick;
} options = {.schedules = 100, .seed = 1, .strategy = "all", .words = ""};

/* What is known of the case that is explored. */
static struct {
	char name[TEST_NAME_MAX], cmdline[TEST_NAME_MAX + 8];
	u64 *hash; /* of the schedules so far, sorted at the end */
	u32 runs, findings;
	u64 outcomes, allowed; /* of a litmus test */
	u64 points, points_max, kept, decisions_most, began;
} it;

/* What was printed since the case began: the boot is the same every time. */
static char *from_case(char *text)
{
	static const char begin[] = "  # Subtest: ";
	char *at = strstr(text, begin);

	return at ? at + sizeof(begin) - 1 : text;
}

/* One run of the case as explore_request says. *reason says why it failed, if it did. */
static enum outcome run_once(char *reason, bool show)
{
	struct child child;
	enum outcome outcome;

	memset(explore_result, 0, offsetof(struct explore_result, choice));
	child = child_start(it.cmdline);
	child_finish(&child);
	outcome = child_outcome(&child, reason);
	if (outcome == OUTCOME_FAIL && explore_result->finding[0])
		format(reason, REASON_MAX, "%s", explore_result->finding);
	if (outcome == OUTCOME_FAIL && !reason[0])
		format(reason, REASON_MAX, "the case failed");
	if (show)
		child_show(from_case(child.text), true);
	free(child.text);
	return outcome;
}

static struct explore_request request_of(u32 index)
{
	struct explore_request r = {.seed = options.seed * 0x9e3779b97f4a7c15ULL + index};
	const bool all = strcmp(options.strategy, "all") == 0;

	if (index == 0 || strcmp(options.strategy, "default") == 0)
		r.strategy = STRATEGY_REPLAY; /* of nothing */
	else if (strcmp(options.strategy, "pct") == 0 || (all && index % 2))
		r.strategy = STRATEGY_PCT;
	else
		r.strategy = STRATEGY_RANDOM;
	r.depth = 1 + index / 2 % DEPTHS;
	r.stores = index / 2 % 2 == 0;
	r.points_max = it.points_max;
	r.decisions = it.decisions_most ? it.decisions_most : DECISIONS_FIRST;
	return r;
}

/* ---- a shorter schedule ---- */

/* The kind of a failure is what stands before the colon. */
static bool same_failure(const char *a, const char *b)
{
	const size_t n = strcspn(a, ":");

	return n == strcspn(b, ":") && strncmp(a, b, n) == 0;
}

/* Does it fail in this way if these choices are made, as far as they fit? */
static bool fails_with(const struct choice *choices, u32 count, u32 slack, const char *how)
{
	char reason[REASON_MAX];

	explore_request = (struct explore_request){.strategy = STRATEGY_REPLAY,
						   .stores = true,
						   .slack = slack,
						   .points_max = it.points_max,
						   .replay = choices,
						   .choices = count};
	return run_once(reason, false) == OUTCOME_FAIL && same_failure(reason, how);
}

/* Copy without [from, from + n). */
static u32 copy_without(struct choice *to, const struct choice *all, u32 count, u32 from, u32 n)
{
	n = MIN(n, count - from);
	memcpy(to, all, from * sizeof(*all));
	memcpy(to + from, all + from + n, (count - from - n) * sizeof(*all));
	return count - n;
}

/*
 * Leave out what is not needed: parts, from half of all down to single choices. Returns the number
 * of choices that are left in `best`, which are those that were made.
 */
static u32 leave_out(struct choice *best, u32 count, u32 slack, u64 until, const char *how)
{
	static struct choice fewer[CHOICES_MAX];

	for (u32 part = (count + 1) / 2; part > 0 && clock_ns() < until; part /= 2) {
		for (u32 at = 0; at < count && clock_ns() < until;) {
			const u32 left = copy_without(fewer, best, count, at, part);

			if (!fails_with(fewer, left, slack, how) ||
			    explore_result->choices >= count) {
				at += part;
				continue;
			}
			count = explore_result->choices;
			memcpy(best, explore_result->choice, count * sizeof(*best));
		}
	}
	return count;
}

/* Again and again, since a choice may be needed only because of another. */
static u32 minimise(struct choice *best, u32 count, const char *how)
{
	const u64 until = clock_ns() + MINIMISE_S * NS_PER_S;
	u32 before;

	do {
		before = count;
		count = leave_out(best, count, 0, until, how);
		count = leave_out(best, count, SLACK, until, how);
	} while (count < before);
	return count;
}

static void print_replay(const struct choice *choices, u32 count)
{
	child_say("# replay: make explore T=%s CPUS=%u MEM=%lluM", it.name, host_config.cpus,
		  host_config.ram >> 20);
	if (options.words[0])
		child_say(" CMDLINE='%s'", options.words);
	child_say(" SEED='");
	schedule_print(choices, count);
	child_say("'\n");
}

static void report(const char *reason)
{
	static struct choice best[CHOICES_MAX];
	const u32 drawn = explore_result->choices;
	u32 count = MIN(drawn, (u32)CHOICES_MAX);
	char again[REASON_MAX];

	it.findings++;
	child_say("# FINDING %s: schedule %u: %s\n", it.name, it.runs, reason);
	if (options.quick)
		return;
	memcpy(best, explore_result->choice, count * sizeof(*best));
	if (drawn > CHOICES_MAX || !fails_with(best, count, 0, reason)) {
		child_say("# its %u choices, replayed, do not fail: SEED=%llu N=%u finds it "
			  "again\n",
			  drawn, options.seed, it.runs);
		return;
	}
	count = minimise(best, count, reason);
	fails_with(best, count, 0, reason);
	count = MIN(explore_result->choices, (u32)CHOICES_MAX);
	memcpy(best, explore_result->choice, count * sizeof(*best));
	explore_request.choices = count;
	explore_request.strict = true;
	run_once(again, true);
	child_say("# minimised from %u choices to %u: %s\n", drawn, count, again);
	print_replay(best, count);
}

/* ---- a case ---- */

/* Run it twice. True, and a finding, if the two differ. */
static bool escapes(void)
{
	const u64 hash = explore_result->hash, points = explore_result->points;
	char reason[REASON_MAX];

	run_once(reason, false);
	if (hash == explore_result->hash && points == explore_result->points)
		return false;
	it.findings++;
	child_say("# FINDING %s: schedule %u is no function of its seed: hash %016llx after %llu "
		  "points, then %016llx after %llu\n",
		  it.name, it.runs, hash, points, explore_result->hash, explore_result->points);
	return true;
}

static int by_value(const void *a, const void *b)
{
	const u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static u32 distinct(void)
{
	u32 n = 0;

	qsort(it.hash, it.runs, sizeof(*it.hash), by_value);
	for (u32 i = 0; i < it.runs; i++)
		n += i == 0 || it.hash[i] != it.hash[i - 1];
	return n;
}

static void print_row(const char *note)
{
	const u64 ns = clock_ns() - it.began;
	u64 all = 0;

	for (u32 i = 0; i < it.runs; i++)
		all = (all ^ it.hash[i]) * 0x9e3779b97f4a7c15ULL;
	child_say("%-68s %9u %8u %9llu %6llu %8u %5llu.%llu  %016llx%s\n", it.name, it.runs,
		  distinct(), it.runs ? it.points / it.runs : 0, it.runs ? it.kept / it.runs : 0,
		  it.findings, ns / NS_PER_S, ns / (NS_PER_S / 10) % 10, all, note);
}

static void explore_case(const struct test_case *tc)
{
	char reason[REASON_MAX];
	const char *note = "";
	u64 *hash = it.hash;

	memset(&it, 0, sizeof(it));
	it.hash = hash;
	it.began = clock_ns();
	it.points_max = POINTS_MAX;
	test_case_name(tc, it.name, sizeof(it.name));
	format(it.cmdline, sizeof(it.cmdline), "test=%s", it.name);
	while (it.runs < options.schedules) {
		enum outcome outcome;

		explore_request = request_of(it.runs);
		outcome = run_once(reason, false);
		it.hash[it.runs++] = explore_result->hash;
		it.points += explore_result->points;
		it.kept += explore_result->kept;
		it.outcomes |= explore_result->outcomes;
		it.allowed |= explore_result->allowed;
		it.decisions_most = MAX(it.decisions_most, explore_result->decisions);
		if (outcome == OUTCOME_SKIP) {
			note = "  skipped";
			break;
		}
		if (it.runs == 1)
			it.points_max = MAX(LONGER * explore_result->points, (u64)POINTS_MAX / 4);
		if (outcome == OUTCOME_FAIL && it.runs == 1 &&
		    (same_failure(reason, "livelock") || strncmp(reason, "no verdict", 10) == 0)) {
			note = "  too long";
			break;
		}
		if (outcome == OUTCOME_FAIL) {
			report(reason);
			break;
		}
		if (it.runs % CHECK_EVERY == 1 && escapes())
			break;
		if (explore_result->decisions == 0) {
			note = "  nothing to choose";
			break;
		}
	}
	if (it.allowed)
		child_say("# %s: outcomes 0x%llx\n", it.name, it.outcomes);
	if (it.allowed & ~it.outcomes && it.findings == 0) {
		it.findings++;
		child_say("# FINDING %s: outcomes that are allowed and were not seen: 0x%llx\n",
			  it.name, it.allowed & ~it.outcomes);
	}
	print_row(note);
}

static int explore_all(const struct test_run *run)
{
	u32 findings = 0, cases = 0;

	child_say("%-68s %9s %8s %9s %6s %8s %7s  %s\n", "case", "schedules", "distinct", "points",
		  "kept", "findings", "s", "hash");
	for (const struct test_case *tc = test_next(run, NULL); tc; tc = test_next(run, tc)) {
		explore_case(tc);
		findings += it.findings;
		cases++;
	}
	if (cases == 0)
		host_die("no test matches \"%s\"", run->patterns);
	child_say("# %u cases, %u findings\n", cases, findings);
	return findings != 0;
}

static int replay(const struct test_run *run)
{
	const struct test_case *tc = test_next(run, NULL);
	char reason[REASON_MAX];
	enum outcome outcome;
	u32 count;

	if (!tc)
		host_die("no test matches \"%s\"", run->patterns);
	if (test_next(run, tc))
		host_die("a schedule is for one case, and \"%s\" matches several", run->patterns);
	test_case_name(tc, it.name, sizeof(it.name));
	format(it.cmdline, sizeof(it.cmdline), "test=%s", it.name);
	explore_request = (struct explore_request){.strategy = STRATEGY_REPLAY,
						   .strict = true,
						   .stores = true,
						   .points_max = 10ULL * POINTS_MAX};
	explore_request.replay = schedule_parse(options.replay, &count);
	explore_request.choices = count;
	outcome = run_once(reason, true);
	if (explore_result->misfit)
		return 3;
	child_say("# %s: %s, hash %016llx after %llu points\n", it.name,
		  outcome == OUTCOME_FAIL ? reason : "passed", explore_result->hash,
		  explore_result->points);
	return outcome == OUTCOME_FAIL;
}

/* The same addresses in every run: some code hashes them, and places are compared. */
static void without_random_addresses(char **argv)
{
	const int now = personality(0xffffffff);

	if (now & ADDR_NO_RANDOMIZE)
		return;
	if (personality((unsigned long)now | ADDR_NO_RANDOMIZE) >= 0)
		execv("/proc/self/exe", argv);
	host_die("the addresses of a process cannot be fixed");
}

/* Provokers go on for a while: here for about 1000 points. */
static const char *with_short_races(const char *words)
{
	static char all[WORDS_MAX];

	format(all, sizeof(all), "test.provoke_ms=1 %s", words);
	return all;
}

static void check_strategy(void)
{
	static const char *const known[] = {"default", "random", "pct", "all"};

	for (unsigned i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(options.strategy, known[i]) == 0)
			return;
	host_die("-p: \"%s\" is not default, random, pct or all", options.strategy);
}

int main(int argc, char **argv)
{
	struct test_run run = {
		.begin = __start_test_table, .end = __stop_test_table, .patterns = "*"};
	bool list = false;
	int option;

	without_random_addresses(argv);
	host_config.cpus = 3;
	host_config.ram = MIB(128);
	while ((option = getopt(argc, argv, "c:m:k:t:S:s:p:R:lq")) != -1) {
		switch (option) {
		case 'k':
			options.words = optarg;
			break;
		case 'S':
			options.schedules = (u32)host_number(optarg, 1, HASHES_MAX, "-S");
			break;
		case 's':
			options.seed = host_number(optarg, 0, UINT64_MAX, "-s");
			break;
		case 'p':
			options.strategy = optarg;
			break;
		case 'R':
			options.replay = optarg;
			break;
		case 'l':
			list = true;
			break;
		case 'q':
			options.quick = true;
			break;
		default:
			if (!child_option(option, optarg, EXPLORE_CPUS_MAX))
				return 2;
		}
	}
	if (optind < argc)
		run.patterns = argv[optind];
	check_strategy();
	host_config.extra = with_short_races(options.words);
	host_symbols_init();
	it.hash = calloc(HASHES_MAX, sizeof(*it.hash));
	explore_result = mmap(NULL, sizeof(*explore_result), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!it.hash || explore_result == MAP_FAILED)
		host_die("out of memory");
	if (list)
		return child_list(&run);
	return options.replay ? replay(&run) : explore_all(&run);
}
