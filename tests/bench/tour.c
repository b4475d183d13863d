/*
 * `tour`: one block of 2 MiB through its states, and one PMD split as in the HVO series (Kravetz
 * 2023), step by step, with the real page tables before and after each step.
 *
 * It runs in an arena, a private machine over borrowed memory (tests/kernel/arena.h), so the
 * running machine is not disturbed, and the next block to be taken is known. Nothing is staged:
 * each step calls the function that normally does it.
 *
 * Source: mm/memmap/block_state.c; Kravetz, "Batch hugetlb vmemmap modification operations",
 * 2023-09.
 */
#include <arch/barrier.h>
#include <arch/cpu.h>

#include "kernel/console/command.h"
#include "kernel/console/input.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/core/shootdown.h"
#include "mm/hvo/hvo.h"
#include "mm/hvo/hvo_restore.h"
#include "mm/hvo/hvo_take.h"
#include "mm/hvo/hvo_unshare.h"
#include "mm/map/pgtable.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/vmemmap.h"
#include "mm/page/page_alloc.h"
#include "mm/page/pcp.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/section.h"
#include "mm/zone/transit.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/modes.h"

enum { ON_DEMAND_BLOCKS = 16 };

struct tour {
	struct arena *a;
	u32 block; /* the watched block */
	bool slowly;
	unsigned step;
	u64 rounds; /* flush rounds before this step */
};

/* ---- showing ---- */

static u64 rounds_now(void)
{
	struct shootdown_stats stats;

	shootdown_stats_read(&stats);
	return stats.flushes;
}

/* Eight entries: H head, t shared tail page, p private, - nothing. */
static void show_line(const struct tour *tour, const pte_t *line)
{
	const struct mm *mm = &tour->a->mm;
	const struct zone *zone = block_zone(&tour->a->mm, tour->block);
	const pfn_t tail = vmemmap_shared_tail(mm, zone, BLOCK_ORDER);
	const bool huge = block_look_at(mm, tour->block).state == BLOCK_HUGE;

	print("      PTEs of the block:");
	for (unsigned i = 0; i < PTES_PER_LINE; i++) {
		const pte_t pte = pte_load(&line[i]);

		if (!pte_present(pte))
			print(" -");
		else
			print(" %c:0x%llx%s",
			      pte_pfn(pte) == tail ? 't'
			      : huge && i == 0     ? 'H'
						   : 'p',
			      pte_pfn(pte), pte_writable(pte) ? "rw" : "ro");
	}
	print("\n");
}

static void show(const struct tour *tour, const char *when)
{
	const struct mm *mm = &tour->a->mm;
	const virt_t virt = vmemmap_of_block(mm, tour->block);
	const pte_t *entry = pgtable_entry(mm->root, virt, PT_PMD, NULL, NULL);
	const pte_t pmd = entry ? pte_load(entry) : 0, *line = vmemmap_line(mm, tour->block);
	const struct block *block = block_at(mm, tour->block);

	print("    %s: block %u is %s, struct pages at 0x%llx\n", when, tour->block,
	      block ? block_state_name(block_look(block).state) : "unknown", virt);
	if (!pte_present(pmd))
		print("      PMD: not present: 128 MiB without a struct page\n");
	else if (pte_is_leaf(pmd, PT_PMD))
		print("      PMD: one leaf of 2 MiB from frame 0x%llx: all 32768 struct pages of "
		      "the section\n",
		      pte_pfn(pmd));
	else
		print("      PMD: a table of 512 PTEs in frame 0x%llx, 8 for each block\n",
		      pte_pfn(pmd));
	if (line)
		show_line(tour, line);
}

/* Begin the next step. False if the user has stopped the tour. */
static bool next_step(struct tour *tour, const char *what)
{
	if (tour->slowly && tour->step > 0) {
		print("  [any key]\n");
		while (!input_stop_asked()) {
			if (input_key() >= 0)
				break;
			cpu_nap(1);
		}
	}
	if (input_stop_asked())
		return false;
	print("  %u. %s\n", ++tour->step, what);
	tour->rounds = rounds_now();
	return true;
}

static bool state_is(const struct tour *tour, enum block_state state)
{
	return block_look_at(&tour->a->mm, tour->block).state == state;
}

