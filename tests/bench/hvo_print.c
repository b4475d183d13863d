/*
 * Output of the benchmark of the HVO series (Kravetz 2023): a table for people, and records for
 * programs (kernel/run/bench.h).
 */
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "tests/bench/hvo_bench.h"

u64 hvo_ps_per_page(const struct leg *leg)
{
	return leg->done ? leg->ns * 1000 / leg->done : 0;
}

u64 hvo_net_ps_per_page(const struct leg *leg)
{
	return leg->done ? (leg->ns - MIN(leg->ns, leg->spent.ns)) * 1000 / leg->done : 0;
}

void hvo_print_head(const char *source)
{
	print("Growing and shrinking a pool of %s pages (Kravetz, \"Batch hugetlb vmemmap "
	      "modification operations\", 2023-09)\n"
	      "%u CPUs, memory %s; the fastest of %llu runs in turn, after one that does not "
	      "count\n\n",
	      hvo_pool()->order == GIGA_ORDER ? "1 GiB" : "2 MiB", cpumask_weight(&cpus_online),
	      source, hvo_runs);
	print("  flushes: rounds; ipis: messages; stops: CPUs interrupted; splits: PMDs; saved: "
	      "frames of struct pages;\n"
	      "  : off: time per page against off; debt: opening the sections before, splitting "
	      "all pages after;\n"
	      "  cpus: that made or restored pages, the others are idle\n\n");
	print("  %-10s %-6s %6s %4s %11s %9s %7s %7s %5s %6s %7s %8s  %s\n", "mode", "op", "pages",
	      "cpus", "time ms", "us/page", "flushes", "ipis", "stops", "splits", "saved", ": off",
	      "debt ms");
}

static void print_leg(const struct leg *leg, const char *op, u64 off_ps)
{
	const u64 ps = hvo_ps_per_page(leg), ratio = off_ps ? ps * 100 / off_ps : 0;
	char debt[40], relative[24] = "-";

	if (off_ps)
		format(relative, sizeof(relative), "%llu.%02llux", ratio / 100, ratio % 100);

	if (op[0] == 'd')
		format(debt, sizeof(debt), "-");
	else if (op[0] == 'g')
		format(debt, sizeof(debt), "%llu.%03llu before", leg->debt_open_ns / NS_PER_MS,
		       leg->debt_open_ns / NS_PER_US % 1000);
	else
		format(debt, sizeof(debt), "%llu.%03llu after", leg->split.ns / NS_PER_MS,
		       leg->split.ns / NS_PER_US % 1000);
	print("  %-10s %-6s %6llu %4u %7llu.%03llu %5llu.%03llu %7llu %7llu %5llu %6llu %7lld %8s  "
	      "%s\n",
	      leg->mode->name, op, leg->done, leg->threads, leg->ns / NS_PER_MS,
	      leg->ns / NS_PER_US % 1000, ps / 1000000, ps / 1000 % 1000, leg->stats.flushes,
	      leg->stats.ipis, leg->stats.interrupted, leg->splits, leg->saved, relative, debt);
}

/* Hosted: the time without that of the simulation, if one CPU did the leg. */
static void print_net(const struct leg *leg, const char *op, u64 off_ps)
{
	const u64 ps = hvo_net_ps_per_page(leg), ratio = off_ps ? ps * 1000 / off_ps : 0;

	if (!leg->spent.simulated || leg->threads > 1)
		return;
	print("  # %s: %s: without the simulation of hardware %llu.%03llu us/page, %llu.%03llux; "
	      "%llu page faults of the host\n",
	      leg->mode->name, op, ps / 1000000, ps / 1000 % 1000, ratio / 1000, ratio % 1000,
	      leg->spent.host_faults);
}

void hvo_record_leg(const struct leg *leg, const char *op, u64 run)
{
	print("BENCH hvo mode=%s source=%s op=%s size=%s pages=%llu done=%llu cpus=%u "
	      "run=%llu ns=%llu flushes=%llu"
	      " splits=%llu ipis=%llu interrupted=%llu skipped=%llu frames_saved=%lld "
	      "debt_open_ns=%llu debt_split_ns=%llu"
	      " debt_blocks=%llu threads=%u simulated_ns=%llu host_faults=%llu"
	      " split_first_ns=%llu split_p50_ns=%llu split_p99_ns=%llu split_max_ns=%llu"
	      " use_flushes=%llu",
	      leg->mode->name, leg->source, op, hvo_size_name(), leg->pages, leg->done,
	      cpumask_weight(&cpus_online), run, leg->ns, leg->stats.flushes, leg->splits,
	      leg->stats.ipis, leg->stats.interrupted, leg->stats.skipped, leg->saved,
	      leg->debt_open_ns, leg->split.ns, leg->split.blocks, leg->threads, leg->spent.ns,
	      leg->spent.host_faults, leg->split.ns_first, leg->split.ns_p50, leg->split.ns_p99,
	      leg->split.ns_max, leg->use_flushes);
	print("\n");
}

void hvo_print_legs(const struct leg *grow, const struct leg *shrink, u64 wanted,
		    const char *wanted_source, const struct reference *off)
{
	print_leg(grow, "grow", off->grow_ps);
	print_leg(shrink, "shrink", off->shrink_ps);
	print_net(grow, "grow", off->grow_net_ps);
	print_net(shrink, "shrink", off->shrink_net_ps);
	if (grow->pages < wanted)
		print("  # %s: %llu pages were asked for, %llu fit\n", grow->mode->name, wanted,
		      grow->pages);
	if (shrink->split.blocks < shrink->done * order_blocks(hvo_pool()->order))
		print("  # %s: debt after: of %llu blocks of 2 MiB\n", grow->mode->name,
		      shrink->split.blocks);
	if (grow->use_flushes > 0)
		print("  # %s: rounds put off until the first use of a page: %llu\n",
		      grow->mode->name, grow->use_flushes);
	if (strcmp(grow->source, wanted_source) != 0)
		print("  # %s: source=again: this machine has no section that can be closed and "
		      "opened anew\n",
		      grow->mode->name);
}

void hvo_print_demotion(const struct leg *demote, const struct reference *off)
{
	print_leg(demote, "demote", off->demote_ps);
}
