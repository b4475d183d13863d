/*
 * The KTAP runner, run on private tables of cases that pass, fail, skip and leave things behind.
 * Its output is compared line by line, without the lines with durations, which alone differ from
 * run to run.
 */
#include "tests/kernel/test.h"

enum { TRANSCRIPT_MAX = 2048 };

struct transcript {
	char text[TRANSCRIPT_MAX];
	size_t len;
};

static void collect(const struct test_run *run, const char *text)
{
	struct transcript *t = run->ctx;
	const char *time = "  # time_ns ";

	if (strncmp(text, time, strlen(time)) == 0)
		return;
	t->len += (size_t)format(t->text + t->len, sizeof(t->text) - t->len, "%s", text);
	t->len = MIN(t->len, sizeof(t->text) - 1);
}

static void passes(void)
{
}

static void fails_twice(void)
{
	test_fail("x.c", 7, "first");
	test_fail("x.c", 8, "second is %d", 2);
}

static void skips(void)
{
	SKIP("no such # thing");
}

static void skips_after_failing(void)
{
	test_fail("x.c", 9, "bad");
	SKIP("too late");
}

static const struct test_case cases[] = {
	{.suite = "zz_last", .name = "only", .file = "x.c", .run = passes},
	{.suite = "aa_first_of", .name = "two", .file = "x.c", .run = skips},
	{.suite = "aa_first_of", .name = "one", .file = "x.c", .run = passes},
	{.suite = "mm_mid", .name = "broken", .file = "x.c", .run = fails_twice},
	{.suite = "mm_mid", .name = "worse", .file = "x.c", .run = skips_after_failing},
	{.suite = "nn_none", .name = "skipped", .file = "x.c", .run = skips},
};

static struct transcript said;

/* Run a table of cases of its own. */
static struct test_run run_table(const struct test_case *table, size_t count, const char *patterns)
{
	struct test_run run = {.begin = table,
			       .end = table + count,
			       .patterns = patterns,
			       .emit = collect,
			       .ctx = &said};

	said = (struct transcript){.len = 0};
	test_run_table(&run);
	return run;
}
#define RUN(table, patterns) run_table(table, ARRAY_LEN(table), patterns)

static void expect_text(const char *want)
{
	const struct transcript *t = &said;
	size_t i = 0;

	while (t->text[i] && t->text[i] == want[i])
		i++;
	if (t->text[i] != want[i])
		test_fail(__FILE__, __LINE__, "differs at byte %zu: got \"%.40s\", want \"%.40s\"",
			  i, t->text + i, want + i);
}

TEST(kernel_ktap, failures_say_where_and_outweigh_skips)
{
	const struct test_run run = RUN(cases, "mm.mid");

	EXPECT_EQ(run.fail, 2);
	EXPECT_EQ(run.pass + run.skip, 0);
	expect_text("KTAP version 1\n"
		    "1..1\n"
		    "  KTAP version 1\n"
		    "  # Subtest: mm.mid\n"
		    "  1..2\n"
		    "  # mm.mid.broken: x.c:7: first\n"
		    "  # mm.mid.broken: x.c:8: second is 2\n"
		    "  not ok 1 broken\n"
		    "  # mm.mid.worse: x.c:9: bad\n"
		    "  not ok 2 worse\n"
		    "# mm.mid: pass:0 fail:2 skip:0\n"
		    "not ok 1 mm.mid\n");
	EXPECT(!test_failed()); /* failures of the inner run are not those of this case */
}

TEST(kernel_ktap, what_follows_a_minus_is_left_out)
{
	struct test_run run = RUN(cases, "-aa.first_of.two,*,-mm.mid,-nn.none");

	EXPECT_EQ(run.pass, 2);
	EXPECT_EQ(run.fail + run.skip, 0);
	run = RUN(cases, "-aa.*");
	EXPECT_EQ(run.pass + run.fail + run.skip, 0);
}

static char fragile_patterns[] = "aa.*,zz.*";

static void ruins_the_patterns(void)
{
	fragile_patterns[0] = 'x';
	fragile_patterns[5] = 'x';
}

/* A run that ends before its plan must not look like a pass. */
TEST(kernel_ktap, a_plan_not_kept_is_a_failure)
{
	static const struct test_case sabotage[] = {
		{.suite = "aa_one", .name = "ruins", .file = "x.c", .run = ruins_the_patterns},
		{.suite = "zz_two", .name = "never_runs", .file = "x.c", .run = passes},
	};
	struct test_run run;

	memcpy(fragile_patterns, "aa.*,zz.*", sizeof(fragile_patterns));
	run = RUN(sabotage, fragile_patterns);
	EXPECT_EQ(run.pass, 1);
	EXPECT_EQ(run.fail, 1);
}

/* ---- options that a case sets ---- */

static void chooses(void)
{
	test_option("selftest_number", "9");
	test_option("selftest_number", "11");
}

static void chooses_what_is_not_there(void)
{
	test_option("selftest_number", "many");
	test_option("no_such_switch", "on");
}

static const struct test_case choosers[] = {
	{.suite = "aa_one", .name = "chooses", .file = "x.c", .run = chooses},
	{.suite = "bb_two", .name = "in_vain", .file = "x.c", .run = chooses_what_is_not_there},
};

/* The inner run restores only the options that its own cases set. */
TEST(kernel_ktap, what_a_case_chooses_ends_with_it)
{
	const struct option *opt = option_find("selftest_number");
	char value[OPTION_VALUE_MAX];
	struct test_run run;

	REQUIRE(opt);
	test_option("selftest_number", "5");
	run = RUN(choosers, "*");
	EXPECT(option_show(opt, value, sizeof(value)) && strcmp(value, "5") == 0);
	EXPECT_EQ(run.pass, 1);
	EXPECT_EQ(run.fail, 1);
}