/* Show the block after the step. False if it is not in the expected state. */
static bool step_done(const struct tour *tour, enum block_state expected)
{
	show(tour, "after");
	print("      flush rounds: %llu\n", rounds_now() - tour->rounds);
	return state_is(tour, expected);
}

/* ---- one block, on demand ---- */

static bool bare_becomes_huge(struct tour *tour, struct block_list *list)
{
	struct mm *mm = &tour->a->mm;
	struct block_list left;

	if (!next_step(tour, "Bare to huge: a pool wants the page. Its head is written into one "
			     "new frame, seven entries get the page\n"
			     "     that all tails of the zone share. Nothing was there before, so "
			     "no CPU can have it cached: no flush."))
		return false;
	show(tour, "before");
	if (hvo_optimise(mm, hvo_mode_find("on"), list, &left) > 0)
		return false;
	block_list_publish_used(mm, list, 0);
	return step_done(tour, BLOCK_HUGE);
}

static bool huge_is_freed(struct tour *tour, struct block_list *list)
{
	if (!next_step(tour, "Freed: it stays huge on the free list, tails shared. Growing again "
			     "takes it as it is."))
		return false;
	show(tour, "before");
	block_list_free(&tour->a->mm, list);
	return step_done(tour, BLOCK_HUGE);
}

static bool huge_becomes_bare(struct tour *tour)
{
	if (!next_step(tour, "Huge to bare: memory for small pages is wanted. The entries are "
			     "cleared; the head's frame is gated until\n"
			     "     every CPU has flushed, then free."))
		return false;
	show(tour, "before");
	hvo_bare_free_huge(block_zone(&tour->a->mm, tour->block), ~0ULL);
	return step_done(tour, BLOCK_BARE);
}

/* Take single pages until they come from the watched block. */
static struct page *split_watched(struct tour *tour)
{
	struct page *chain = NULL;

	for (u32 i = 0; i < ON_DEMAND_BLOCKS * BLOCK_FRAMES && state_is(tour, BLOCK_BARE); i++) {
		struct page *page = mm_page_alloc(&tour->a->mm, 0, USE_MOVABLE, 0, 0);

		if (!page)
			break;
		page_chain_push(&chain, page);
	}
	return chain;
}

static bool bare_becomes_full(struct tour *tour, struct page **chain)
{
	if (!next_step(tour, "Bare to full: the block is split for a page of 4 KiB. Now all 512 "
			     "struct pages are needed: eight frames,\n"
			     "     written once in their final form. Again nothing was there "
			     "before: no flush."))
		return false;
	show(tour, "before");
	*chain = split_watched(tour);
	return step_done(tour, BLOCK_FULL);
}

static bool full_becomes_huge(struct tour *tour, struct page *chain)
{
	while (chain)
		mm_page_free(&tour->a->mm, page_chain_pop(&chain));
	pcp_drain_all(&tour->a->mm);
	if (!next_step(tour,
		       "Full to huge again: every page was freed. The head stays where it is, "
		       "seven private frames are replaced by\n"
		       "     the shared one in place. This time CPUs may have the old ones cached: "
		       "one flush,\n"
		       "     put off until the page is handed out (hvo_complete_round(), called "
		       "here at once)."))
		return false;
	show(tour, "before");
	hvo_huge_free_full(block_zone(&tour->a->mm, tour->block), ON_DEMAND_BLOCKS);
	hvo_complete_round(&tour->a->mm, tour->block);
	return step_done(tour, BLOCK_HUGE);
}

static bool tour_block(struct tour *tour)
{
	const struct hvo_mode *on = hvo_mode_find("on");
	struct block_list list = BLOCK_LIST_INIT;
	struct page *chain = NULL;

	print("\nOne block of 2 MiB and its eight frames of struct pages "
	      "(mm/memmap/block_state.c)\n\n");
	/*
	 * The first split ever turns a block into metadata memory for private struct pages. Let
	 * that happen to a block other than the watched one.
	 */
	if (!mm_page_alloc(&tour->a->mm, 0, USE_MOVABLE, 0, 0))
		return false;
	if (hvo_take_blocks(arena_zone(tour->a, 0), on, BLOCK_ORDER, 1, &list) != 1)
		return false;
	tour->block = list.head;
	return bare_becomes_huge(tour, &list) && huge_is_freed(tour, &list) &&
	       huge_becomes_bare(tour) && bare_becomes_full(tour, &chain) &&
	       full_becomes_huge(tour, chain);
}

