/*
 * The explorer of schedules. A machine boots in a process of its own for each case. When the case
 * comes to its first choice, this process becomes its runner, and each schedule is a child of it
 * that goes on. If two CPUs will have work of the case at the same time, the search begins then:
 * choices before that concern only messages to idle CPUs.
 *
 *	ashlar-host [-c cpus] [-m ram] [-k words] [-t seconds] [-S schedules] [-s seed]
 *	            [-p random|pct|pos|dfs|all] [-R schedule] [-w offsets] [-x points] [-f] [-l]
 *	            [-q] pattern
 *
 *	-S, -s, -p   how many schedules of each case, drawn from which seed by which strategy;
 *	             `all` alternates the first three, PCT with depths 1 to 4. The first schedule
 *	             draws nothing. pct3: PCT with depth 3; dfs1: at most one choice (dfs: two)
 *	-f           search only schedules in which no CPU keeps a translation
 *	-q           do not minimise what fails
 *	-x points    leave cases whose first schedule or whose way to the first choice is longer
 *	-w offsets   weaken these fences and locked instructions, and print those that are reached
 *	-R schedule  replay this one (text.c) of the case that matches, and show the output
 *
 * The search of a case ends early if ALIKE_MAX schedules in a row were known already.
 * Every CHECK_EVERY-th schedule runs twice, and so does each that fails: if the two differ by a
 * point, something that decides is not input, and that is a finding, too.
 *
 * The first finding of a case ends its search. The runner then looks for a shorter schedule that
 * fails as well, by leaving out parts, larger ones first (Zeller and Hildebrandt, "Simplifying and
 * Isolating Failure-Inducing Input", IEEE TSE 2002), and prints how to replay it. Exit status: 0
 * without findings, 1 with some, 2 for wrong use or if a signal killed a machine before its first
 * choice, 3 if a schedule does not fit the code.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <sys/personality.h>
#include <sys/sendfile.h>
#include <sys/wait.h>

#include "kernel/core/verdict.h"
#include "tests/host/child.h"
#include "tests/host/explore/explore.h"
#include "tests/kernel/test.h"

enum {
	CHECK_EVERY = 64,
	DEPTHS = 4,
	DFS_CHOICES = 2,
	STRATEGIES_DRAWN = POS,
	MINIMISE_S = 30,
	SLACK = 40,
	LONGER = 30,
	ALIKE_MAX = 100,
	WORDS_MAX = 512,
	NOTE_MAX = 64,
	HASHES_MAX = 1 << 21 /* slots: twice as many as schedules */
};
enum { DECISIONS_FIRST = 1000 };

static struct {
	u32 schedules;
	u64 seed, points;
	enum strategy strategy;
	unsigned depth; /* 0: of no strategy in particular */
	const char *words;
	char *replay;
	bool quick, weak, fresh;
} options = {.schedules = 100, .seed = 1, .points = POINTS_MAX, .words = ""};

/* What is known of the case that is explored. */
static struct {
	char name[TEST_NAME_MAX];
	u64 hash[HASHES_MAX]; /* of the schedules so far: open addressing */
	u64 all;              /* a hash of these, in their order */
	u32 runs, distinct, findings;
	u32 alike; /* latest schedules in a row that were known already */
	u64 points, points_max, decisions_most, pages_most, began;
} it;

static jmp_buf case_begins; /* where each child goes on */

/*
 * The runner's own output; and a file with what the machine printed before the first choice. Each
 * child prints that again, because a case may say there which end it expects.
 */
static int shown, unshown;

/* Run the case once as explore_request says. If it failed, *reason says why. */
static enum outcome run_once(char *reason, bool show)
{
	const off_t before = lseek(unshown, 0, SEEK_END);
	struct child child;
	enum outcome outcome;

