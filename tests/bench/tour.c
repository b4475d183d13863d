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
#include "kernel/console/command.h"
#include "kernel/console/input.h"
#include "mm/hvo/hvo_restore.h"
#include "mm/hvo/hvo_take.h"
#include "mm/hvo/hvo_unshare.h"
#include "mm/map/pgtable.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/vmemmap.h"
#include "mm/page/page_alloc.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/section.h"
#include "mm/zone/transit.h"
#include "tests/kernel/modes.h"
#include "tests/kernel/rounds.h"

enum { ON_DEMAND_BLOCKS = 16 };

struct tour {
	struct arena *a;
	u32 block; /* the watched block */
	struct block_list list;
	struct page *chain;
	bool slowly;
	unsigned steps; /* done so far */
};

struct step {
	const char *what;
	bool (*run)(struct tour *tour); /* false if it could not be done */
	enum block_state after;         /* the state of the block, then */
};

/* ---- showing ---- */

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

/* Before each step but the first, wait for a key if asked to. False if the user has stopped it. */
static bool go_on(const struct tour *tour)
{
	if (tour->slowly && tour->steps > 0) {
		print("  [any key]\n");
		while (!input_stop_asked() && input_key() < 0)
			cpu_nap(1);
	}
	return !input_stop_asked();
}

static bool state_is(const struct tour *tour, enum block_state state)
{
	return block_look_at(&tour->a->mm, tour->block).state == state;
}

/* Do each step and show the block before and after. False if one did not do what it should. */
static bool run_steps(struct tour *tour, const struct step *step)
{
	for (; step->what; step++) {
		const u64 rounds = rounds_so_far();

		if (!go_on(tour))
			return false;
		print("  %u. %s\n", ++tour->steps, step->what);
		show(tour, "before");
		if (!step->run(tour))
			return false;
		show(tour, "after");
		print("      flush rounds: %llu\n", rounds_so_far() - rounds);
		if (!state_is(tour, step->after))
			return false;
	}
	return true;
}

/* ---- one block, on demand ---- */

static bool optimise(struct tour *tour, const char *mode)
{
	struct mm *mm = &tour->a->mm;
	struct block_list left;

	if (hvo_optimise(mm, hvo_mode_find(mode), &tour->list, &left) > 0)
		return false;
	block_list_publish_used(mm, &tour->list, 0);
	return true;
}

static bool bare_becomes_huge(struct tour *tour)
{
	return optimise(tour, "on");
}

static bool huge_is_freed(struct tour *tour)
{
	block_list_free(&tour->a->mm, &tour->list);
	return true;
}

static bool huge_becomes_bare(struct tour *tour)
{
	hvo_bare_free_huge(block_zone(&tour->a->mm, tour->block), ~0ULL);
	return true;
}

/* Take single pages until they come from the watched block. */
static bool bare_becomes_full(struct tour *tour)
{
	for (u32 i = 0; i < ON_DEMAND_BLOCKS * BLOCK_FRAMES && state_is(tour, BLOCK_BARE); i++) {
		struct page *page = mm_page_alloc(&tour->a->mm, 0, USE_MOVABLE, 0, 0);

		if (!page)
			break;
		page_chain_push(&tour->chain, page);
	}
	return true;
}

static bool full_becomes_huge(struct tour *tour)
{
	while (tour->chain)
		mm_page_free(&tour->a->mm, page_chain_pop(&tour->chain));
	pcp_drain_all(&tour->a->mm);
	hvo_huge_free_full(block_zone(&tour->a->mm, tour->block), ON_DEMAND_BLOCKS);
	hvo_complete_round(&tour->a->mm, tour->block);
	return true;
}

