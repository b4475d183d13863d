/*
 * Output of the benchmark of the HVO series (Kravetz 2023): a table for people, and records for
 * programs (kernel/run/bench.h).
 */
#include "tests/bench/hvo_bench.h"
#include "tests/bench/measure.h"

u64 hvo_ps_per_page(const struct leg *leg)
{
	return leg->done ? leg->ns * 1000 / leg->done : 0;
}

u64 hvo_net_ps_per_page(const struct leg *leg)
{
	return leg->done ? (leg->ns - MIN(leg->ns, leg->spent.ns)) * 1000 / leg->done : 0;
}

static const char *const op_names[OPS] = {"grow", "shrink", "demote"};

/*
 * mode:off on hardware: a bare-metal machine of 8 sockets, before and after the series (Kravetz,
 * cover letter; tests/report/seeds.py has both machines).
 */
static const struct {
	const char *mode, *ratio[OPS];
} published[] = {
	{"unbatched", {"7.03", "8.21", "-"}}, {"batched", {"1.54", "3.11", "-"}}, {.mode = NULL}};

static const char *published_ratio(const char *mode, enum hvo_op op)
{
	for (unsigned i = 0; published[i].mode; i++)
		if (strcmp(published[i].mode, mode) == 0)
			return published[i].ratio[op];
	return "-";
}

void hvo_print_head(const char *source)
{
	print("Growing and shrinking a pool of %s pages (Kravetz, \"Batch hugetlb vmemmap "
	      "modification operations\", 2023-09)\n"
	      "%u CPUs, memory %s; ",
	      hvo_pool()->order == GIGA_ORDER ? "1 GiB" : "2 MiB", cpumask_weight(&cpus_online),
	      source);
	if (hvo_runs == 1)
		print("one run, after one that does not count; runs=5 says how much runs "
		      "differ\n\n");
	else
		print("the fastest of %llu runs in turn, after one that does not count\n\n",
		      hvo_runs);
	print("  mode:off   time per page divided by that of mode off (lowest to highest of "
	      "a run)\n"
	      "  published  the same of Linux on 8 sockets of hardware: emulated CPUs make "
	      "rounds dearer\n"
	      "  debt       work put off: opening memory before, splitting all pages into small "
	      "ones after\n"
	      "  cpus       that made or restored pages; the others are idle\n\n"
	      "  %-10s %-6s %6s %4s %9s  %-27s %9s  %s\n",
	      "mode", "op", "pages", "cpus", "us/page", "mode:off (range)", "published", "debt ms");
}

void hvo_format_ratio(char *text, size_t size, const struct hvo_ratio *ratio)
{
	const u64 at = ratio->fastest, low = ratio->low, high = ratio->high;

	if (!ratio->off)
		format(text, size, "-");
	else if (hvo_runs == 1)
		format(text, size, "%llu.%02llu", at / 100, at % 100);
	else
		format(text, size, "%llu.%02llu (%llu.%02llu to %llu.%02llu)", at / 100, at % 100,
		       low / 100, low % 100, high / 100, high % 100);
}

/* Hosted: the time without that of the simulation, if one CPU did the leg. */
static void print_net(const struct leg *leg, enum hvo_op op, const struct leg *off)
{
	const u64 ps = hvo_net_ps_per_page(leg), off_ps = off ? hvo_net_ps_per_page(off) : 0;
	const u64 ratio = off_ps ? ps * 1000 / off_ps : 0;

	if (!leg->spent.simulated || leg->threads > 1)
		return;
	print("  # %s: %s: without the simulation of hardware %llu.%03llu us/page, %llu.%03llux; "
	      "%llu page faults of the host\n",
	      leg->mode->name, op_names[op], ps / 1000000, ps / 1000 % 1000, ratio / 1000,
	      ratio % 1000, leg->spent.host_faults);
}

void hvo_print_leg(const struct leg *leg, enum hvo_op op, const struct hvo_ratio *ratio)
{
	const u64 ps = hvo_ps_per_page(leg);
	const u64 debt_ns = op == GROW ? leg->debt_open_ns : leg->split.ns;
	char relative[80], debt[48] = "-";

	hvo_format_ratio(relative, sizeof(relative), ratio);
	if (op != DEMOTE)
		format(debt, sizeof(debt), "%llu.%03llu %s", debt_ns / NS_PER_MS,
		       debt_ns / NS_PER_US % 1000, op == GROW ? "before" : "after");
	print("  %-10s %-6s %6llu %4u %5llu.%03llu  %-27s %9s  %s\n", leg->mode->name, op_names[op],
	      leg->done, leg->threads, ps / 1000000, ps / 1000 % 1000, relative,
	      published_ratio(leg->mode->name, op), debt);
	print_net(leg, op, ratio->off);
}