/* ---- one PMD split, as in the HVO series (Kravetz 2023) ---- */

static bool split_leaf(struct tour *tour, u64 section)
{
	struct mm *mm = &tour->a->mm;
	struct node *node = &mm->node[0];
	pfn_t table;

	if (!next_step(tour, "The PMD split: one leaf becomes a table with the same 512 "
			     "translations. Every struct page stays where it is, but\n"
			     "     the size of the mapping changes, so all CPUs flush before "
			     "anything else does."))
		return false;
	show(tour, "before");
	if (meta_reserve(node, META_LASTING, 1) < 0)
		return false;
	table = meta_take(node, META_LASTING);
	if (!vmemmap_split(mm, section, table)) {
		meta_give(mm, table, 0);
		return false;
	}
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	atomic_fetch_sub(&mm->splits_unflushed, 1);
	mm_count(mm, COUNT_TABLES, 1);
	return step_done(tour, BLOCK_FULL);
}

static bool remap_tails(struct tour *tour, struct block_list *list)
{
	struct mm *mm = &tour->a->mm;
	struct block_list left;

	if (!next_step(tour,
		       "The remap (hvo=batched): a new frame for the head, the shared page for the "
		       "tails, one flush for the whole batch,\n"
		       "     here of one page. Before the HVO series every page of a pool had two "
		       "flushes of its own."))
		return false;
	show(tour, "before");
	if (hvo_optimise(mm, hvo_mode_find("batched"), list, &left) > 0)
		return false;
	block_list_publish_used(mm, list, 0);
	return step_done(tour, BLOCK_HUGE);
}

static bool restore_tails(struct tour *tour, struct block_list *list)
{
	struct mm *mm = &tour->a->mm;
	struct block_list done = BLOCK_LIST_INIT;
	u64 restored;

	if (!next_step(tour, "The restore: before the page goes back, its struct pages become "
			     "private again."))
		return false;
	show(tour, "before");
	block_list_begin(mm, list, BLOCK_FULL);
	if (hvo_restore(mm, hvo_mode_find("batched"), list, &done, &restored) < 0)
		return false;
	block_list_publish_free(mm, &done);
	return step_done(tour, BLOCK_FULL);
}

static bool tour_split(struct tour *tour)
{
	struct block_list list = BLOCK_LIST_INIT;

	print("\nOne PMD split and one remap, as Linux does them since 2023\n\n");
	if (hvo_take_blocks(arena_zone(tour->a, 0), hvo_mode_find("batched"), BLOCK_ORDER, 1,
			    &list) != 1)
		return false;
	tour->block = list.head;
	return split_leaf(tour, tour->block / SECTION_BLOCKS) && remap_tails(tour, &list) &&
	       restore_tails(tour, &list);
}

/* ---- the command ---- */

/*
 * Run one part in an arena of its own; whatever the steps leave behind disappears with the arena.
 */
static int run_part(struct tour *tour, const struct arena_options *options,
		    bool (*part)(struct tour *))
{
	bool ok;

	tour->a = arena_borrow_with(options);
	if (!tour->a) {
		print("  this machine has no %llu MiB free in one piece to show it on\n",
		      options->bytes >> 20);
		return -ENOMEM;
	}
	ok = part(tour);
	arena_return(tour->a);
	return ok ? 0 : input_stop_asked() ? -EINTR : -EIO;
}

static int cmd_tour(const struct words *words)
{
	const struct arena_options on_demand = {.bytes = (u64)ON_DEMAND_BLOCKS << BLOCK_SHIFT},
				   mapped = {.bytes = MIB(256)};
	struct tour tour = {.slowly = words_plain_count(words) > 1};
	int err;

	if (tour.slowly && cmd_choice(words, 1, "pace", "slowly") < 0)
		return -EINVAL;
	err = run_part(&tour, &on_demand, tour_block);
	if (!err)
		err = run_part(&tour, &mapped, tour_split);
	if (err == -EIO)
		print("  the tour ends here: a step did not do what it should\n");
	return err;
}

COMMAND(tour, .usage = "[slowly]",
	.help = "one block through its states and one PMD split, with page tables before and after",
	.more = "  slowly: waits for a key after each step. It happens in borrowed memory and "
		"leaves nothing behind.\n",
	.max = 1, .run = cmd_tour, .choices = {"slowly"});