	memset(explore_result, 0, offsetof(struct explore_result, choice));
	child = child_fork();
	if (child.pid == 0) {
		if (sendfile(STDOUT_FILENO, unshown, &(off_t){0}, (size_t)before) != before)
			host_die("a child cannot write");
		longjmp(case_begins, 1);
	}
	child_finish(&child);
	it.pages_most = MAX(it.pages_most, snapshot_restore());
	outcome = child_outcome(&child, reason);
	if (outcome == OUTCOME_FAIL && (explore_result->finding[0] || !reason[0]))
		format(reason, REASON_MAX, "%s",
		       explore_result->finding[0] ? explore_result->finding : "the case failed");
	if (show)
		child_show(child.text + MIN((size_t)before, child.len), true);
	free(child.text);
	return outcome;
}

/* DFS: the branches of the next schedule (choose.c). False after the last. */
static bool next_branches(void)
{
	struct explore_result *r = explore_result;
	const bool fitted = r->taken == r->branches;
	const u64 after = r->branches ? r->branch[r->branches - 1].question + 1 : 0;

	if (fitted && r->branches < options.depth) {
		r->branch[r->branches++] = (struct branch){.question = after, .answer = 1};
		return true;
	}
	r->branches -= !fitted;
	if (r->branches > 0)
		r->branch[r->branches - 1].answer++;
	return r->branches > 0;
}

static struct explore_request request_of(u32 index)
{
	struct explore_request r = {.seed = options.seed * 0x9e3779b97f4a7c15ULL + index};

