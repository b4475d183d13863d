/*
 * Fault injection: see fail.h.
 */
#include "kernel/core/fail.h"

#include <arch/clock.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"

enum { IPI_DELAY_MAX_US = 1000000 };

/* The sites, and what does not belong to a machine: a CPU that hangs, and a delay. */
enum { WISH_AP = FAIL_SITES, WISH_IPI, WISHES };
static const char *const names[WISHES] = {"alloc", "meta", "open", "isolate", "take",
					  "move",  "pte",  "ap",   "ipi"};

/*
 * The failures that the command line asks for: left 0: none; WISH_AP: a CPU; WISH_IPI:
 * microseconds. Before fail_begin(), only the last two act.
 */
static struct fail_count wishes[WISHES];
static u64 ipis_delayed;

/* Parse "site:number" or "site:number+" at *p, and move *p past it. */
static int parse_wish(struct fail_count w[WISHES], const char **p)
{
	const char *colon = strchr(*p, ':');
	const size_t len = colon ? (size_t)(colon - *p) : 0;
	unsigned i = 0;
	u64 number;
	int err;

	while (i < WISHES && (strlen(names[i]) != len || strncmp(names[i], *p, len) != 0))
		i++;
	if (i == WISHES)
		return -EINVAL;
	*p = colon + 1;
	err = parse_u64(p, &number);
	if (err)
		return err;
	if (number == 0 || number > (i == WISH_IPI ? IPI_DELAY_MAX_US : 0xffffffff))
		return -ERANGE;
	w[i].left = (u32)number;
	w[i].every = i < FAIL_SITES && **p == '+' ? (u32)number : 0;
	*p += w[i].every > 0;
	return 0;
}

static int parse_fail(const struct option *opt, const char *value)
{
	struct fail_count w[WISHES] = {0};

	for (;;) {
		const int err = parse_wish(w, &value);

		if (err)
			return err;
		if (*value == '\0')
			break;
		if (*value++ != ',')
			return -EINVAL;
	}
	memcpy(wishes, w, sizeof(wishes));
	return 0;
}

/* Print the value as parse_fail() takes it; empty if nothing was asked for. */
static void show_fail(const struct option *opt, char *buf, size_t size)
{
	size_t at = 0;

	*buf = '\0';
	for (unsigned i = 0; i < WISHES && at < size; i++)
		if (wishes[i].left)
			at += (size_t)format(buf + at, size - at, "%s%s:%u%s", at ? "," : "",
					     names[i], wishes[i].left, wishes[i].every ? "+" : "");
}

OPTION(debug.fail, .values = "alloc|meta|open|isolate|take|move|pte:N[+],ap:CPU,ipi:MICROSECONDS",
       .help = "test: the N-th pass of a site fails (N+: each N-th), a CPU does not start, "
	       "messages are answered late",
       .parse = parse_fail, .show = show_fail, .boot_only = true);

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
	return cpu > 0 && cpu == wishes[WISH_AP].left;
}

void fail_delay_ipi(void)
{
	if (likely(!wishes[WISH_IPI].left))
		return;
	atomic_add_relaxed(&ipis_delayed, 1);
	clock_delay_ns((u64)wishes[WISH_IPI].left * NS_PER_US);
}

void fail_begin(struct fail_plan *plan)
{
	for (unsigned i = 0; i < FAIL_SITES; i++)
		if (wishes[i].left)
			fail_arm(plan, (enum fail_site)i, wishes[i].left,
				 wishes[i].every ? FAIL_AGAIN : FAIL_ONCE);
}

void fail_print(const struct fail_plan *plan)
{
	for (unsigned i = 0; i < FAIL_SITES; i++)
		if (atomic_load_relaxed(&plan->passed[i]))
			print("  fail     %-8s passed %llu times, failed %llu\n", names[i],
			      plan->passed[i], plan->failed[i]);
	if (ipis_delayed)
		print("  fail     %-8s answered late %llu times, by %u us\n", "ipi", ipis_delayed,
		      wishes[WISH_IPI].left);
}
