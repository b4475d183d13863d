/*
 * The benchmark of the HVO series, the debt of splitting: all returned memory is allocated as pages
 * of order 8 afterwards, which gives every block all its struct pages. Two pages come from one
 * block, so the times are those of pairs. See hvo_bench.c.
 *
 * The allocator would rather open memory that was never used than split a huge page. So all other
 * memory is held meanwhile, but for some blocks that metadata memory may need.
 */
#include "mm/memmap/meta.h"
#include "tests/bench/hvo_bench.h"
#include "tests/bench/measure.h"

enum {
	DEBT_ORDER = BLOCK_ORDER - 1,
	DEBT_BLOCKS_MAX = 32768, /* the struct pages of more blocks would fill the host */
	HELD_MAX = 65536,        /* huge pages that are held; each has a frame of struct pages */
	TIMED_MAX = 4096         /* blocks whose times are kept */
};

static u64 ns_of[TIMED_MAX];

static u64 hvo_debt_blocks(u64 pages)
{
	return MIN(pages * order_blocks(hvo_pool()->order), DEBT_BLOCKS_MAX);
}

/* Is a block free that has its struct pages? */
static bool full_is_free(void)
{
	for (unsigned z = 0; z < mm_kernel.zones; z++)
		if (atomic_load_relaxed(&mm_kernel.zone[z].free_class[FREE_FULL]) > 0 ||
		    atomic_load_relaxed(&mm_kernel.zone[z].free_class[FREE_MAPPED]) > 0)
			return true;
	return false;
}

/*
 * Blocks that have their struct pages are held as small pages, because as huge ones they would give
 * them up, and the tables of their section would stay split. Pages of 1 GiB come first, so that few
 * frames hold terabytes.
 */
struct page *hvo_hold_rest(u64 pages)
{
	u64 left = 64 + hvo_debt_blocks(pages) / 16; /* for metadata memory and the reserves */
	struct page *chain = NULL;
	u64 held = 0;

	while (!full_is_free() && chain_take(&chain, &mm_kernel, 1, GIGA_ORDER, 0, NODE_NONE))
		;
	while (held++ < HELD_MAX &&
	       chain_take(&chain, &mm_kernel, 1, full_is_free() ? DEBT_ORDER : BLOCK_ORDER, 0,
			  NODE_NONE))
		;
	while (chain && left > 0) {
		left -= MIN(left, MAX(order_pages(page_order(chain)) / BLOCK_FRAMES, 1));
		page_free(page_chain_pop(&chain));
	}
	return chain;
}

/*
 * Write once to the frames that the struct pages of `blocks` blocks will have. A virtual machine's
 * host gives memory at the first write, and that takes many times as long as all that is measured
 * here. The frames are chained through their first words.
 */
static void touch_frames(struct node *node, u64 blocks)
{
	pfn_t chain = PFN_NONE;

	for (u64 left = blocks * MEMMAP_FRAMES_PER_BLOCK;
	     left > 0 && meta_reserve(node, META_TAILS, 1) == 0; left--) {
		const pfn_t pfn = meta_take(node, META_TAILS);

		*(pfn_t *)phys_to_virt(pfn << PAGE_SHIFT) = chain;
		chain = pfn;
	}
	while (chain != PFN_NONE) {
		const pfn_t pfn = chain;

		chain = *(pfn_t *)phys_to_virt(pfn << PAGE_SHIFT);
		meta_give(node->mm, pfn, 0);
	}
}

/* Allocate both halves of a block. False: no memory. */
static bool take_block(struct page **chain)
{
	const u64 halves = order_pages(BLOCK_ORDER - DEBT_ORDER);

	return chain_take(chain, &mm_kernel, halves, DEBT_ORDER, 0, NODE_NONE) == halves;
}

static void sum_up(struct split_debt *debt)
{
	const u64 timed = MIN(debt->blocks, TIMED_MAX);

	if (timed == 0)
		return;
	debt->ns_first = ns_of[0];
	sort_u64(ns_of, timed);
	debt->ns_p50 = ns_of[timed / 2];
	debt->ns_p99 = ns_of[timed * 99 / 100];
	debt->ns_max = ns_of[timed - 1];
}

struct split_debt hvo_split_debt(u64 pages, struct page *held)
{
	const u64 blocks = hvo_debt_blocks(pages);
	struct split_debt debt = {0};
	struct page *chain = NULL;
	u64 start, before, now;
	struct leg_work work = {0};

	for (node_t n = 0; n < mm_kernel.nodes; n++)
		touch_frames(&mm_kernel.node[n], blocks / mm_kernel.nodes);
	leg_work_prepare(&work);
	start = before = now = clock_ns();
	while (debt.blocks < blocks && take_block(&chain)) {
		now = clock_ns();
		if (debt.blocks < TIMED_MAX)
			ns_of[debt.blocks] = now - before;
		before = now;
		debt.blocks++;
	}
	debt.ns = now - start;
	leg_work_end(&work);
	debt.work = work.inside;
	chain_give(&chain, &mm_kernel);
	chain_give(&held, &mm_kernel);
	sum_up(&debt);
	return debt;
}

/* ---- the table of all costs ---- */

static u64 ps_each(u64 ns, u64 count)
{
	return count ? ns * 1000 / count : 0;
}

/* Splitting is measured by block, and there may be more pages than were split. */
u64 hvo_cost_ps(const struct leg *grow, const struct leg *shrink)
{
	return ps_each(grow->debt_open_ns + grow->ns + shrink->ns, grow->done) +
	       ps_each(grow->split.ns, grow->split.blocks) * order_blocks(hvo_pool()->order);
}

void hvo_print_costs_head(void)
{
	print("\n  In all, us a page: opening memory before, growing, shrinking, splitting all "
	      "pages after.\n"
	      "  Splitting a block for two pages of 1 MiB, us: the first after the shrink, median, "
	      "99 of 100, longest.\n\n"
	      "  %-10s %8s %8s %8s %8s %8s  %-27s %8s %8s %8s %8s\n",
	      "mode", "open", "grow", "shrink", "split", "in all", "mode:off (range)", "first",
	      "p50", "p99", "max");
}

void hvo_print_costs(const struct leg *grow, const struct leg *shrink,
		     const struct hvo_ratio *ratio)
{
	char relative[80];

	hvo_format_ratio(relative, sizeof(relative), ratio);
	print("  %-10s %4llu.%03llu %4llu.%03llu %4llu.%03llu %4llu.%03llu %4llu.%03llu  %-27s "
	      "%4llu.%03llu %4llu.%03llu %4llu.%03llu %4llu.%03llu\n",
	      grow->mode->name, THOUSANDTHS(ps_each(grow->debt_open_ns, grow->done) / 1000),
	      THOUSANDTHS(ps_each(grow->ns, grow->done) / 1000),
	      THOUSANDTHS(ps_each(shrink->ns, grow->done) / 1000),
	      THOUSANDTHS(ps_each(grow->split.ns, grow->split.blocks) *
			  order_blocks(hvo_pool()->order) / 1000),
	      THOUSANDTHS(hvo_cost_ps(grow, shrink) / 1000), relative,
	      THOUSANDTHS(grow->split.ns_first), THOUSANDTHS(grow->split.ns_p50),
	      THOUSANDTHS(grow->split.ns_p99), THOUSANDTHS(grow->split.ns_max));
}
