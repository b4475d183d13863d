/*
 * KTAP runner: suites are the top-level tests, their cases the nested ones ("The Kernel Test
 * Anything Protocol", version 1, Linux documentation, 2021-12).
 *
 *	KTAP version 1
 *	1..1
 *	  KTAP version 1
 *	  # Subtest: mm.buddy
 *	  1..2
 *	  ok 1 merge
 *	  # mm.buddy.split: mm/buddy_test.c:40: order is 3, want is 2
 *	  not ok 2 split
 *	# mm.buddy: pass:1 fail:1 skip:0
 *	not ok 1 mm.buddy
 *
 * Cases run in the order of their names, whatever order the linker gathered them in, so that two
 * builds print the same. No memory is needed: the runner finds the next suite or case by scanning
 * the table for the smallest name above the last one.
 */
#include "kernel/console/command.h"
#include "kernel/console/input.h"
#include "kernel/core/verdict.h"
#include "tests/kernel/test.h"

enum { REASON_MAX = 256, TEXT_MAX = 1000 };

/* The running case. Threads of the case on other CPUs may report failures too. */
static struct {
	struct test_run *run;
	const struct test_case *tc;
	u32 failures;
	unsigned options; /* that were chosen before it */
	bool skipped;
} current;
static char skip_reason[REASON_MAX];

/* Switches that cases chose, restored when the case ends. Those of the running case come last. */
/* One more entry for hvo=, which an arena with a phantom chooses. */
static struct option_saved saved[2 * TEST_OPTIONS_MAX + 1];
static unsigned saved_count;

static __printf(2, 3) void emit(const struct test_run *run, const char *fmt, ...)
{
	char text[TEXT_MAX];

	FORMAT_ARGS(text, sizeof(text), fmt);
	if (run->emit)
		run->emit(run, text);
	else
		print("%s", text);
}

void test_suite_name(const struct test_case *tc, char *buf, size_t size)
{
	char *underscore;

	format(buf, size, "%s", tc->suite);
	underscore = strchr(buf, '_');
	if (underscore)
		*underscore = '.';
}

void test_case_name(const struct test_case *tc, char *buf, size_t size)
{
	size_t n;

	test_suite_name(tc, buf, size);
	n = strlen(buf);
	format(buf + n, size - n, ".%s", tc->name);
}

/*
 * Linear in memory, no recursion: on a mismatch the latest * takes one more character, which is
 * enough because a later * can always do what an earlier one could.
 */
