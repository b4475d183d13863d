/*
 * The end of a run. The verdict is printed in the last two lines on every machine, because hardware
 * has no exit status. Where a host takes an exit status, machine_end() passes the verdict to it.
 */
#include "kernel/core/verdict.h"

#include <arch/atomic.h>
#include <arch/console.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/core/run_record.h"
#include "kernel/core/watchdog.h"

static unsigned total_pass, total_fail, total_skip;
static verdict_check_fn *last_check;
static u16 program_status = RUN_NO_STATUS;

void verdict_check(verdict_check_fn *check)
{
	last_check = check;
}

static bool check_passes(void)
{
	const bool passes = cmdline_passes();

	if (!passes)
		verdict_count(0, 1, 0);
	return (!last_check || last_check()) && passes;
}

void verdict_count(unsigned pass, unsigned fail, unsigned skip)
{
	atomic_add_relaxed(&total_pass, pass);
	atomic_add_relaxed(&total_fail, fail);
	atomic_add_relaxed(&total_skip, skip);
}

void verdict_status(u8 status)
{
	atomic_store_relaxed(&program_status, status);
}

static __noreturn void print_and_end(enum verdict verdict)
{
	static const char *const names[] = {"pass", "fail", "skipped", "crash"};
	const u16 status = atomic_load_relaxed(&program_status);
	char ended[16] = "";

	atomic_store_relaxed(&watchdog_stopped, true);
	if (verdict == VERDICT_PASS && run_record_unfinished) {
		print("# the run before this one ended in a reset, so this run cannot pass "
		      "(end.unfinished=ok allows it)\n");
		verdict = VERDICT_CRASH;
	}
	run_record_end((u16)verdict, status);
	if (machine_end_pages())
		print("# keys page through the log: Space, b, Enter, k, g, G\n");
	print("# totals pass:%u fail:%u skip:%u\n", atomic_load_relaxed(&total_pass),
	      atomic_load_relaxed(&total_fail), atomic_load_relaxed(&total_skip));
	if (status != RUN_NO_STATUS)
		format(ended, sizeof(ended), " status=%u", status);
	print("ASHLAR-END verdict=%s code=0x%x%s\n", names[verdict - VERDICT_PASS],
	      (unsigned)verdict, ended);
	machine_end(verdict);
}

void verdict_end_with(enum verdict verdict)
{
	if ((verdict == VERDICT_PASS || verdict == VERDICT_SKIPPED) && !check_passes())
		verdict = VERDICT_FAIL;
	print_and_end(verdict);
}

void verdict_end(void)
{
	const bool passes = check_passes();

	if (atomic_load_relaxed(&total_fail) || !passes)
		print_and_end(VERDICT_FAIL);
	print_and_end(atomic_load_relaxed(&total_pass) ? VERDICT_PASS : VERDICT_SKIPPED);
}
