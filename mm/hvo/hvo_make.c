/*
 * HVO: the passes over a batch. hvo.c says why they are safe, and which mode runs which.
 */
#include "mm/hvo/hvo_make.h"

#include <arch/check.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/panic.h"
#include "kernel/core/wait.h"
#include "mm/hvo/hvo_share.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/enter.h"
#include "mm/memmap/vmemmap.h"
#include "mm/zone/transit.h"

/* ---- pass 1 and 2: split ---- */

/*
 * Split the leaf over one section, if it is under a leaf. 1 if this call split it, 0 if there was
 * nothing to do, -ENOMEM.
 */
static int split_section(struct mm *mm, struct node *node, u64 section)
{
	pfn_t table;
	int split;

	if (!vmemmap_is_leaf(mm, section))
		return 0;
	if (meta_reserve(node, META_LASTING, 1) < 0)
		return -ENOMEM;
	table = meta_take(node, META_LASTING);
	split = vmemmap_split(mm, section, table);
	if (split)
		mm_count(mm, COUNT_TABLES, 1);
	else
		meta_give(mm, table, 0); /* another CPU was first */
	return split;
}

/*
 * Split every section that a run reaches into, and add the number of splits to *split. 0, or
 * -ENOMEM; *split then counts the splits made before the failure.
 */
static int split_run(struct mm *mm, u32 index, u32 *split)
{
	const u32 end = index + order_blocks(block_look_at(mm, index).order);

	for (u64 section = index / SECTION_BLOCKS; section * SECTION_BLOCKS < end; section++) {
		const int one = split_section(mm, block_meta_node(mm, index), section);

		if (one < 0)
			return one;
		*split += (u32)one;
	}
	return 0;
}

/*
 * Complete the round that `split` splits need, then wait for the rounds of other CPUs that split a
 * leaf which this CPU found split.
 */
static void split_round(struct mm *mm, u32 split)
{
	struct wait wait = wait_begin(WAIT_TRANSIT, "another CPU's round after a PMD split");

	if (split > 0) {
		shootdown_full(SHOOTDOWN_ALL_CPUS);
		atomic_fetch_sub(&mm->splits_unflushed, split);
	}
	while (atomic_load_acquire(&mm->splits_unflushed) != 0)
		wait_spin(&wait, CPU_NONE);
}

/*
 * Split all sections of the batch, with a round after each split or one at the end. If there is
 * no frame for a table, the runs of that section are left out, and this turn does not look at them
 * again. Another CPU may split the leaf at any time, and the remap pass would then find a
 * table without having waited for its round. Runs that are under tables already may owe that to
 * another CPU's split: the wait at the end covers those as well.
 */
static void split_pass(struct hvo_batch *batch)
{
	struct mm *mm = batch->mm;
	u64 starved = ~0ULL;
	u32 split = 0;

	for (u32 index = batch->list.head, next; index != BLOCK_NONE; index = next) {
		const u64 section = index / SECTION_BLOCKS;

		next = block_existing(mm, index)->next;
		if (section == starved || split_run(mm, index, &split) < 0) {
			starved = section;
			block_list_remove(mm, &batch->list, index);
			block_list_push(mm, &batch->left_out, index);
		}
		if (split > 0 && batch->mode->page_rounds) {
			split_round(mm, split);
			split = 0;
		}
	}
	split_round(mm, split);
}

/*
 * Count the runs that are not huge yet, and compare all. Returns true if leaves may have to be
 * split for them.
 */
static bool survey(struct hvo_batch *batch)
{
	u32 index = batch->list.head;
	u64 first = 0, differ = 0;
	bool mapped = false;

	batch->to_do = 0;
	if (index != BLOCK_NONE)
		first = block_word_bits(block_look_at(batch->mm, index));
	while (index != BLOCK_NONE) {
		const struct block *block = block_existing(batch->mm, index);
		const struct block_word word = block_look(block);

		if (word.state != BLOCK_HUGE) {
			batch->to_do++;
			mapped |= word.state == BLOCK_FULL && (word.flags & BLOCK_MAPPED);
		}
		differ |= block_word_bits(word) ^ first;
		index = block->next;
	}
	batch->alike = !block_word_of(differ).state && !block_word_of(differ).zone;
	return mapped;
}

/* ---- pass 3: remap ---- */

/*
 * One CPU's state while it goes from run to run. It saves turns at locks and walks of page tables:
 *
 *   heads, first  frames for the heads of the next pages, as meta_take_word() takes them;
 *   left          so many runs more are known to need one of the same node
 *   gone          frames of blocks whose tails it has shared, which are gated together;
 *   block, head   those blocks, and the heads of their runs
 *   near          the line that it filled last
 */
