/*
 * HVO, the way back: private struct pages for huge pages. See hvo.h; hvo.c says why each order of
 * steps is safe.
 */
#include "mm/hvo/hvo_restore.h"

#include "kernel/lib/string.h"
#include "mm/hvo/hvo_share.h"
#include "mm/hvo/hvo_steps.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/vmemmap.h"
#include "mm/zone/section.h"
#include "mm/zone/transit.h"

/*
 * The source of a run's struct pages: frames of a kind, of the node that has the memmap of the
 * run's section, or of the run's own node. The record keeps it (in `owner`) from the reservation of
 * the frames until they are taken.
 */
static u64 source_of(const struct node *node, enum meta_kind kind)
{
	return (u64)node->id << 8 | kind;
}

static struct node *home_of_run(struct mm *mm, u32 index)
{
	return block_at(mm, section_memmap(mm, index / SECTION_BLOCKS))->meta->node;
}

/* Nodes whose metadata memory had no frames for an earlier page of the batch. */
struct short_of {
	struct node *home;  /* few of a section's own, before a round for those that are gated */
	struct node *tails; /* none at all, and it could not grow */
};

/*
 * Frames of a section's own memmap come first: if others took their place, the blocks that hold
 * those could not go back (hvo_bring_home()). So gated ones are worth a round.
 */
static int reserve_home(struct mm *mm, u32 index, u64 count, struct short_of *short_of)
{
	const u32 memmap = section_memmap(mm, index / SECTION_BLOCKS);
	struct node *node = home_of_run(mm, index);

	if (meta_reserve_in(mm, memmap, count) == 0)
		return 0;
	if (short_of->home != node && count < BLOCK_FRAMES) {
		short_of->home = node;
		meta_wait_gated(node);
		if (meta_reserve_in(mm, memmap, count) == 0)
			return 0;
	}
	return meta_reserve_now(node, META_MEMMAP, count);
}

/*
 * Reserve all frames of a run: those in META_MEMMAP of the node that has its section's memmap, if
 * it has one, or else any that serve as tails. If a node's metadata memory could not grow for an
 * earlier page, it is not asked again, because the frames that this batch gives back come later.
 */
static int reserve_tails(struct mm *mm, u32 index, struct short_of *short_of)
{
	const struct block_word word = block_look_at(mm, index);
	const u64 count = (u64)order_blocks(word.order) * MEMMAP_FRAMES_PER_BLOCK - 1;
	struct node *node = block_meta_node(mm, index);
	enum meta_kind kind;

	if ((word.flags & BLOCK_MAPPED) && reserve_home(mm, index, count, short_of) == 0) {
		block_at(mm, index)->owner = source_of(home_of_run(mm, index), META_MEMMAP);
		return 0;
	}
	if (node == short_of->tails)
		return -ENOMEM;
	if (meta_reserve_tails(node, count, &kind) < 0) {
		short_of->tails = node;
		return -ENOMEM;
	}
	block_at(mm, index)->owner = source_of(node, kind);
	return 0;
}

/*
 * Write a frame of free struct pages: whole ones in mapped sections, as in the HVO series; else the
 * words that count.
 */
static void write_free(struct page *pages, struct block_word word)
{
	if (word.flags & BLOCK_MAPPED)
		memmap_init_pages(pages, STRUCTS_PER_FRAME, word.zone);
	else
		memmap_form_free(pages, STRUCTS_PER_FRAME, word.zone);
}

/*
 * Take reserved frames [from, 8) of a block and fill them with free struct pages. They come from
 * the memmap of the block's own section, as far as it has any.
 */
static void fill_tails(struct mm *mm, u64 source, u32 index, unsigned from,
		       pfn_t frames[MEMMAP_FRAMES_PER_BLOCK])
{
	const struct block_word word = block_look_at(mm, index);
	const u32 memmap =
		word.flags & BLOCK_MAPPED ? section_memmap(mm, index / SECTION_BLOCKS) : BLOCK_NONE;

	meta_take_many(&mm->node[source >> 8], (enum meta_kind)(source & 0xff), memmap,
		       frames + from, MEMMAP_FRAMES_PER_BLOCK - from);
	for (unsigned i = from; i < MEMMAP_FRAMES_PER_BLOCK; i++)
		write_free(phys_to_virt(frames[i] << PAGE_SHIFT), word);
}

/* Restore a run. All its frames are reserved. */
static void restore_run(struct mm *mm, u32 index)
{
	const u32 blocks = order_blocks(block_look_at(mm, index).order);
	const u64 source = block_at(mm, index)->owner;
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK];

	block_at(mm, index)->owner = 0;
	for (u32 i = blocks; i-- > 1;) {
		fill_tails(mm, source, index + i, 0, frames);
		vmemmap_set_private(mm, index + i, 0, frames);
		block_set_state(mm, index + i, BLOCK_FULL);
	}
	fill_tails(mm, source, index, 1, frames);
	vmemmap_set_private(mm, index, 1, frames);
	/* The head's frame stays in place; it is written again as 64 free struct pages. */
	write_free(block_page(mm, index), block_look_at(mm, index));
	block_set_state(mm, index, BLOCK_FULL);
}

/*
 * Reserve the frames for every page of the list. Pages for which there are none go to `kept`, so
 * each page is restored whole or not at all. Returns the number of pages with reserved frames.
 */
static u64 reserve_all(struct mm *mm, struct block_list *list, struct block_list *kept)
{
	struct short_of short_of = {.home = NULL};
	u64 reserved = 0;

	for (u32 index = list->head, next; index != BLOCK_NONE; index = next) {
		next = block_existing(mm, index)->next;
		if (block_look_at(mm, index).state != BLOCK_HUGE)
			continue;
		if (reserve_tails(mm, index, &short_of) == 0) {
			reserved++;
		} else {
			block_list_remove(mm, list, index);
			block_list_push(mm, kept, index);
		}
	}
	return reserved;
}

