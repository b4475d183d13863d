/*
 * The machine page: see machine_page.h.
 *
 * Memory is measured from one CPU of each node to each node: latency by a chain of pointers that visits every page of the area
 * in an order no prefetcher guesses, the rate by reading it once from front to end. The area is larger than most caches on
 * hardware; under an emulator it is small, as the figures mean nothing there but that they were taken.
 */
#include "kernel/machine_page.h"

#include <arch/boot.h>
#include <arch/clock.h>
#include <arch/cpu.h>

#include "kernel/call.h"
#include "kernel/cmdline.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "mm/mm.h"

enum { PAGE_AUTO, PAGE_ON, PAGE_OFF };
enum { AREA_PAGES = 64, AREA_PAGES_EMULATED = 2, HUGE_ORDER = 9, NODES_SHOWN = 4, WARNINGS_SHOWN = 12 };
enum { CHAIN_STEPS = 1 << 20, CHAIN_STEPS_EMULATED = 1 << 12 };

#define HUGE_BYTES (PAGE_SIZE << HUGE_ORDER)

static unsigned choice;
OPTION_CHOICE(page, choice, "auto|on|off", "print the machine page at the end; auto: on real hardware");

struct area {
	struct page *page[AREA_PAGES];
	unsigned pages;
	u64 *first;
	u64 steps, chase_ns, read_ns, sum;
};

static struct area area;

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
		a->page[a->pages] = page_alloc(HUGE_ORDER, USE_UNMOVABLE, PAGE_NODE | PAGE_ZERO, node);
		if (!a->page[a->pages])
			break;
	}
	return a->pages > 0;
}

/* One cell in each 4 KiB page, linked so that neighbours in the chain are far apart: multiples of an odd number. */
static void chain(struct area *a)
{
	const u64 cells = a->pages * (HUGE_BYTES / PAGE_SIZE), jump = cells * 5 / 8 | 1;
	u64 *last = NULL;

	for (u64 i = 0; i < cells; i++) {
		const u64 cell = i * jump % cells, inside = cell % (HUGE_BYTES / PAGE_SIZE);
		u64 *at = (void *)((char *)page_address(a->page[cell / (HUGE_BYTES / PAGE_SIZE)]) + inside * PAGE_SIZE +
				   cell % 63 * 64);

		if (last)
			*last = (u64)(virt_t)at;
		else
			a->first = at;
		last = at;
	}
	if (last)
		*last = (u64)(virt_t)a->first;
}

/* On the CPU whose view is wanted. */
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
		for (const u64 *word = page_address(a->page[p]), *end = word + HUGE_BYTES / sizeof(u64); word < end; word++)
			a->sum += *word;
	a->read_ns = clock_ns() - start;
}

static cpu_t cpu_of_node(node_t node)
{
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online)
	{
		if (cpu_data(cpu)->node == node)
			return cpu;
	}
	return CPU_NONE;
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

static void print_pair(node_t from, node_t to)
{
	const u64 bytes = area.pages * HUGE_BYTES, ns = MAX(area.read_ns, 1u);
	const u64 tenths = area.chase_ns * 10 / area.steps, mb = bytes * 1000 / ns;

	print("  node     %u to %u: distance %u, %llu.%llu ns a load, %llu MB/s read by one CPU\n", from, to,
	      arch_node_distance(from, to), (unsigned long long)(tenths / 10), (unsigned long long)(tenths % 10),
	      (unsigned long long)mb);
	print("BENCH node from=%u to=%u distance=%u loads=%llu ns_loads=%llu bytes=%llu ns_read=%llu\n", from, to,
	      arch_node_distance(from, to), (unsigned long long)area.steps, (unsigned long long)area.chase_ns,
	      (unsigned long long)bytes, (unsigned long long)area.read_ns);
}

static void print_nodes(void)
{
	for (node_t to = 0; to < MIN(node_count, (node_t)NODES_SHOWN); to++) {
		if (!area_alloc(&area, to)) {
			print("  node     %u: no memory to measure\n", to);
			continue;
		}
		chain(&area);
		for (node_t from = 0; from < MIN(node_count, (node_t)NODES_SHOWN); from++) {
			const cpu_t cpu = cpu_of_node(from);

			if (cpu != CPU_NONE && walk_on(cpu, &area))
				print_pair(from, to);
		}
		area_free(&area);
	}
}

static void print_warnings(void)
{
	const unsigned n = log_warnings();

	print("  oddities %u%s\n", n, n ? ":" : "");
	for (unsigned i = 0; i < MIN(n, (unsigned)WARNINGS_SHOWN) && log_warning(i); i++)
		print("           %s\n", log_warning(i));
}

void machine_page(void)
{
	if (choice == PAGE_OFF || (choice == PAGE_AUTO && cpu_deadline_scale() != 1))
		return;
	print("\nThis machine\n\n");
	arch_machine_page();
	print_nodes();
	print_warnings();
	print("\n");
}
