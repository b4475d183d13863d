/*
 * HVO: the modes, each a row over the same steps. See hvo.h. The order of the steps makes
 * them safe:
 *
 *   1  split   PMD leaf -> table of the same 512 translations; mapped sections only, on first use
 *   2  round   every CPU, idle ones too: the size of a mapping changed; only if 1 did anything
 *   3  remap   private struct pages -> shared tail page, read-only; blocks that had private struct
 *              pages
 *   4  round   before a replaced frame is reused or the page is handed out; only if 3 did anything
 *
 * Bare blocks skip all four. Their PTEs go from not present to present, and the TLB caches no
 * translation that is not present (Intel SDM vol. 3A, 4.10.2.3; AMD APM vol. 2, 5.5.2), so there is
 * nothing to flush.
 *
 * Why 1 and 3 are not one step: while an entry changes, a CPU may use either translation. If size
 * and frame changed together, the CPU could combine them (SDM vol. 3A, 4.10.5 "optional
 * invalidation"; AMD family 10h erratum 383). Another CPU may find the leaf split already. It may
 * not go on to pass 3 before the round of the CPU that split it; mm->splits_unflushed counts such
 * rounds. A leaf that pass 1 could not split stays out of pass 3, although another CPU may have
 * split it by then.
 *
 * Why the shared page may be mapped at once: all tails of an order are the same 64 bytes. Before
 * pass 3 the head's frame holds the head and 63 tails in final form. A stale translation of the
 * other frames reads old struct pages of the same run. No other code may use those while the run is
 * in transit, and their frames are not reused before round 4.
 *
 * Why round 4 may be deferred (hvo=on, hvo.defer=on): until it is done, a CPU may read the old
 * struct pages instead of the shared tails. This is safe for three reasons:
 *
 * 1. No code relies on the struct pages of a page that is in a pool or free, because the page's
 *    record, not its struct pages, says what it is.
 * 2. The old frames are gated, so nothing new is written to them.
 * 3. A block that changes state again does so with a round of its own, whose generation is higher.
 *
 * So the round is due when the page is given to a user: the record keeps its tag, and
 * hvo_complete_round() waits for it. One round serves every batch before it. The frames' wait is
 * bounded by meta_end_batch() at the end of a batch, and by any CPU that runs short of frames.
 *
 * Why pass 3 may be divided among CPUs (hvo_share.h): a line of PTEs is one cache line and belongs
 * to the block, and the struct pages of a run belong to the run. Frames are taken and given under
 * metadata memory's lock. The round, one for all stretches, follows when every helper has finished.
 *
 * Restoring is the mirror image: frames first, filled, then mapped, then a round, because a tail
 * may only be written once no CPU still has the read-only translation.
 *
 * A caller that passes runs in transit owns their records and lines; nothing here is done under a
 * lock.
 *
 * Sources: Kravetz, "Batch hugetlb vmemmap modification operations" v3, 2023-09; Song, "hugetlb:
 * free some vmemmap pages of hugetlb page", 2021.
 */
#include "mm/hvo/hvo.h"

#include <arch/check.h>

#include "kernel/core/cmdline.h"
#include "mm/hvo/hvo_make.h"
#include "mm/memmap/vmemmap.h"
#include "mm/zone/section_close.h"

/* ---- the table ---- */

const struct hvo_mode hvo_modes[] = {
	{.name = "off", .classes = 1, .class = {FREE_MAPPED}, .make = hvo_form, .mapped = true},
	{.name = "unbatched",
	 .classes = 1,
	 .class = {FREE_MAPPED},
	 .make = hvo_make_huge,
	 .mapped = true,
	 .new_head = true,
	 .page_rounds = true},
	{.name = "batched",
	 .classes = 1,
	 .class = {FREE_MAPPED},
	 .make = hvo_make_huge,
	 .mapped = true,
	 .new_head = true},
	/* bare runs come first among those that need work: they need no round */
	[HVO_ON] = {.name = "on",
		    .classes = 4,
		    .class = {FREE_HUGE, FREE_BARE, FREE_FULL, FREE_MAPPED},
		    .make = hvo_make_huge},
	/* takes pages that were born at boot again, and what is left of them */
	{.name = "preinit",
	 .classes = 3,
	 .class = {FREE_HUGE, FREE_MAPPED, FREE_BARE},
	 .make = hvo_make_huge,
	 .mapped = true,
	 .born = true,
	 .new_head = true},
	{.name = NULL},
};

static void make_nothing(struct hvo_batch *batch)
{
}

const struct hvo_mode hvo_leave_bare = {
	.name = "bare", .classes = 1, .class = {FREE_BARE}, .make = make_nothing};

unsigned hvo_selected = HVO_ON;

/*
 * The machine goes on with another mode. What free memory holds for modes of the other style is
 * given back now: up to a GiB in 64, which pools would find, but small requests would not.
 */
static void hvo_was_set(void)
{
	const enum section_style boot = mm_kernel.style;

	sections_give_back(&mm_kernel,
			   boot == SECTION_MAPPED ? boot : hvo_style(hvo_mode_selected()));
}

OPTION_ROW(hvo, hvo_selected, hvo_modes, "huge page vmemmap optimisation", .was_set = hvo_was_set);

/* ---- what every mode has in common ---- */

u64 hvo_optimise(struct mm *mm, const struct hvo_mode *mode, struct block_list *list,
		 struct block_list *left)
{
	struct hvo_batch batch = {.mm = mm, .mode = mode, .left_out = *list};
	u64 before;

	*list = BLOCK_LIST_INIT;
	for (;;) {
		before = batch.left_out.count;
		batch.list = batch.left_out;
		batch.left_out = BLOCK_LIST_INIT;
		mode->make(&batch);
		block_list_splice(mm, list, &batch.list);
		if (batch.left_out.count == 0 || batch.left_out.count == before)
			break;
		/* pass 3 gave frames up: free them, with a round, and try pass 1 again */
		for (node_t n = 0; n < mm->nodes; n++)
			meta_flush_gated(&mm->node[n]);
	}
	*left = batch.left_out;
	if (mode->new_head)
		block_list_foreach(mm, index, left)
			meta_unreserve(block_meta_node(mm, index),
				       meta_kind_of_head(block_look_at(mm, index).order), 1);
	return left->count;
}

void hvo_make_all(struct mm *mm, const struct hvo_mode *mode, struct block_list *list)
{
	struct hvo_batch rest = {.mm = mm};

	if (hvo_optimise(mm, mode, list, &rest.list) == 0)
		return;
	hvo_form(&rest);
	block_list_splice(mm, list, &rest.list);
}

void hvo_complete_round(struct mm *mm, u32 index)
{
	const struct block *head = block_existing(mm, index);
	const struct block_word word = block_look(head);

	if (word.state == BLOCK_HUGE)
		shootdown_wait(head->tag);
	check_event(CHECK_SETTLED, vmemmap_of_block(mm, index),
		    order_pages(word.order - BLOCK_ORDER));
}
