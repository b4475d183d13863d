/*
 * Test cases, compiled into the kernel and into the hosted runner alike. Results are KTAP on the
 * console.
 *
 *	TEST(mm_buddy, merge_stops_at_zone_border)
 *	{
 *		EXPECT_EQ(order, 3);
 *	}
 *
 * is the case "mm.buddy.merge_stops_at_zone_border": the first underscore of the suite becomes a
 * dot.
 *
 * A failed EXPECT records the failure and the case goes on; REQUIRE ends the case. SKIP ends it
 * with a reason; the host's suite pins the expected skips. Cases clean up after themselves. After
 * each case the runner checks that every frame is accounted for.
 */
#pragma once

#include <arch/atomic.h>
#include <arch/clock.h>
#include <arch/cpu.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/core/shootdown.h"
#include "kernel/lib/string.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/said.h"

struct test_case {
	const char *suite, *name, *file;
	void (*run)(void);
};

TABLE_DECLARE(const struct test_case, test_table);

#define TEST(s, n)                                                                                 \
	static void test_##s##_##n(void);                                                          \
	static const struct test_case test_case_##s##_##n TABLE_ENTRY(test_table) = {              \
		.suite = #s, .name = #n, .file = __FILE__, .run = test_##s##_##n};                 \
	static void test_##s##_##n(void)

void test_fail(const char *file, int line, const char *fmt, ...) __printf(3, 4);
void test_skip(const char *fmt, ...) __printf(1, 2);
bool test_failed(void);
bool test_skipped(void);

#define EXPECT(cond)                                                                               \
	do {                                                                                       \
		if (!(cond))                                                                       \
			test_fail(__FILE__, __LINE__, "expected %s", #cond);                       \
	} while (0)
#define EXPECT_EQ(a, b)                                                                            \
	do {                                                                                       \
		u64 _a = (u64)(a), _b = (u64)(b);                                                  \
		if (_a != _b)                                                                      \
			test_fail(__FILE__, __LINE__, "%s is %llu, %s is %llu", #a, _a, #b, _b);   \
	} while (0)
#define REQUIRE(cond)                                                                              \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			test_fail(__FILE__, __LINE__, "required %s", #cond);                       \
			return;                                                                    \
		}                                                                                  \
	} while (0)
#define SKIP(...)                                                                                  \
	do {                                                                                       \
		test_skip(__VA_ARGS__);                                                            \
		return;                                                                            \
	} while (0)

/*
 * For a case that holds only with one value of a switch (hvo=, contig=). The switch has that value
 * until the case ends, however it ends; all other cases run with the value of the command line. CPU
 * 0 only, at most TEST_OPTIONS_MAX in a case.
 */
enum { TEST_OPTIONS_MAX = 4 };
void test_option(const char *name, const char *value);

/* Put them back now, for test_after_case(), once no other CPU works on the case. */
void test_options_back(void);

/*
 * Called after each case (after_case.c). True if every frame is accounted for and nothing
 * else was left behind. Otherwise it prints what is wrong, and the case fails.
 */
bool test_after_case(void);

/*
 * Called before each case. It records the state that test_after_case() checks, and
 * begins what the case is to find. A case that has failed or was skipped by then does not run.
 */
void test_before_case(const struct test_case *tc);

/*
 * Called before a run. False if the machine is not in the state that cases need; it
 * then prints the reason, and nothing is run.
 */
bool test_before_run(void);

/*
 * One run over a table of cases. tests_run() runs the linker's table; private tables test the
 * runner itself.
 */
struct test_run {
	const struct test_case *begin, *end;
	const char *patterns;
	void (*emit)(const struct test_run *run, const char *text); /* NULL: print() */
	void *ctx;                                                  /* for use by emit */
	unsigned pass, fail, skip;                                  /* results */
};

enum { TEST_NAME_MAX = 128 };

void test_run_table(struct test_run *run);

/* The names of a case: "mm.buddy" and "mm.buddy.merge". */
void test_suite_name(const struct test_case *tc, char *buf, size_t size);
void test_case_name(const struct test_case *tc, char *buf, size_t size);

/*
 * The selected cases in the order of their names: the first (`after` NULL), or the one after
 * `after`; NULL at the end.
 */
const struct test_case *test_next(const struct test_run *run, const struct test_case *after);

/* Number of selected cases in the suite that starts with `first`; number of selected suites. */
unsigned test_count(const struct test_run *run, const struct test_case *first);
unsigned test_suites(const struct test_run *run);

/*
 * Run the cases that match a glob ("mm.buddy.*"; commas separate several), printing KTAP. Adds to
 * the totals that verdict_end() reports. Returns the number of failures; selecting no case is
 * itself a failure.
 */
unsigned tests_run(const char *patterns);

/*
 * Shell-style match of `text` against `pattern` with * and ?: "mm.buddy.*" matches
 * "mm.buddy.merge".
 */
bool glob_match(const char *pattern, const char *text);