/* ---- counts ---- */

void hvo_print_counts_head(void)
{
	print("\n  What does not depend on the host. Instructions a page: tests/bench/counts.\n");
	print("  rounds     times that CPUs had to forget translations; IPIs: messages for it\n"
	      "  stopped    CPUs that were interrupted; splits: PMD entries that became tables\n"
	      "  saved      frames of struct pages that came back\n"
	      "  hardware   estimate, us a page for its rounds, if one takes 0.2 to 5 us (43 and\n"
	      "             272 us on the machines of the series, of 8 sockets and virtual)\n\n");
	print("  %-10s %-6s %6s %6s %7s %6s %6s  %11s %11s  %s\n", "mode", "op", "rounds", "IPIs",
	      "stopped", "splits", "saved", "rounds/page", "IPIs/page", "hardware");
}

void hvo_print_counts(const struct leg *leg, enum hvo_op op)
{
	const u64 rounds = leg->stats.flushes * 10000 / leg->done;
	const u64 ipis = leg->stats.ipis * 10000 / leg->done;

	print("  %-10s %-6s %6llu %6llu %7llu %6llu %6lld  %6llu.%04llu %6llu.%04llu  "
	      "%llu.%04llu to %llu.%04llu\n",
	      leg->mode->name, op_names[op], leg->stats.flushes, leg->stats.ipis,
	      leg->stats.interrupted, leg->work.inside.splits, leg->saved, rounds / 10000,
	      rounds % 10000, ipis / 10000, ipis % 10000, rounds / 5 / 10000, rounds / 5 % 10000,
	      rounds * 5 / 10000, rounds * 5 % 10000);
}

void hvo_record_leg(const struct leg *leg, enum hvo_op op, u64 run)
{
	static const char *const ops[OPS] = {"alloc", "free", "demote"};

	print("BENCH hvo mode=%s source=%s op=%s size=%s pages=%llu done=%llu cpus=%u "
	      "run=%llu ns=%llu flushes=%llu ipis=%llu interrupted=%llu skipped=%llu "
	      "frames_saved=%lld "
	      "debt_open_ns=%llu debt_split_ns=%llu"
	      " debt_blocks=%llu threads=%u simulated_ns=%llu host_faults=%llu"
	      " split_first_ns=%llu split_p50_ns=%llu split_p99_ns=%llu split_max_ns=%llu"
	      " use_flushes=%llu",
	      leg->mode->name, leg->source, ops[op], hvo_size_name(), leg->pages, leg->done,
	      cpumask_weight(&cpus_online), run, leg->ns, leg->stats.flushes, leg->stats.ipis,
	      leg->stats.interrupted, leg->stats.skipped, leg->saved, leg->debt_open_ns,
	      leg->split.ns, leg->split.blocks, leg->threads, leg->spent.ns, leg->spent.host_faults,
	      leg->split.ns_first, leg->split.ns_p50, leg->split.ns_p99, leg->split.ns_max,
	      leg->use_flushes);
	leg_work_print(&leg->work);
	work_print("after_", &leg->split.work);
	print("\n");
}

void hvo_print_notes(const struct leg *grow, const struct leg *shrink, u64 wanted,
		     const char *source)
{
	if (grow->pages < wanted)
		print("  # %s: %llu pages were asked for, %llu fit\n", grow->mode->name, wanted,
		      grow->pages);
	if (shrink->split.blocks < shrink->done * order_blocks(hvo_pool()->order))
		print("  # %s: debt after: of %llu blocks of 2 MiB\n", grow->mode->name,
		      shrink->split.blocks);
	if (!grow->work.warm)
		print("  # %s: not compared: memory is cold, no leg before had %llu pages\n",
		      grow->mode->name, grow->pages);
	if (grow->use_flushes > 0)
		print("  # %s: rounds put off until the first use of a page: %llu\n",
		      grow->mode->name, grow->use_flushes);
	if (strcmp(grow->source, source) != 0)
		print("  # %s: source=again: this machine has no section that can be closed and "
		      "opened anew\n",
		      grow->mode->name);
}
