/*
 * Clearing huge pages: see clear.h.
 *
 * Interrupts: rep instructions are interruptible and the loops are code like any other, so with interrupts on a CPU
 * answers in the middle of an extent. Where the caller runs with them off (a fault in such code), CPUs that wait for
 * this one are answered between extents.
 */
#include "mm/clear.h"

#include <arch/atomic.h>
#include <arch/cpu.h>

#include "kernel/call.h"
#include "kernel/cmdline.h"
#include "kernel/padata.h"
#include "kernel/percpu.h"

enum { NEIGHBOURS = 2 };

static void clear_extent(const struct clear_insn *insn, char *addr, u64 bytes)
{
	clear_with(insn, addr, bytes);
	if (!irq_enabled())
		call_serve();
}

/* ---- the two orders ---- */

static void clear_page_at(const struct clear_how *how, char *page, u64 number)
{
	clear_extent(how->insn[CLEAR_SMALL], page + number * PAGE_SIZE, PAGE_SIZE);
}

/* The longer side's excess first, from its far end; then left and right in turn until they meet at the hint. */
static void clear_converging(const struct clear_how *how, char *page, u64 bytes, u64 hint)
{
	const u64 pages = bytes / PAGE_SIZE, target = hint == CLEAR_NO_HINT ? 0 : hint / PAGE_SIZE;
	u64 low = 0, high = pages;

	while (high - target - 1 > target - low)
		clear_page_at(how, page, --high);
	while (target - low > high - target - 1)
		clear_page_at(how, page, low++);
	while (low < target) {
		clear_page_at(how, page, low++);
		clear_page_at(how, page, --high);
	}
	clear_page_at(how, page, target);
}

static void clear_in_three(const struct clear_how *how, char *page, u64 bytes, u64 hint)
{
	const struct clear_insn *large = how->insn[clear_class_of(bytes)];
	const u64 pages = bytes / PAGE_SIZE;
	u64 target, first, end;

	if (hint == CLEAR_NO_HINT) {
		clear_extent(large, page, bytes);
		return;
	}
	target = hint / PAGE_SIZE;
	first = target - MIN(target, NEIGHBOURS);
	end = MIN(target + NEIGHBOURS + 1, pages);
	if (first > 0)
		clear_extent(large, page, first * PAGE_SIZE);
	if (end < pages)
		clear_extent(large, page + end * PAGE_SIZE, (pages - end) * PAGE_SIZE);
	clear_extent(how->insn[CLEAR_SMALL], page + first * PAGE_SIZE, (end - first) * PAGE_SIZE);
}

const struct clear_mode clear_modes[] = {
	{.name = "page", .huge = clear_converging, .extent = PAGE_SIZE, .parallel = false},
	{.name = "multi", .huge = clear_in_three, .extent = CLEAR_EXTENT_MAX, .parallel = true},
	{.name = NULL},
};

enum { MODE_MULTI = 1 };
static unsigned clear_mode = MODE_MULTI;
OPTION_ROW(clear, clear_mode, clear_modes, "how huge pages are cleared: page by page, or in extents");

static const struct clear_how *forced;

void clear_how_force(const struct clear_how *how)
{
	atomic_store_release(&forced, how);
}

struct clear_how clear_how_selected(void)
{
	const struct clear_how *by_force = atomic_load_acquire(&forced);
	struct clear_how how = {.mode = &clear_modes[clear_mode], .threads = cpumask_weight(&cpus_online)};

	if (by_force)
		return *by_force;
	for (unsigned class = 0; class < CLEAR_CLASSES; class++)
		how.insn[class] = clear_insn_selected(class);
	if (!how.mode->parallel)
		how.threads = 1;
	return how;
}

/* ---- pages beyond 32 MiB ---- */

struct giant {
	const struct clear_how *how;
	char *page;
};

static void clear_slice(u64 start, u64 end, void *arg)
{
	const struct giant *giant = arg;
	const u64 extent = giant->how->mode->extent;
	const struct clear_insn *insn = giant->how->insn[extent == PAGE_SIZE ? CLEAR_SMALL : CLEAR_GIANT];

	for (u64 at = start; at < end; at += extent)
		clear_extent(insn, giant->page + at, MIN(extent, end - at));
}

void clear_huge(const struct clear_how *how, void *addr, u64 bytes, u64 hint, node_t node)
{
	struct giant giant = {.how = how, .page = addr};
	struct padata_mt_job job = {.thread_fn = clear_slice,
				    .arg = &giant,
				    .size = bytes,
				    .align = CLEAR_EXTENT_MAX,
				    .min_chunk = CLEAR_EXTENT_MAX,
				    .max_threads = how->threads,
				    .node = node};

	if (bytes <= CLEAR_EXTENT_MAX)
		how->mode->huge(how, addr, bytes, hint);
	else
		padata_run(&job);
}
