/*
 * What all cases of a suite begin and end with:
 *
 *	FIXTURE(program_signal, program_box_begin, program_box_end);
 *
 * Each case of the suite runs between the two. The end comes however the case ends: after a failed
 * REQUIRE and after a SKIP, too. If the beginning returns false, the case does not run, and the end
 * comes all the same. The case has failed then, unless the beginning called test_skip().
 */
#pragma once

#include "kernel/lib/types.h"

struct fixture {
	const char *suite;
	bool (*begin)(void);
	void (*end)(void);
};

TABLE_DECLARE(const struct fixture, fixture_table);

#define FIXTURE(of, at_begin, at_end)                                                              \
	static const struct fixture fixture_##of TABLE_ENTRY(fixture_table) = {                    \
		.suite = #of, .begin = at_begin, .end = at_end}
