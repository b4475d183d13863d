/*
 * What the S0 benchmark prints: a table for people, records for programs (kernel/bench.h).
 */
#include "kernel/machine_page.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "kernel/string.h"
#include "tests/bench/hvo_bench.h"

u64 hvo_ps_per_page(const struct leg *leg)
{
	return leg->done ? leg->ns * 1000 / leg->done : 0;
}

void hvo_print_head(const char *source)
{
	print("Growing and shrinking a pool of %s pages (Kravetz, \"Batch hugetlb vmemmap modification operations\", 2023-09)\n"
	      "%u CPUs, %llu busy, memory %s\n\n",
	      hvo_pool()->order == GIGA_ORDER ? "1 GiB" : "2 MiB", cpumask_weight(&cpus_online), (unsigned long long)hvo_busy, source);
	print("  flushes: rounds; ipis: messages; stops: CPUs interrupted; splits: PMDs; saved: frames of struct pages;\n"
	      "  : off: time per page against off; debt: opening the sections before, splitting all pages after;\n"
	      "  cpus: that make the pages, the others are idle or busy\n\n");
	print("  %-10s %-6s %6s %4s %11s %9s %7s %7s %5s %6s %7s %8s  %s\n", "mode", "op", "pages", "cpus", "time ms", "us/page",
	      "flushes", "ipis", "stops", "splits", "saved", ": off", "debt ms");
}

static void print_leg(const struct leg *leg, const char *op, u64 off_ps)
{
	const u64 ps = hvo_ps_per_page(leg), ratio = off_ps ? ps * 100 / off_ps : 0;
	char debt[40], relative[24] = "-";

	if (off_ps)
		format(relative, sizeof(relative), "%llu.%02llux", (unsigned long long)(ratio / 100),
		       (unsigned long long)(ratio % 100));

	if (op[0] == 'g')
		format(debt, sizeof(debt), "%llu.%03llu before", (unsigned long long)(leg->debt_open_ns / NS_PER_MS),
		       (unsigned long long)(leg->debt_open_ns / NS_PER_US % 1000));
	else
		format(debt, sizeof(debt), "%llu.%03llu after", (unsigned long long)(leg->debt_split_ns / NS_PER_MS),
		       (unsigned long long)(leg->debt_split_ns / NS_PER_US % 1000));
	print("  %-10s %-6s %6llu %4u %7llu.%03llu %5llu.%03llu %7llu %7llu %5llu %6llu %7lld %8s  %s\n",
	      leg->mode->name, op, (unsigned long long)leg->done, op[0] == 'g' ? hvo_threads_for(leg->mode, leg->done) : 1,
	      (unsigned long long)(leg->ns / NS_PER_MS),
	      (unsigned long long)(leg->ns / NS_PER_US % 1000), (unsigned long long)(ps / 1000000),
	      (unsigned long long)(ps / 1000 % 1000), (unsigned long long)leg->stats.flushes,
	      (unsigned long long)leg->stats.ipis, (unsigned long long)leg->stats.interrupted,
	      (unsigned long long)leg->splits, (long long)leg->saved, relative, debt);
}

void hvo_record_leg(const struct leg *leg, const char *op, u64 run)
{
	print("BENCH hvo mode=%s source=%s op=%s size=%s pages=%llu done=%llu cpus=%u busy=%llu run=%llu ns=%llu flushes=%llu"
	      " splits=%llu ipis=%llu interrupted=%llu skipped=%llu frames_saved=%lld debt_open_ns=%llu debt_split_ns=%llu"
	      " debt_blocks=%llu threads=%u",
	      leg->mode->name, leg->source, op, hvo_size_name(), (unsigned long long)leg->pages,
	      (unsigned long long)leg->done, cpumask_weight(&cpus_online), (unsigned long long)hvo_busy,
	      (unsigned long long)run, (unsigned long long)leg->ns, (unsigned long long)leg->stats.flushes,
	      (unsigned long long)leg->splits, (unsigned long long)leg->stats.ipis,
	      (unsigned long long)leg->stats.interrupted, (unsigned long long)leg->stats.skipped, (long long)leg->saved,
	      (unsigned long long)leg->debt_open_ns, (unsigned long long)leg->debt_split_ns,
	      (unsigned long long)leg->debt_blocks, op[0] == 'a' ? hvo_threads_for(leg->mode, leg->done) : 1);
	if (lock_holds_wanted())
		print(" hold_zone_ns=%llu hold_pool_ns=%llu", (unsigned long long)leg->zone.ns.most,
		      (unsigned long long)leg->pool.ns.most);
	print("\n");
}

/* Of the zones' locks and the pool's, lock_holds=on. */
static void print_holds(const struct leg *leg, const char *op)
{
	if (lock_holds_wanted())
		print("  # %s: %s: longest hold: zone %llu ns in %s, pool %llu ns in %s\n", leg->mode->name, op,
		      (unsigned long long)leg->zone.ns.most, lock_function(leg->zone.ns.taken_at),
		      (unsigned long long)leg->pool.ns.most, lock_function(leg->pool.ns.taken_at));
}

void hvo_print_legs(const struct leg *grow, const struct leg *shrink, u64 wanted, const char *wanted_source,
		    const struct reference *off)
{
	print_leg(grow, "grow", off->grow_ps);
	if (strcmp(grow->mode->name, "on") == 0 && off->grow_ps)
		page_gain("hvo", "%s pages grown, on: %llu ns each, off: %llu; frames saved %lld", hvo_size_name(),
			  (unsigned long long)(hvo_ps_per_page(grow) / 1000), (unsigned long long)(off->grow_ps / 1000),
			  (long long)grow->saved);
	print_leg(shrink, "shrink", off->shrink_ps);
	print_holds(grow, "grow");
	print_holds(shrink, "shrink");
	if (grow->pages < wanted)
		print("  # %s: %llu pages were asked for, %llu fit\n", grow->mode->name, (unsigned long long)wanted,
		      (unsigned long long)grow->pages);
	if (shrink->debt_blocks < shrink->done * order_blocks(hvo_pool()->order))
		print("  # %s: debt after: of %llu blocks of 2 MiB\n", grow->mode->name,
		      (unsigned long long)shrink->debt_blocks);
	if (strcmp(grow->source, hvo_source_names[SOURCE_RECYCLED]) == 0 && grow->mode->optimise && grow->recycled < grow->done)
		print("  # %s: %llu of these pages are recycled blocks\n", grow->mode->name,
		      (unsigned long long)grow->recycled);
	if (strcmp(grow->source, wanted_source) != 0)
		print("  # %s: source=again: this machine has no section that can be closed and opened anew\n",
		      grow->mode->name);
}
