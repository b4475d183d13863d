/*
 * The end of a run: totals, the end marker that programs wait for, and the exit.
 *
 *	# totals pass:P fail:F skip:S
 *	ASHLAR-END verdict=pass|fail|skipped|crash code=0x10|0x11|0x12|0x13
 */
#pragma once

#include "kernel/types.h"

enum verdict { VERDICT_PASS = 0x10, VERDICT_FAIL = 0x11, VERDICT_SKIPPED = 0x12, VERDICT_CRASH = 0x13 };

void verdict_count(unsigned pass, unsigned fail, unsigned skip);

/*
 * Have `check` run once at the end of the run, before the verdict is given: if it returns false, what would have been a pass, or
 * skipped, is a failure. One check; start-up.
 */
typedef bool verdict_check_fn(void);
void verdict_check(verdict_check_fn *check);

/*
 * Pass if something passed and nothing failed, skipped if nothing ran, fail otherwise; then end. The end of a program, also when it just
 * returns: pages that it still has make it fail (mm/leaks.h). On the boot CPU, when all others are idle.
 *
 * verdict_end_with(): end as given. Only a pass or skipped is checked first.
 */
__noreturn void verdict_end(void);
__noreturn void verdict_end_with(enum verdict verdict);