bool glob_match(const char *pattern, const char *text)
{
	const char *star = NULL, *retry = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			retry = text;
		} else if (*pattern && (*pattern == '?' || *pattern == *text)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++retry;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

/*
 * True if one of the comma-separated globs matches the case's full name, or its whole suite, and
 * none of the globs that follow a minus sign does.
 */
static bool selected(const struct test_case *tc, const char *patterns)
{
	char name[TEST_NAME_MAX], suite[TEST_NAME_MAX], glob[TEST_NAME_MAX];
	bool found = false;

	test_case_name(tc, name, sizeof(name));
	test_suite_name(tc, suite, sizeof(suite));
	for (const char *p = patterns; *p;) {
		const char *comma = strchr(p, ',');
		const int n = comma ? (int)(comma - p) : (int)strlen(p), minus = *p == '-';

		format(glob, sizeof(glob), "%.*s", n - minus, p + minus);
		if (glob_match(glob, name) || glob_match(glob, suite)) {
			if (minus)
				return false;
			found = true;
		}
		p += n + (comma ? 1 : 0);
	}
	return found;
}

/*
 * Order by suite, then name, then place in the table. Two cases may share a name by mistake; both
 * run.
 */
static int case_order(const struct test_case *a, const struct test_case *b)
{
	int by_suite = strcmp(a->suite, b->suite);
	int by_name = by_suite ? by_suite : strcmp(a->name, b->name);

	return by_name ? by_name : a < b ? -1 : a > b;
}

const struct test_case *test_next(const struct test_run *run, const struct test_case *after)
{
	const struct test_case *best = NULL;

	for (const struct test_case *tc = run->begin; tc < run->end; tc++) {
		if (after && case_order(tc, after) <= 0)
			continue;
		if (best && case_order(tc, best) >= 0)
			continue;
		if (selected(tc, run->patterns))
			best = tc;
	}
	return best;
}

static bool same_suite(const struct test_case *a, const struct test_case *b)
{
	return b && strcmp(a->suite, b->suite) == 0;
}

unsigned test_count(const struct test_run *run, const struct test_case *first)
{
	const struct test_case *tc = first;
	unsigned n = 0;

	for (; tc && same_suite(first, tc); tc = test_next(run, tc))
		n++;
	return n;
}

unsigned test_suites(const struct test_run *run)
{
	const struct test_case *last = NULL;
	unsigned n = 0;

	for (const struct test_case *tc = test_next(run, NULL); tc; tc = test_next(run, tc)) {
		if (!last || !same_suite(last, tc))
			n++;
		last = tc;
	}
	return n;
}

void test_fail(const char *file, int line, const char *fmt, ...)
{
	char name[TEST_NAME_MAX], what[TEXT_MAX / 2];

	FORMAT_ARGS(what, sizeof(what), fmt);
	test_case_name(current.tc, name, sizeof(name));
	emit(current.run, "  # %s: %s:%d: %s\n", name, file, line, what);
	atomic_fetch_add(&current.failures, 1);
}

/* A # in the reason would end it for the programs that read it. */
void test_skip(const char *fmt, ...)
{

	FORMAT_ARGS(skip_reason, sizeof(skip_reason), fmt);
	for (char *p = skip_reason; *p; p++) {
		if (*p == '#' || *p == '\n')
			*p = ' ';
	}
	current.skipped = true;
}

bool test_failed(void)
{
	return atomic_load_relaxed(&current.failures) != 0;
}

bool test_skipped(void)
{
	return current.skipped;
}

void test_option(const char *name, const char *value)
{
	const struct option *opt = option_find(name);

	if (saved_count == ARRAY_LEN(saved) || !opt ||
	    option_set_for_now(opt, value, &saved[saved_count]) != 0)
		test_fail(current.tc->file, 0, "%s=%s cannot be chosen", name, value);
	else
		saved_count++;
}

void test_options_back(void)
{
	option_put_back(&saved[current.options], saved_count - current.options);
	saved_count = current.options;
}

/* Run the case and print its result. A failure outweighs a skip. */
static void run_case(struct test_run *run, const struct test_case *tc, unsigned number)
{
	const u64 start = clock_ns();

	current.tc = tc;
	current.options = saved_count;
	current.skipped = false;
	atomic_store_relaxed(&current.failures, 0);
	test_before_case(tc);
	if (!test_failed() && !current.skipped)
		tc->run();
	if (!test_after_case())
		test_fail(tc->file, 0, "the case left the machine changed (see the lines above)");
	test_options_back();
	emit(run, "  # time_ns %llu\n", clock_ns() - start);

	if (test_failed()) {
		run->fail++;
		emit(run, "  not ok %u %s\n", number, tc->name);
	} else if (current.skipped) {
		run->skip++;
		emit(run, "  ok %u %s # SKIP %s\n", number, tc->name, skip_reason);
	} else {
		run->pass++;
		emit(run, "  ok %u %s\n", number, tc->name);
	}
}

/*
 * Run all selected cases of the suite that begins with `first`. Returns the first case of the next
 * suite, or NULL if Ctrl-C was typed.
 */
static const struct test_case *run_suite(struct test_run *run, const struct test_case *first,
					 unsigned number)
{
	struct test_run before = *run;
	const struct test_case *tc = first;
	char name[TEST_NAME_MAX];
	bool skipped, stopped = false;

	test_suite_name(first, name, sizeof(name));
	emit(run, "  KTAP version 1\n  # Subtest: %s\n  1..%u\n", name, test_count(run, first));
	for (unsigned i = 1; tc && same_suite(first, tc);
	     tc = stopped ? NULL : test_next(run, tc)) {
		run_case(run, tc, i++);
		stopped = input_stop_asked();
	}
	if (stopped)
		return NULL;

	skipped = run->pass == before.pass && run->fail == before.fail;
	emit(run, "# %s: pass:%u fail:%u skip:%u\n", name, run->pass - before.pass,
	     run->fail - before.fail, run->skip - before.skip);
	emit(run, "%s %u %s%s\n", run->fail > before.fail ? "not ok" : "ok", number, name,
	     skipped ? " # SKIP every case was skipped" : "");
	return tc;
}

/*
 * Cases of the KTAP suite run a private table while a case of the outer table runs, so the state of
 * the outer case is saved and restored.
 */
void test_run_table(struct test_run *run)
{
	const __typeof__(current) outer = current;
	const struct test_case *tc = test_next(run, NULL);
	const unsigned planned = test_suites(run);
	unsigned number = 0;

	current.run = run;
	emit(run, "KTAP version 1\n1..%u\n", planned);
	while (tc)
		tc = run_suite(run, tc, ++number);
	if (input_stop_asked()) {
		emit(run, "Bail out! stopped by Ctrl-C\n");
	} else if (number != planned) { /* a case overwrote the patterns or the table */
		emit(run, "# %u suites were planned, %u ran\n", planned, number);
		run->fail++;
	}

	current = outer;
}

unsigned tests_run(const char *patterns)
{
	struct test_run run = {
		.begin = __start_test_table, .end = __stop_test_table, .patterns = patterns};

	if (!test_before_run())
		run.fail = 1;
	else
		test_run_table(&run);
	if (!run.pass && !run.fail && !run.skip) {
		print("# no test matches \"%s\"\n", patterns);
		run.fail = 1;
	}
	verdict_count(run.pass, run.fail, run.skip);
	return run.fail;
}

/* ---- the command ---- */

static int cmd_test(const struct words *words)
{
	static struct option_saved typed[WORDS_MAX]; /* commands run on the boot CPU only */
	const int count = cmd_options(words, "test", typed);

	if (count < 0)
		return count;
	tests_run(words_plain(words, 1));
	option_put_back(typed, (unsigned)count);
	return 0;
}

/* Suites first, as SUITE.; once a suite is typed, its cases. */
static bool test_candidate(const struct words *words, unsigned at, unsigned n, char *buf,
			   size_t size)
{
	const char *typed = at < words->count ? words->word[at] : "";
	char suite[TEST_NAME_MAX];
	const struct test_case *tc;

	TABLE_FOREACH(tc, test_table)
	{
		const bool again = tc > __start_test_table && strcmp(tc->suite, tc[-1].suite) == 0;
		size_t len;

		test_suite_name(tc, suite, sizeof(suite));
		len = strlen(suite);
		if (strncmp(typed, suite, len) == 0 && typed[len] == '.')
			format(buf, size, "%s.%s", suite, tc->name);
		else if (!again)
			format(buf, size, "%s.", suite);
		else
			continue;
		if (n-- == 0)
			return at == 1;
	}
	return false;
}

COMMAND(test, .usage = "PATTERN [KEY=VALUE ...]",
	.help = "run the test cases that match, e.g. test mm.buddy.*; Ctrl-C stops after a case",
	.min = 1, .max = 1, .keys = "*", .run = cmd_test, .candidate = test_candidate,
	.counts = true);