enum { HEADS_AT_ONCE = 64, GATED_AT_ONCE = 4 };
struct head_stash {
	u64 heads, left;
	pfn_t first;
	unsigned blocks, frames;
	struct vmemmap_near near;
	u32 block[GATED_AT_ONCE], head[GATED_AT_ONCE];
	pfn_t gone[GATED_AT_ONCE * MEMMAP_FRAMES_PER_BLOCK];
};

/*
 * Number of runs that need a head of the same node: block `index` and those after it in its list,
 * as long as they are in the same state and zone.
 */
static u64 heads_needed(const struct mm *mm, u32 index)
{
	const struct block_word first = block_look_at(mm, index);
	u64 count = 0;

	while (index != BLOCK_NONE && count < HEADS_AT_ONCE) {
		const struct block *block = block_existing(mm, index);
		const struct block_word word = block_look(block);

		if (word.state != first.state || word.zone != first.zone)
			break;
		index = block->next;
		count++;
	}
	return count;
}

/* Fill an empty stash for block `index` and the blocks after it in its list. */
static void fill_stash(struct mm *mm, struct head_stash *stash, u32 index, struct block_word word)
{
	if (stash->left == 0)
		stash->left = heads_needed(mm, index);
	stash->heads = meta_take_word(block_meta_node(mm, index), meta_kind_of_head(word.order),
				      (unsigned)MIN(stash->left, HEADS_AT_ONCE), &stash->first);
	stash->left -= (u64)__builtin_popcountll(stash->heads);
}

/*
 * Take a reserved frame for the head of block `index`, whose record says `word`, and write the head
 * and 63 tails into it.
 */
static inline pfn_t form_head(struct mm *mm, struct head_stash *stash, u32 index,
			      struct block_word word)
{
	pfn_t head;

	if (stash->heads == 0)
		fill_stash(mm, stash, index, word);
	head = stash->first + (unsigned)__builtin_ctzll(stash->heads);
	stash->heads &= stash->heads - 1;
	check_frames_reused(head, 1);
	memmap_init_head_frame(phys_to_virt(head << PAGE_SHIFT), word.order, word.zone);
	return head;
}

static void noheads_from_bare(struct mm *mm, struct head_stash *stash, u32 index, pfn_t tail)
{
	for (u32 i = index + 1; i < index + GIB_BLOCKS; i++) {
		vmemmap_set_nohead(mm, vmemmap_line_near(mm, &stash->near, i), i, tail);
		block_set_state(mm, i, BLOCK_NOHEAD);
	}
}

/* Optimise a bare run: one head frame, lines of shared tails, no flush. */
static inline void huge_from_bare(struct mm *mm, struct head_stash *stash, u32 index,
				  struct block_word word)
{
	const pfn_t tail = vmemmap_shared_tail(mm, &mm->zone[word.zone], word.order);
	pfn_t head;

	if (word.order == GIGA_ORDER)
		noheads_from_bare(mm, stash, index, tail);
	head = form_head(mm, stash, index, word);
	vmemmap_set_huge(mm, vmemmap_line_near(mm, &stash->near, index), index, head, tail);
	block_set_state(mm, index, BLOCK_HUGE);
}

/*
 * Give back the frames that lines no longer map; they wait for the next round. The heads keep its
 * generation, and the blocks are huge from now on.
 */
static void gate_frames(struct mm *mm, struct head_stash *stash)
{
	u64 tag;

	if (stash->blocks == 0)
		return;
	tag = shootdown_tag();
	meta_give_many(mm, stash->gone, stash->frames, tag);
	for (unsigned i = 0; i < stash->blocks; i++) {
		const u32 block = stash->block[i], head = stash->head[i];

		block_existing(mm, head)->tag = tag;
		block_set_state(mm, block, block == head ? BLOCK_HUGE : BLOCK_NOHEAD);
	}
	stash->blocks = stash->frames = 0;
}

/* The line of `block`, in the run of `head`, has given up the last `frames` frames of `gone`. */
static inline void note_gone(struct mm *mm, struct head_stash *stash, u32 block, u32 head,
			     unsigned frames)
{
	stash->block[stash->blocks] = block;
	stash->head[stash->blocks++] = head;
	stash->frames += frames;
	if (stash->blocks == GATED_AT_ONCE)
		gate_frames(mm, stash);
}

/*
 * Share the tails of the first block of a run that has private struct pages. `frames` receives
 * those that its line no longer maps; returns how many.
 */
static unsigned share_first(struct hvo_batch *s, struct head_stash *stash, u32 index,
			    struct block_word word, pfn_t tail, pfn_t *frames)
{
	pfn_t head = PFN_NONE;

	if (s->mode->new_head)
		head = form_head(s->mm, stash, index, word);
	else
		memmap_init_head_frame(block_page(s->mm, index), word.order, word.zone);
	return vmemmap_share_tails(s->mm, vmemmap_line_near(s->mm, &stash->near, index), index,
				   head, tail, frames);
}

