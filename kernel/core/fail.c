/*
 * Fault injection: see fail.h.
 */
#include "kernel/core/fail.h"

#include <arch/clock.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"

static const char *const names[FAIL_SITES] = {"alloc", "meta", "open", "isolate",
					      "take",  "move", "pte"};

static u64 every, ap_hangs, ipi_late_us, ipis_late; /* the last: atomic */
OPTION_U64(debug.fail, every, 0, 0xffffffff,
	   "test: of all steps that may fail, from the end of start-up on, each N-th does",
	   .boot_only = true);
OPTION_U64(debug.ap_hangs, ap_hangs, 0, 0xffff, "test: this CPU hangs while it starts",
	   .boot_only = true);
OPTION_U64(debug.ipi_late_us, ipi_late_us, 0, 1000000, "test: messages are answered so late",
	   .boot_only = true);

void fail_arm(struct fail_plan *plan, enum fail_site site, u32 nth, enum fail_again again)
{
	plan->count[site].every = again == FAIL_AGAIN ? nth : 0;
	atomic_store_release(&plan->count[site].left, nth); /* others may pass meanwhile */
	atomic_store_relaxed(&plan->armed, true);
}

bool fail_disarm(struct fail_plan *plan)
{
	bool all = true;

	atomic_store_relaxed(&plan->armed, false);
	for (unsigned i = 0; i <= FAIL_ANY; i++) {
		all &= atomic_load_relaxed(&plan->count[i].left) == 0;
		atomic_store_relaxed(&plan->count[i].left, 0);
	}
	return all;
}

/* Count down. True for the caller whose step brings the count to its end. */
static bool count_down(struct fail_count *count)
{
	u32 left = atomic_load_acquire(&count->left);

	while (left > 0 && !atomic_cas(&count->left, left, left == 1 ? count->every : left - 1))
		left = atomic_load_acquire(&count->left);
	return left == 1;
}

bool fail_passed(struct fail_plan *plan, enum fail_site site)
{
	const bool by_site = count_down(&plan->count[site]),
		   by_any = count_down(&plan->count[FAIL_ANY]);

	atomic_add_relaxed(&plan->passed[site], 1);
	if (by_site || by_any)
		atomic_add_relaxed(&plan->failed[site], 1);
	return by_site || by_any;
}

bool fail_ap(cpu_t cpu)
{
	return cpu > 0 && cpu == ap_hangs;
}

void fail_delay_ipi(void)
{
	if (likely(!ipi_late_us))
		return;
	atomic_add_relaxed(&ipis_late, 1);
	clock_delay_ns(ipi_late_us * NS_PER_US);
}

void fail_begin(struct fail_plan *plan)
{
	if (every > 0)
		fail_arm(plan, FAIL_ANY, (u32)every, FAIL_AGAIN);
}

void fail_print(const struct fail_plan *plan)
{
	for (unsigned i = 0; i < FAIL_SITES; i++)
		if (atomic_load_relaxed(&plan->passed[i]))
			print("  fail     %-8s passed %llu times, failed %llu\n", names[i],
			      plan->passed[i], plan->failed[i]);
	if (ipis_late)
		print("  fail     %-8s answered late %llu times, by %llu us\n", "ipi", ipis_late,
		      ipi_late_us);
}