	r.fresh = options.fresh;
	r.strategy = options.strategy;
	if (index == 0)
		r.strategy = REPLAY; /* of nothing */
	else if (r.strategy == IN_TURN)
		r.strategy = RANDOM_WALK + index % STRATEGIES_DRAWN;
	r.depth = options.depth ? options.depth : 1 + index / STRATEGIES_DRAWN % DEPTHS;
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

static struct explore_request replay_of(const struct choice *choices, u32 count)
{
	return (struct explore_request){.strategy = REPLAY,
					.points_max = it.points_max,
					.replay = choices,
					.choices = count};
}

/* Does it fail in this way if the choices of explore_request are made, as far as they fit? */
static bool fails(u32 slack, const char *how)
{
	char reason[REASON_MAX];

	explore_request.slack = slack;
	return run_once(reason, false) == OUTCOME_FAIL && same_failure(reason, how);
}

/*
 * Leave out what is not needed: parts, from half of all down to single choices. Returns the number
 * of choices that are left in `best`, which are those that were made.
 */
static u32 leave_out(struct choice *best, u32 count, u32 slack, u64 until, const char *how)
{
	for (u32 part = (count + 1) / 2; part > 0 && clock_ns() < until; part /= 2) {
		for (u32 at = 0; at < count && clock_ns() < until;) {
			explore_request = replay_of(best, count);
			explore_request.left_out = at;
			explore_request.left_out_end = at + part;
			if (!fails(slack, how) || explore_result->choices >= count) {
				at += part;
				continue;
			}
			count = explore_result->choices;
			memcpy(best, explore_result->choice, count * sizeof(*best));
		}
	}
	return count;
}

/* Repeat until nothing can be left out, since a choice may be needed only because of another. */
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
	explore_request = replay_of(best, count);
	if (drawn > CHOICES_MAX || !fails(0, reason)) {
		child_say("# its %u choices, replayed, do not fail: SEED=%llu N=%u finds it "
			  "again\n",
			  drawn, options.seed, it.runs);
		return;
	}
	count = minimise(best, count, reason);
	explore_request = replay_of(best, count);
	explore_request.strict = true;
	run_once(again, true);
	child_say("# minimised from %u choices to %u: %s\n", drawn, count, again);
	child_say("# replay: make explore T=%s CPUS=%u MEM=%lluM", it.name, host_config.cpus,
		  host_config.ram >> 20);
	if (options.words[0])
		child_say(" CMDLINE='%s'", options.words);
	child_say(" SEED='");
	schedule_print(best, count);
	child_say("'\n");
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

static void print_row(const char *note)
{
	const u64 ns = clock_ns() - it.began;

	child_say("%-68s %9u %8u %9llu %6llu %4u %9llu %8u %5llu.%llu  %016llx%s\n", it.name,
		  it.runs, it.distinct, it.points / it.runs, it.pages_most,
		  __builtin_popcountll(explore_result->chosen_from), it.decisions_most, it.findings,
		  ns / NS_PER_S, ns / (NS_PER_S / 10) % 10, it.all, note);
}

/* Count the schedule that has run; it.alike says whether it was known. */
static void count(void)
{
	const u64 hash = explore_result->hash | 1; /* 0 is a free slot */
	u64 slot = hash;

	while (it.hash[slot % HASHES_MAX] && it.hash[slot % HASHES_MAX] != hash)
		slot++;
	it.alike = it.hash[slot % HASHES_MAX] ? it.alike + 1 : 0;
	it.distinct += !it.alike;
	it.hash[slot % HASHES_MAX] = hash;
	it.all = (it.all ^ hash) * 0x9e3779b97f4a7c15ULL;
	it.points += explore_result->points;
	it.decisions_most = MAX(it.decisions_most, explore_result->decisions);
	if (it.runs++ == 0)
		it.points_max = MAX(LONGER * explore_result->points, (u64)POINTS_MAX / 4);
}

/* Why the search ends with the schedule that has run; NULL if it goes on. */
static const char *end_of_search(enum outcome outcome, const char *reason)
{
	const bool endless = same_failure(reason, "livelock") ||
			     strncmp(reason, "no verdict", strlen("no verdict")) == 0;

	if (outcome == OUTCOME_SKIP)
		return "  skipped";
	if (outcome == OUTCOME_FAIL && endless && it.runs == 1)
		return "  too long";
	if (outcome == OUTCOME_FAIL) {
		report(reason);
		return "";
	}
	if (it.runs % CHECK_EVERY == 1 && escapes())
		return "";
	if (it.alike == ALIKE_MAX && options.strategy != DFS)
		return "  no new ones";
	return explore_result->decisions == 0 ? "  nothing to choose" : NULL;
}

static int explore_case(void)
{
	char reason[REASON_MAX], all[NOTE_MAX];
	const char *note = NULL;

	it.began = clock_ns();
	while (!note && it.runs < options.schedules) {
		enum outcome outcome;

		explore_request = request_of(it.runs);
		outcome = run_once(reason, false);
		/* DFS: a schedule that does not meet all its branches has run before */
		if (explore_result->taken == explore_result->branches) {
			count();
			note = end_of_search(outcome, reason);
		}
		if (!note && options.strategy == DFS && !next_branches())
			note = all;
	}
	format(all, sizeof(all), "  all schedules of at most %u choices", options.depth);
	if (explore_result->outcomes)
		child_say("# %s: outcomes 0x%llx\n", it.name, explore_result->outcomes);
	if (options.weak)
		weak_print();
	print_row(note ? note : "");
	return it.findings != 0;
}

static int replay(void)
{
	u32 count;
	const struct choice *choices = schedule_parse(options.replay, &count);
	char reason[REASON_MAX];
	enum outcome outcome;

	explore_request = replay_of(choices, count);
	explore_request.strict = true;
	outcome = run_once(reason, true);
	if (explore_result->misfit)
		return 3;
	child_say("# %s: %s, hash %016llx after %llu points\n", it.name,
		  outcome == OUTCOME_FAIL ? reason : "passed", explore_result->hash,
		  explore_result->points);
	return outcome == OUTCOME_FAIL;
}

/* ---- the machine of a case ---- */

bool explore_search(bool last)
{
	char reason[REASON_MAX];

	if (setjmp(case_begins) != 0)
		return true;
	it.points_max = options.points;
	snapshot_take();
	explore_request = request_of(0);
	if (!last)
		run_once(reason, false);
	if (!last && __builtin_popcountll(explore_result->chosen_from) > 1)
		return false; /* two CPUs will have work of the case at the same time */
	alarm(0);
	dup2(shown, STDOUT_FILENO);
	_exit(options.replay ? replay() : explore_case());
}

static __noreturn void boot_to_case(void)
{
	char cmdline[TEST_NAME_MAX + WORDS_MAX];

	/* provokers go on for a while: here for about 1000 points */
	format(cmdline, sizeof(cmdline), "test.provoke_ms=1 %s test=%s", options.words, it.name);
	shown = dup(STDOUT_FILENO);
	unshown = memfd_create("unshown", 0);
	if (unshown < 0)
		host_die("no file for what the machine prints");
	dup2(unshown, STDOUT_FILENO);
	alarm(host_config.limit_s);
	host_machine_init();
	host_machine_run(cmdline);
}

/* Returns what its process returns: 0, or 1 with a finding, or a mistake; 2 if it was killed. */
static int in_own_process(const struct test_case *tc)
{
	int status;
	pid_t pid;

	memset(explore_result, 0, sizeof(*explore_result));
	test_case_name(tc, it.name, sizeof(it.name));
	explore_request.points_max = options.points;
	pid = fork();
	if (pid == 0)
		boot_to_case();
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		host_die("no child process");
	if (WIFEXITED(status) && WEXITSTATUS(status) < VERDICT_PASS)
		return WEXITSTATUS(status);
	child_say("# %s: the machine ended before there was a choice\n", it.name);
	return WIFSIGNALED(status) ? 2 : 0; /* a panic may be what the case wants */
}

static int explore_all(const struct test_run *run)
{
	u32 findings = 0, cases = 0;
	int status = 0;

	if (!options.replay)
		child_say("%-68s %9s %8s %9s %6s %4s %9s %8s %7s  %s\n", "case", "schedules",
			  "distinct", "points", "pages", "cpus", "decisions", "findings", "s",
			  "hash");
	for (const struct test_case *tc = test_next(run, NULL); tc; tc = test_next(run, tc)) {
		int ended;

		if (options.replay && cases > 0)
			host_die("a schedule is for one case, and \"%s\" matches several",
				 run->patterns);
		ended = in_own_process(tc);
		findings += ended == 1;
		status = MAX(status, ended);
		cases++;
	}
	if (cases == 0)
		host_die("no test matches \"%s\"", run->patterns);
	if (!options.replay)
		child_say("# %u cases, %u findings\n", cases, findings);
	return status;
}

/* Run the process again at fixed addresses: some code hashes them, and places are compared. */
static void without_random_addresses(char **argv)
{
	const int now = personality(0xffffffff);

	if (now & ADDR_NO_RANDOMIZE)
		return;
	if (personality((unsigned long)now | ADDR_NO_RANDOMIZE) >= 0)
		execv("/proc/self/exe", argv);
	host_die("the addresses of a process cannot be fixed");
}

/* Take the name of a strategy, perhaps with a depth. */
static void choose_strategy(const char *name)
{
	static const char *const known[] = {"all", "random", "pct", "pos", "dfs"};
	const size_t letters = strcspn(name, "0123456789");

	while (strlen(known[options.strategy]) != letters ||
	       strncmp(name, known[options.strategy], letters) != 0)
		if (++options.strategy == ARRAY_LEN(known))
			host_die("-p: \"%s\" is not random, pct, pos, dfs or all", name);
	if (options.strategy == DFS)
		options.depth = DFS_CHOICES;
	if (name[letters])
		options.depth = (unsigned)host_number(name + letters, 1, DEPTH_MAX, "-p");
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
	while ((option = getopt(argc, argv, "c:m:k:t:S:s:p:R:w:x:flq")) != -1) {
		switch (option) {
		case 'k':
			options.words = optarg;
			break;
		case 'S':
			options.schedules = (u32)host_number(optarg, 1, HASHES_MAX / 2, "-S");
			break;
		case 's':
			options.seed = host_number(optarg, 0, UINT64_MAX, "-s");
			break;
		case 'p':
			choose_strategy(optarg);
			break;
		case 'R':
			options.replay = optarg;
			break;
		case 'w':
			weak_parse(optarg);
			options.weak = true;
			break;
		case 'x':
			options.points = host_number(optarg, 1, POINTS_MAX, "-x");
			break;
		case 'f':
			options.fresh = true;
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
	host_symbols_init();
	explore_result = mmap(NULL, sizeof(*explore_result), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (explore_result == MAP_FAILED)
		host_die("out of memory");
	if (list)
		return child_list(&run);
	return explore_all(&run);
}