static void restore_stretch(struct hvo_batch *s)
{
	block_list_foreach(s->mm, index, &s->list) {
		if (block_look_at(s->mm, index).state != BLOCK_HUGE)
			continue;
		restore_run(s->mm, index);
		if (s->mode->page_rounds)
			hvo_round_of_page(s->mm, index, block_look_at(s->mm, index).order);
	}
}

/*
 * The work that is divided among CPUs, in pages that could be made meanwhile: seven frames are
 * written. Pages of mapped sections are divided by their number alone, as the baselines make them.
 */
static u64 work_to_share(const struct hvo_batch *batch)
{
	enum { MADE_MEANWHILE = 16 };
	const u64 pages = hvo_to_share(batch);
	const bool mapped =
		pages > 0 && (block_look_at(batch->mm, batch->list.head).flags & BLOCK_MAPPED);

	return mapped ? pages : pages * MADE_MEANWHILE;
}

int hvo_restore(struct mm *mm, const struct hvo_mode *mode, struct block_list *list,
		struct block_list *done, u64 *restored)
{
	struct hvo_batch batch = {
		.mm = mm, .mode = mode, .list = *list, .left_out = BLOCK_LIST_INIT};

	batch.to_do = reserve_all(mm, &batch.list, &batch.left_out);
	hvo_share(&batch, work_to_share(&batch), restore_stretch);
	batch.round_due = batch.to_do > 0 && !mode->page_rounds;
	hvo_round(&batch);
	*restored = batch.to_do;
	block_list_foreach(mm, index, &batch.list)
		hvo_forget_head(mm, index);
	block_list_splice(mm, done, &batch.list);
	*list = batch.left_out;
	return list->count ? -ENOMEM : 0;
}

/* ---- frames that are not of the section's own memmap ---- */

/*
 * The private frames of a block's line; those outside `memmap` are in `strays` too, with PFN_NONE
 * for the others. Returns the number of strays.
 */
static unsigned find_strays(const pte_t *line, u32 memmap, pfn_t frames[MEMMAP_FRAMES_PER_BLOCK],
			    pfn_t strays[MEMMAP_FRAMES_PER_BLOCK])
{
	unsigned count = 0;

	for (unsigned i = 0; i < MEMMAP_FRAMES_PER_BLOCK; i++) {
		const pte_t pte = pte_load(&line[i]);
		const bool stray = pte_writable(pte) && pte_pfn(pte) >> BLOCK_ORDER != memmap;

		frames[i] = pte_pfn(pte);
		strays[i] = stray ? frames[i] : PFN_NONE;
		count += stray;
	}
	return count;
}

/* The block is full and in transit. Its strays are gated; a round is due. False if it has none. */
static bool exchange_strays(struct mm *mm, u32 index, u32 memmap)
{
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK], strays[MEMMAP_FRAMES_PER_BLOCK];
	const pte_t *line = vmemmap_line(mm, index); /* NULL: under a leaf, opened anew */
	const unsigned count = line ? find_strays(line, memmap, frames, strays) : 0;

	if (count == 0 || meta_reserve_in(mm, memmap, count) < 0)
		return false;
	for (unsigned i = 0; i < MEMMAP_FRAMES_PER_BLOCK; i++) {
		if (strays[i] == PFN_NONE)
			continue;
		meta_take_many(home_of_run(mm, index), META_MEMMAP, memmap, &frames[i], 1);
		memcpy(phys_to_virt(frames[i] << PAGE_SHIFT), phys_to_virt(strays[i] << PAGE_SHIFT),
		       PAGE_SIZE);
	}
	vmemmap_set_private(mm, index, 0, frames);
	meta_give_many(mm, strays, MEMMAP_FRAMES_PER_BLOCK, shootdown_tag());
	return true;
}

/*
 * The look at a block that may be in use is a guess, because its section may be closed meanwhile.
 * It is looked at again in transit, when the section stays.
 */
static void take_with_strays(struct zone *zone, u64 section, struct block_list *list)
{
	struct mm *mm = zone->mm;
	const u32 memmap = section_memmap(mm, section), first = (u32)(section * SECTION_BLOCKS);
	const pte_t *line = vmemmap_line(mm, first); /* NULL: all is under a leaf */
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK], strays[MEMMAP_FRAMES_PER_BLOCK];

	for (u32 index = first; line && index < first + SECTION_BLOCKS;
	     index++, line += MEMMAP_FRAMES_PER_BLOCK)
		if (block_look_at(mm, index).state == BLOCK_FULL &&
		    find_strays(line, memmap, frames, strays) > 0 &&
		    block_take_in(zone, index, 1, TAKE_MAPPED, BLOCK_FULL) != BLOCK_NONE)
			block_list_push(mm, list, index);
}

u64 hvo_bring_home(struct zone *zone)
{
	struct mm *mm = zone->mm;
	struct block_list list = BLOCK_LIST_INIT;
	u64 changed = 0;

	for (u64 section = zone->start_pfn / BLOCK_FRAMES / SECTION_BLOCKS;
	     section * SECTION_BLOCKS * BLOCK_FRAMES < zone->end_pfn; section++)
		if (section_state(mm, section) == SECTION_OPEN &&
		    section_style(mm, section) == SECTION_MAPPED)
			take_with_strays(zone, section, &list);
	block_list_foreach(mm, index, &list)
		changed += exchange_strays(mm, index, section_memmap(mm, index / SECTION_BLOCKS));
	if (changed > 0)
		shootdown_wait(shootdown_tag());
	block_list_publish_free(mm, &list);
	return changed;
}