/*
 * Optimise a run with private struct pages: share the tails and gate their frames. The record keeps
 * the tag of the round that is due. With a round for each page, the round is now, and the frames
 * are free after it; a 1 GiB page has too many entries for a ranged one.
 */
static void remap_run(struct hvo_batch *s, struct head_stash *stash, u32 index,
		      struct block_word word)
{
	struct mm *mm = s->mm;
	const pfn_t tail = vmemmap_shared_tail(mm, &mm->zone[word.zone], word.order);
	pfn_t *gone = stash->gone + stash->frames;
	const unsigned frames = share_first(s, stash, index, word, tail, gone);

	if (s->mode->page_rounds && word.order == BLOCK_ORDER) {
		hvo_round_of_page(mm, index, word.order);
		meta_give_many(mm, gone, frames, 0);
		block_existing(mm, index)->tag = 0;
		block_set_state(mm, index, BLOCK_HUGE);
		return;
	}
	note_gone(mm, stash, index, index, frames);
	for (u32 i = index + 1; i < index + order_blocks(word.order); i++)
		note_gone(mm, stash, i, index,
			  vmemmap_share_all(mm, vmemmap_line_near(mm, &stash->near, i), i, tail,
					    stash->gone + stash->frames));
	s->round_due = true;
	if (s->mode->page_rounds) {
		gate_frames(mm, stash);
		hvo_round(s);
	}
}

int hvo_join_with_head(struct zone *zone, u32 first)
{
	struct node *node = zone_meta_node(zone);
	int err;

	if (meta_reserve(node, META_LASTING, 1) < 0)
		return -ENOMEM;
	err = block_join(zone, first);
	if (err)
		meta_unreserve(node, META_LASTING, 1);
	return err;
}

/*
 * All tails of an order are alike, so it does not matter what a block was before. The head gets a
 * new frame, where frames live for ever, because the block of the one in place should not stay as
 * long as the page.
 */
int hvo_gather(struct mm *mm, u32 first)
{
	static const struct hvo_mode mode = {.new_head = true};
	struct hvo_batch batch = {.mm = mm, .mode = &mode};
	struct head_stash stash = {.heads = 1};
	u32 index = first;
	/* before all else: from here on, other CPUs can cut or isolate only the whole */
	const int err = hvo_join_with_head(block_zone(mm, first), first);

	if (err)
		return err;
	stash.first = meta_take(block_meta_node(mm, first), META_LASTING);
	while (index < first + GIB_BLOCKS && block_look_at(mm, index).state == BLOCK_BARE)
		index++;
	if (index == first + GIB_BLOCKS)
		huge_from_bare(mm, &stash, first, block_look_at(mm, first));
	else
		remap_run(&batch, &stash, first, block_look_at(mm, first));
	gate_frames(mm, &stash);
	hvo_round(&batch);
	return 0;
}

static void remap_stretch(struct hvo_batch *s)
{
	struct head_stash stash = {.left = s->alike ? s->list.count : 0};

	for (u32 index = s->list.head, next; index != BLOCK_NONE; index = next) {
		const struct block *block = block_existing(s->mm, index);
		const struct block_word word = block_look(block);

		next = block->next;

		switch (word.state) {
		case BLOCK_HUGE: /* unchanged since it was last huge: not even touched */
			break;
		case BLOCK_BARE:
			huge_from_bare(s->mm, &stash, index, word);
			break;
		case BLOCK_FULL:
			remap_run(s, &stash, index, word);
			break;
		default:
			panic("block %u is %s, which cannot become huge", index,
			      block_state_name(word.state));
		}
	}
	gate_frames(s->mm, &stash);
}

static bool hvo_defer = true;
OPTION_BOOL(
	hvo.defer, hvo_defer,
	"hvo=on: put off the round after a remap until a page is given out or frames are short");

void hvo_make_huge(struct hvo_batch *batch)
{
	if (survey(batch))
		split_pass(batch); /* passes 1 and 2 */
	if (batch->to_do > 0)
		hvo_share(batch, hvo_to_share(batch), remap_stretch); /* pass 3 */
	if (batch->mode->mapped || !hvo_defer)
		hvo_round(batch); /* pass 4 */
}

/* ---- pages with all their struct pages ---- */

static void form_stretch(struct hvo_batch *s)
{
	block_list_foreach(s->mm, index, &s->list) {
		struct page *head = block_page(s->mm, index);
		const unsigned order = block_look_at(s->mm, index).order;

		memmap_form_compound(head, order);
		page_set_kind(head, head->flags | PAGE_HUGETLB, order);
		atomic_store_release(&head->refcount, 0);
	}
}

void hvo_form(struct hvo_batch *batch)
{
	hvo_share(batch, batch->list.count, form_stretch);
}
