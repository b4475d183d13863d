/*
 * Test cases, compiled into the kernel and into the hosted runner alike; results are KTAP on the console.
 *
 *	TEST(mm_buddy, merge_stops_at_zone_border)
 *	{
 *		EXPECT_EQ(order, 3);
 *	}
 *
 * is the case "mm.buddy.merge_stops_at_zone_border": the first underscore of the suite becomes a dot. A failed EXPECT
 * records the failure and the case goes on; REQUIRE ends the case. SKIP ends it with a reason; expected skips are
 * pinned by the host's suite. Cases clean up after themselves; after each the runner checks that every frame is
 * accounted for.
 */
#pragma once

#include "kernel/types.h"

struct test_case {
	const char *suite, *name, *file;
	void (*run)(void);
};

TABLE_DECLARE(const struct test_case, test_table);

#define TEST(s, n)                                                                                                     \
	static void test_##s##_##n(void);                                                                              \
	static const struct test_case test_case_##s##_##n TABLE_ENTRY(test_table) = {                                  \
		.suite = #s, .name = #n, .file = __FILE__, .run = test_##s##_##n};                                     \
	static void test_##s##_##n(void)

void test_fail(const char *file, int line, const char *fmt, ...) __printf(3, 4);
void test_skip(const char *fmt, ...) __printf(1, 2);
bool test_failed(void);

#define EXPECT(cond)                                                                                                   \
	do {                                                                                                           \
		if (!(cond))                                                                                           \
			test_fail(__FILE__, __LINE__, "expected %s", #cond);                                           \
	} while (0)
#define EXPECT_EQ(a, b)                                                                                                \
	do {                                                                                                           \
		u64 _a = (u64)(a), _b = (u64)(b);                                                                      \
		if (_a != _b)                                                                                          \
			test_fail(__FILE__, __LINE__, "%s is %llu, %s is %llu", #a, (unsigned long long)_a, #b,        \
				  (unsigned long long)_b);                                                             \
	} while (0)
#define REQUIRE(cond)                                                                                                  \
	do {                                                                                                           \
		if (!(cond)) {                                                                                         \
			test_fail(__FILE__, __LINE__, "required %s", #cond);                                           \
			return;                                                                                        \
		}                                                                                                      \
	} while (0)
#define SKIP(...)                                                                                                      \
	do {                                                                                                           \
		test_skip(__VA_ARGS__);                                                                                \
		return;                                                                                                \
	} while (0)

/*
 * For cases that can only be true with one value of a switch (hvo=, contig=): it has it until the case ends, however that
 * is. What the command line chose is tried by all others. CPU 0, at most TEST_OPTIONS_MAX in a case.
 */
enum { TEST_OPTIONS_MAX = 4 };
void test_option(const char *name, const char *value);

/*
 * Called after each case, where defined (mm/): true if every frame is accounted for and nothing else was left behind.
 * What is wrong is printed there; the case fails.
 */
bool test_after_case(void) __attribute__((weak));

/* Called before each case, where defined: what test_after_case() compares with. */
void test_before_case(void) __attribute__((weak));

/* Called before a run, likewise: false if the machine is not as cases need it; the reason is printed there, nothing is run. */
bool test_before_run(void) __attribute__((weak));

/* One run over a table of cases. The table of the linker is run by tests_run(); private ones test the runner itself. */
struct test_run {
	const struct test_case *begin, *end;
	const char *patterns;
	void (*emit)(const struct test_run *run, const char *text); /* NULL: print() */
	void *ctx;                                                  /* emit's */
	unsigned pass, fail, skip;                                  /* results */
};

enum { TEST_NAME_MAX = 128 };

void test_run_table(struct test_run *run);

/* "mm.buddy" and "mm.buddy.merge" of a case. */
void test_suite_name(const struct test_case *tc, char *buf, size_t size);
void test_case_name(const struct test_case *tc, char *buf, size_t size);

/* Selected cases in the order of their names: the first (`after` NULL), or the one after `after`; NULL at the end. */
const struct test_case *test_next(const struct test_run *run, const struct test_case *after);

/* Selected cases of the suite that starts with `first`; selected suites. */
unsigned test_count(const struct test_run *run, const struct test_case *first);
unsigned test_suites(const struct test_run *run);

/*
 * Run the cases that match a glob ("mm.buddy.*"; commas separate several), printing KTAP. Adds to the totals that
 * verdict_end() reports. Returns how many failed; selecting nothing is itself a failure.
 */
unsigned tests_run(const char *patterns);