static const struct step block_steps[] = {
	{"Bare to huge: a pool wants the page. Its head is written into one new frame, seven "
	 "entries get the page\n"
	 "     that all tails of the zone share. Nothing was there before, so no CPU can have it "
	 "cached: no flush.",
	 bare_becomes_huge, BLOCK_HUGE},
	{"Freed: it stays huge on the free list, tails shared. Growing again takes it as it is.",
	 huge_is_freed, BLOCK_HUGE},
	{"Huge to bare: memory for small pages is wanted. The entries are cleared; the head's "
	 "frame is gated until\n"
	 "     every CPU has flushed, then free.",
	 huge_becomes_bare, BLOCK_BARE},
	{"Bare to full: the block is split for a page of 4 KiB. Now all 512 struct pages are "
	 "needed: eight frames,\n"
	 "     written once in their final form. Again nothing was there before: no flush.",
	 bare_becomes_full, BLOCK_FULL},
	{"Full to huge again: every page is freed. The head stays where it is, seven private "
	 "frames are replaced by\n"
	 "     the shared one in place. This time CPUs may have the old ones cached: one flush,\n"
	 "     put off until the page is handed out (hvo_complete_round(), called here at once).",
	 full_becomes_huge, BLOCK_HUGE},
	{NULL, NULL, 0}};

/* Take a free block for `mode` and watch it. */
static bool watch_block(struct tour *tour, const char *mode)
{
	tour->list = BLOCK_LIST_INIT;
	if (hvo_take_blocks(arena_zone(tour->a, 0), hvo_mode_find(mode), BLOCK_ORDER, 1,
			    &tour->list) != 1)
		return false;
	tour->block = tour->list.head;
	return true;
}

static bool tour_block(struct tour *tour)
{
	print("\nOne block of 2 MiB and its eight frames of struct pages "
	      "(mm/memmap/block_state.c)\n\n");
	/*
	 * The first split ever turns a block into metadata memory for private struct pages. Let
	 * that happen to a block other than the watched one.
	 */
	return mm_page_alloc(&tour->a->mm, 0, USE_MOVABLE, 0, 0) && watch_block(tour, "on") &&
	       run_steps(tour, block_steps);
}

/* ---- one PMD split, as in the HVO series (Kravetz 2023) ---- */

static bool split_leaf(struct tour *tour)
{
	struct mm *mm = &tour->a->mm;
	struct node *node = &mm->node[0];
	pfn_t table;

	if (meta_reserve(node, META_LASTING, 1) < 0)
		return false;
	table = meta_take(node, META_LASTING);
	if (!vmemmap_split(mm, tour->block / SECTION_BLOCKS, table)) {
		meta_give(mm, table, 0);
		return false;
	}
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	atomic_fetch_sub(&mm->splits_unflushed, 1);
	mm_count(mm, COUNT_TABLES, 1);
	return true;
}

static bool remap_tails(struct tour *tour)
{
	return optimise(tour, "batched");
}

static bool restore_tails(struct tour *tour)
{
	struct mm *mm = &tour->a->mm;
	struct block_list done = BLOCK_LIST_INIT;
	u64 restored;

	block_list_begin(mm, &tour->list, BLOCK_FULL);
	if (hvo_restore(mm, hvo_mode_find("batched"), &tour->list, &done, &restored) < 0)
		return false;
	block_list_publish_free(mm, &done);
	return true;
}

static const struct step split_steps[] = {
	{"The PMD split: one leaf becomes a table with the same 512 translations. Every struct "
	 "page stays where it is, but\n"
	 "     the size of the mapping changes, so all CPUs flush before anything else does.",
	 split_leaf, BLOCK_FULL},
	{"The remap (hvo=batched): a new frame for the head, the shared page for the tails, one "
	 "flush for the whole batch,\n"
	 "     here of one page. Before the HVO series every page of a pool had two flushes of "
	 "its own.",
	 remap_tails, BLOCK_HUGE},
	{"The restore: before the page goes back, its struct pages become private again.",
	 restore_tails, BLOCK_FULL},
	{NULL, NULL, 0}};

static bool tour_split(struct tour *tour)
{
	print("\nOne PMD split and one remap, as Linux does them since 2023\n\n");
	return watch_block(tour, "batched") && run_steps(tour, split_steps);
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
	arena_drop(tour->a);
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
