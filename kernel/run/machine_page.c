/*
 * The machine page: see machine_page.h.
 *
 * Memory is measured from one CPU of each node to each node. Latency is measured by a chain of
 * pointers that visits every page of the area in an order no prefetcher guesses, and the rate by
 * reading the area once from front to end. The area is larger than most caches on hardware. Under
 * an emulator it is small, because the figures there only show that the measurement works.
 */
#include "kernel/run/machine_page.h"

#include <arch/boot.h>
#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/pmu.h>

#include "kernel/core/call.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "mm/mm.h"

enum { PAGE_AUTO, PAGE_ON, PAGE_OFF };
enum { AREA_PAGES = 64, AREA_PAGES_EMULATED = 2, HUGE_ORDER = 9, NODES_SHOWN = 4 };
enum { COLUMNS = 79, INDENT = 11, ROWS = 20, GAINS_MAX = 8, GAIN_SIZE = COLUMNS - INDENT + 1 };
enum { CHAIN_STEPS = 1 << 20, CHAIN_STEPS_EMULATED = 1 << 12 };

#define HUGE_BYTES (PAGE_SIZE << HUGE_ORDER)

static unsigned choice;
OPTION_CHOICE(console.page, choice, "auto|on|off",
	      "print the machine page at the end; auto: on real hardware");

struct area {
	struct page *page[AREA_PAGES];
	unsigned pages;
	u64 *first;
	u64 steps, chase_ns, read_ns, sum;
};

static struct area area;

static struct pair {
	u64 tenths_ns, mb; /* per load; per second, by one CPU; 0: not measured */
} pairs[NODES_SHOWN][NODES_SHOWN];

static struct gain {
	char name[INDENT]; /* "": none */
	char text[GAIN_SIZE];
} gains[GAINS_MAX];

static unsigned rows; /* rows printed of this page */

/* ---- lines ---- */

size_t sheet_break(const char *text, size_t width)
{
	const size_t len = strlen(text);
	size_t end = width;

	if (len <= width)
		return len;
	while (end > 0 && text[end] != ' ')
		end--;
	return end > 0 ? end : width;
}

static void print_rows(const char *name, const char *text)
{
	do {
		const size_t len = sheet_break(text, COLUMNS - INDENT);

		print("  %-8s %.*s\n", name, (int)len, text);
		rows++;
		name = "";
		text += len;
		text += *text == ' ';
	} while (*text);
}

void sheet_line(const char *name, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vformat(text, sizeof(text), fmt, args);
	va_end(args);
	print_rows(name, text);
}

void sheet_gain(const char *name, const char *fmt, ...)
{
	va_list args;

	for (unsigned i = 0; i < GAINS_MAX; i++) {
		if (gains[i].name[0] && strcmp(gains[i].name, name) != 0)
			continue;
		format(gains[i].name, sizeof(gains[i].name), "%s", name);
		va_start(args, fmt);
		vformat(gains[i].text, sizeof(gains[i].text), fmt, args);
		va_end(args);
		return;
	}
}

/* ---- memory ---- */

static void area_free(struct area *a)
{
	for (unsigned i = 0; i < a->pages; i++)
		page_free(a->page[i]);
	a->pages = 0;
}

static bool area_alloc(struct area *a, node_t node)
{
	const unsigned want = cpu_deadline_scale() == 1 ? AREA_PAGES : AREA_PAGES_EMULATED;

	for (a->pages = 0; a->pages < want; a->pages++) {
		a->page[a->pages] =
			page_alloc(HUGE_ORDER, USE_UNMOVABLE, PAGE_NODE | PAGE_ZERO, node);
		if (!a->page[a->pages])
			break;
	}
	return a->pages > 0;
}

/*
 * One cell in each 4 KiB page, linked so that neighbours in the chain are far apart: cell numbers
 * are multiples of an odd number.
 */
static void chain(struct area *a)
{
	const u64 cells = a->pages * (HUGE_BYTES / PAGE_SIZE), jump = cells * 5 / 8 | 1;
	u64 *last = NULL;

	for (u64 i = 0; i < cells; i++) {
		const u64 cell = i * jump % cells, inside = cell % (HUGE_BYTES / PAGE_SIZE);
		u64 *at = (void *)((char *)page_address(a->page[cell / (HUGE_BYTES / PAGE_SIZE)]) +
				   inside * PAGE_SIZE + cell % 63 * 64);

		if (last)
			*last = (u64)(virt_t)at;
		else
			a->first = at;
		last = at;
	}
	if (last)
		*last = (u64)(virt_t)a->first;
}

