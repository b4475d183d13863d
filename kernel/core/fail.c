/*
 * Fault injection: see fail.h.
 */
#include "kernel/core/fail.h"

#include <arch/clock.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"

enum { IPI_DELAY_MAX_US = 1000000 };

static const char *const names[FAIL_SITES] = {"alloc", "meta", "open", "isolate",
					      "take",  "move", "pte"};

/* The failures that the command line asks for. Before fail_begin(), only the last two act. */
struct wishes {
	struct fail_count count[FAIL_SITES];
	u64 ap, ipi_us; /* 0: none; CPU 0 starts the others */
};

static struct wishes wishes;
static u64 ipis_delayed;

static int site_of(const char *name, size_t len)
{
	for (unsigned i = 0; i < FAIL_SITES; i++)
		if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
			return (int)i;
	return -EINVAL;
}

static bool is_word(const char *word, const char *name, size_t len)
{
	return strlen(word) == len && memcmp(word, name, len) == 0;
}

/* Parse "site:number" or "site:number+" at *p, and move *p past it. */
static int parse_wish(struct wishes *w, const char **p)
{
	const char *name = *p;
	size_t len = 0;
	u64 number;
	int err, site;

	while (name[len] && name[len] != ':')
		len++;
	if (!name[len])
		return -EINVAL;
	*p = name + len + 1;
	err = parse_u64(p, &number);
	if (err)
		return err;
	if (number == 0 || number > 0xffffffff)
		return -ERANGE;
	if (is_word("ap", name, len)) {
		w->ap = number;
		return 0;
	}
	if (is_word("ipi", name, len)) {
		w->ipi_us = number;
		return number <= IPI_DELAY_MAX_US ? 0 : -ERANGE;
	}
	site = site_of(name, len);
	if (site < 0)
		return site;
	w->count[site] =
		(struct fail_count){.left = (u32)number, .every = **p == '+' ? (u32)number : 0};
	*p += **p == '+';
	return 0;
}

static int parse_fail(const struct option *opt, const char *value)
{
	struct wishes w = {0};

	(void)opt;
	for (;;) {
		const int err = parse_wish(&w, &value);

		if (err)
			return err;
		if (*value == '\0')
			break;
		if (*value++ != ',')
			return -EINVAL;
	}
	wishes = w;
	return 0;
}

/* Print the value as parse_fail() takes it; empty if nothing was asked for. */
static void show_fail(const struct option *opt, char *buf, size_t size)
{
	size_t at = 0;

	(void)opt;
	*buf = '\0';
	for (unsigned i = 0; i < FAIL_SITES && at < size; i++)
		if (wishes.count[i].left)
			at += (size_t)format(buf + at, size - at, "%s%s:%u%s", at ? "," : "",
					     names[i], wishes.count[i].left,
					     wishes.count[i].every ? "+" : "");
	if (wishes.ap && at < size)
		at += (size_t)format(buf + at, size - at, "%sap:%llu", at ? "," : "", wishes.ap);
	if (wishes.ipi_us && at < size)
		format(buf + at, size - at, "%sipi:%llu", at ? "," : "", wishes.ipi_us);
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
	return wishes.ap && cpu == wishes.ap;
}

void fail_delay_ipi(void)
{
	if (likely(!wishes.ipi_us))
		return;
	atomic_add_relaxed(&ipis_delayed, 1);
	clock_delay_ns(wishes.ipi_us * NS_PER_US);
}

void fail_begin(struct fail_plan *plan)
{
	for (unsigned i = 0; i < FAIL_SITES; i++)
		if (wishes.count[i].left)
			fail_arm(plan, (enum fail_site)i, wishes.count[i].left,
				 wishes.count[i].every ? FAIL_AGAIN : FAIL_ONCE);
}

void fail_print(const struct fail_plan *plan)
{
	for (unsigned i = 0; i < FAIL_SITES; i++)
		if (atomic_load_relaxed(&plan->passed[i]))
			print("  fail     %-8s passed %llu times, failed %llu\n", names[i],
			      plan->passed[i], plan->failed[i]);
	if (ipis_delayed)
		print("  fail     %-8s answered late %llu times, by %llu us\n", "ipi", ipis_delayed,
		      wishes.ipi_us);
}
