/*
 * Clearing huge pages: see clear.h.
 *
 * If the caller runs with interrupts off (a fault in such code), the CPUs that wait for this one
 * are answered between extents.
 */
#include "mm/clear/clear.h"

#include <arch/atomic.h>
#include <arch/cpu.h>

#include "kernel/core/call.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/padata.h"
#include "kernel/core/percpu.h"

enum { NEIGHBOURS = 2 };

static void clear_one_extent(const struct clear_insn *insn, char *addr, u64 bytes)
{
	clear_with(insn, addr, bytes);
	if (!irq_enabled())
		call_serve();
}

/* The most that one instruction is given. */
static u64 extent_of(const struct clear_how *how)
{
	if (how->mode->by_page)
		return PAGE_SIZE;
	return how->extent ? how->extent : CLEAR_EXTENT;
}

static void clear_in_extents(const struct clear_how *how, const struct clear_insn *insn, char *addr,
			     u64 bytes)
{
	const u64 extent = extent_of(how);

	for (u64 done = 0; done < bytes;) {
		const u64 now = MIN(extent, bytes - done);

		clear_one_extent(insn, addr + done, now);
		done += now;
	}
}

/* ---- the two orders ---- */

static void clear_page_at(const struct clear_how *how, char *page, u64 number)
{
	clear_one_extent(how->insn[CLEAR_SMALL], page + number * PAGE_SIZE, PAGE_SIZE);
}

/*
 * Clear the excess of the longer side first, from its far end; then left and right in turn until
 * they meet at the hint.
 */
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
		clear_in_extents(how, large, page, bytes);
		return;
	}
	target = hint / PAGE_SIZE;
	first = target - MIN(target, NEIGHBOURS);
	end = MIN(target + NEIGHBOURS + 1, pages);
	if (first > 0)
		clear_in_extents(how, large, page, first * PAGE_SIZE);
	if (end < pages)
		clear_in_extents(how, large, page + end * PAGE_SIZE, (pages - end) * PAGE_SIZE);
	clear_in_extents(how, how->insn[CLEAR_SMALL], page + first * PAGE_SIZE,
			 (end - first) * PAGE_SIZE);
}

const struct clear_mode clear_modes[] = {
	{.name = "page", .huge = clear_converging, .by_page = true},
	{.name = "multi", .huge = clear_in_three, .parallel = true},
	{.name = NULL},
};

enum { MODE_MULTI = 1 };
static unsigned clear_mode = MODE_MULTI;
OPTION_ROW(clear, clear_mode, clear_modes,
	   "how huge pages are cleared: page by page, or in extents");

/* 4 KiB shifted left by the number of the choice, but for the last. */
#define EXTENTS "4K|8K|16K|32K|64K|128K|256K|512K|1M|2M|4M|8M|16M|32M|64M|128M|256M|512M|1G|whole"
enum { EXTENT_32M = 13, EXTENT_WHOLE = 19 };
static unsigned clear_extent = EXTENT_32M;
OPTION_CHOICE(clear.extent, clear_extent, EXTENTS,
	      "largest part of a huge page that one instruction clears; whole: all of it");

static const struct clear_how *forced;

void clear_how_force(const struct clear_how *how)
{
	atomic_store_release(&forced, how);
}

struct clear_how clear_how_selected(void)
{
	const struct clear_how *by_force = atomic_load_acquire(&forced);
	const struct clear_mode *mode = &clear_modes[clear_mode];

	if (unlikely(by_force))
		return *by_force;
	return (struct clear_how){
		.mode = mode,
		.insn = {clear_insn_selected(CLEAR_SMALL), clear_insn_selected(CLEAR_LARGE),
			 clear_insn_selected(CLEAR_GIANT)},
		.extent = clear_extent == EXTENT_WHOLE ? CLEAR_WHOLE : PAGE_SIZE << clear_extent,
		.threads = mode->parallel ? cpu_count : 1};
}

/* ---- pages beyond 32 MiB ---- */

struct giant {
	const struct clear_how *how;
	char *page;
};

static void clear_slice(u64 start, u64 end, void *arg)
{
	const struct giant *giant = arg;
	const struct clear_how *how = giant->how;

	clear_in_extents(how, how->insn[how->mode->by_page ? CLEAR_SMALL : CLEAR_GIANT],
			 giant->page + start, end - start);
}

static __attribute__((noinline)) void clear_giant(const struct clear_how *how, void *addr,
						  u64 bytes, node_t node)
{
	const u64 slice = MIN(MAX(extent_of(how), CLEAR_EXTENT), bytes);
	struct giant giant = {.how = how, .page = addr};
	struct padata_mt_job job = {.thread_fn = clear_slice,
				    .arg = &giant,
				    .size = bytes,
				    .align = slice,
				    .min_chunk = slice,
				    .max_threads = how->threads,
				    .node = node};

	padata_run(&job);
}

void clear_huge(const struct clear_how *how, void *addr, u64 bytes, u64 hint, node_t node)
{
	if (likely(bytes <= CLEAR_EXTENT))
		how->mode->huge(how, addr, bytes, hint);
	else
		clear_giant(how, addr, bytes, node);
}

void clear_huge_as_selected(void *addr, u64 bytes, u64 hint, node_t node)
{
	const struct clear_how how = clear_how_selected();

	clear_huge(&how, addr, bytes, hint, node);
}