/* Runs on the CPU from which memory is measured. */
static void walk(void *arg)
{
	struct area *a = arg;
	const u64 *at = a->first;
	u64 start = clock_ns();

	for (u64 i = 0; i < a->steps; i++)
		at = (const u64 *)(virt_t) * (const volatile u64 *)at;
	a->chase_ns = clock_ns() - start;
	start = clock_ns();
	for (unsigned p = 0; p < a->pages; p++)
		for (const u64 *word = page_address(a->page[p]),
			       *end = word + HUGE_BYTES / sizeof(u64);
		     word < end; word++)
			a->sum += *word;
	a->read_ns = clock_ns() - start;
}

static bool walk_on(cpu_t cpu, struct area *a)
{
	a->steps = cpu_deadline_scale() == 1 ? CHAIN_STEPS : CHAIN_STEPS_EMULATED;
	if (cpu == cpu_id()) {
		walk(a);
		return true;
	}
	if (work_start(cpu, walk, a) < 0)
		return false;
	work_wait(cpu, 0);
	return true;
}

static void note_pair(node_t from, node_t to)
{
	const u64 bytes = area.pages * HUGE_BYTES, ns = MAX(area.read_ns, 1u);

	pairs[from][to] = (struct pair){area.chase_ns * 10 / area.steps, bytes * 1000 / ns};
	print("BENCH node from=%u to=%u distance=%u loads=%llu ns_loads=%llu bytes=%llu "
	      "ns_read=%llu\n",
	      from, to, arch_node_distance(from, to), area.steps, area.chase_ns, bytes,
	      area.read_ns);
}

static void measure_nodes(void)
{
	for (node_t to = 0; to < MIN(node_count, (node_t)NODES_SHOWN); to++) {
		if (!area_alloc(&area, to))
			continue;
		chain(&area);
		for (node_t from = 0; from < MIN(node_count, (node_t)NODES_SHOWN); from++) {
			const cpu_t cpu = cpu_first_of_node(from);

			if (cpu != CPU_NONE && walk_on(cpu, &area))
				note_pair(from, to);
		}
		area_free(&area);
	}
}

static void print_nodes(void)
{
	const node_t shown = MIN(node_count, (node_t)NODES_SHOWN);

	sheet_line("nodes", "%u; distance, ns a load, MB/s read by one CPU, to node 0 and on",
		   node_count);
	for (node_t from = 0; from < shown; from++) {
		char text[COLUMNS], name[16];
		size_t len = 0;

		for (node_t to = 0; to < shown; to++) {
			const struct pair *p = &pairs[from][to];

			len += (size_t)format(text + len, sizeof(text) - len, "%s%u %llu.%llu %llu",
					      to ? ", " : "", arch_node_distance(from, to),
					      p->tenths_ns / 10, p->tenths_ns % 10, p->mb);
			len = MIN(len, sizeof(text) - 1);
		}
		format(name, sizeof(name), "node %u", from);
		sheet_line(name, "%s", text);
	}
}

/* ---- techniques, gains, oddities ---- */

static void print_counters(void)
{
	const char *names[PMU_EVENTS_MAX] = {NULL};
	const unsigned n = pmu_events(names);

	sheet_line("counters", "%s%s%s%s%s%s%s", n ? names[0] : "none", n > 1 ? ", " : "",
		   n > 1 ? names[1] : "", n > 2 ? ", " : "", n > 2 ? names[2] : "",
		   n > 3 ? ", " : "", n > 3 ? names[3] : "");
}

static void print_techniques(void)
{
	static const char *const names[] = {"memmap", "hvo", "clear", "pcp_type_cache", "contig"};
	char text[128] = "", value[32];
	size_t len = 0;

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		const struct option *opt = option_find(names[i]);

		if (opt && option_show(opt, value, sizeof(value)))
			len += (size_t)format(text + len, sizeof(text) - len, "%s%s=%s",
					      len ? " " : "", names[i], value);
		len = MIN(len, sizeof(text) - 1);
	}
	sheet_line("uses", "%s", text);
	for (unsigned i = 0; i < GAINS_MAX && gains[i].name[0]; i++)
		sheet_line(gains[i].name, "%s", gains[i].text);
}

/* Print as many warnings as the page has room for. */
static void print_warnings(void)
{
	const unsigned n = log_warnings();
	const bool room = rows + 2 < ROWS;
	unsigned i = 0;

	sheet_line("oddities", "%u%s", n, n == 0 ? "" : room ? ":" : ": see the log");
	for (; room && i < n && log_warning(i) && rows + 1 < ROWS; i++)
		sheet_line("", "%s", log_warning(i));
	if (room && i < n)
		sheet_line("", "and %u more: see the log", n - i);
}

void machine_page(void)
{
	if (choice == PAGE_OFF || (choice == PAGE_AUTO && cpu_deadline_scale() != 1))
		return;
	print("\n");
	arch_machine_measure();
	measure_nodes();
	print("\nThis machine\n");
	rows = 1;
	arch_machine_page(sheet_line);
	print_counters();
	print_nodes();
	print_techniques();
	print_warnings();
}
