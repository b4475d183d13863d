/*
 * The end of a run: totals, the end marker that programs wait for, and the exit.
 *
 *	# totals pass:P fail:F skip:S
 *	ASHLAR-END verdict=pass|fail|skipped|crash code=0x10|0x11|0x12|0x13 [status=0..255]
 *
 * `status` is there if the run was for a program that ended (verdict_status()).
 */
#pragma once

#include "kernel/lib/types.h"

enum verdict {
	VERDICT_PASS = 0x10,
	VERDICT_FAIL = 0x11,
	VERDICT_SKIPPED = 0x12,
	VERDICT_CRASH = 0x13
};

void verdict_count(unsigned pass, unsigned fail, unsigned skip);

/*
 * The exit status of the program that the run is for: the end marker and the run's record carry it,
 * and tests/qemu/launch.py ends with it if the run fails. The last call counts. It does not decide
 * the verdict: verdict_count() does. Context: handler.
 */
void verdict_status(u8 status);

/*
 * Register `check`, to run once at the end of the run, before the verdict is given. If it returns
 * false, a run that would have been a pass or skipped is a failure. There is one check, set during
 * start-up.
 */
typedef bool verdict_check_fn(void);
void verdict_check(verdict_check_fn *check);

/*
 * End the run: fail if something failed, else pass if something passed, else skipped. A program
 * that returns also ends here. Pages that it still owns make the run fail (mm/debug/leaks.h).
 * Called on the boot CPU, when all others are idle.
 *
 * verdict_end_with(): end with the given verdict. The check runs only before a pass or skipped.
 */
__noreturn void verdict_end(void);
__noreturn void verdict_end_with(enum verdict verdict);
