/*
 * HVO: changes of free runs from one class to another, and 2 MiB pages out of 1 GiB pages.
 */
#include "mm/hvo/hvo_unshare.h"

#include "mm/hvo/hvo_restore.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/vmemmap.h"
#include "mm/zone/transit.h"

/* Clear every line of a huge run. Its record's `owner` keeps the head frame. */
static void clear_run(struct mm *mm, u32 index)
{
	const u32 blocks = order_blocks(block_look_at(mm, index).order);

	block_at(mm, index)->owner = vmemmap_clear(mm, index);
	for (u32 i = 1; i < blocks; i++)
		vmemmap_clear(mm, index + i);
}

/* Gate the frames of the heads, many in one turn at the lock of metadata memory. */
static void give_heads(struct mm *mm, struct block_list *list, u64 tag)
{
	enum { AT_ONCE = 32 };
	pfn_t heads[AT_ONCE];
	unsigned count = 0;

	block_list_foreach(mm, index, list) {
		heads[count++] = block_at(mm, index)->owner;
		block_at(mm, index)->owner = 0;
		if (count == AT_ONCE) {
			meta_give_many(mm, heads, count, tag);
			count = 0;
		}
	}
	meta_give_many(mm, heads, count, tag);
}

static void bare_run(struct mm *mm, u32 index, u64 tag)
{
	const u32 blocks = order_blocks(block_look_at(mm, index).order);

	for (u32 i = 0; i < blocks; i++) {
		block_at(mm, index + i)->tag = tag;
		block_set_state(mm, index + i, BLOCK_BARE);
	}
}

/*
 * Huge runs of on-demand sections lose their struct pages. The wait is needed because a bare block,
 * and its lines, may be used at once.
 */
static void make_bare(struct mm *mm, struct block_list *list)
{
	u64 tag;

	if (list->count == 0)
		return;
	block_list_foreach(mm, index, list)
		clear_run(mm, index);
	tag = shootdown_tag();
	give_heads(mm, list, tag);
	block_list_foreach(mm, index, list)
		bare_run(mm, index, tag);
	shootdown_wait(tag);
}

void hvo_unshare(struct mm *mm, const struct hvo_mode *mode, struct block_list *list,
		 struct block_list *done)
{
	struct block_list huge = BLOCK_LIST_INIT, mapped = BLOCK_LIST_INIT;
	u64 restored;

	block_list_drain(mm, index, list) {
		const struct block_word word = block_look_at(mm, index);

		if (word.flags & BLOCK_MAPPED) /* bare never occurs there */
			block_list_push(mm, &mapped, index);
		else
			block_list_push(mm, word.state == BLOCK_HUGE ? &huge : done, index);
	}
	make_bare(mm, &huge);
	block_list_splice(mm, done, &huge);
	if (mapped.count > 0)
		hvo_restore(mm, mode, &mapped, done, &restored);
	*list = mapped;
}

/* ---- free blocks between classes ---- */

static u64 publish(struct mm *mm, struct block_list *changed, struct block_list *unchanged)
{
	const u64 count = changed->count;

	block_list_publish_free(mm, changed);
	block_list_publish_free(mm, unchanged);
	return count;
}

static u64 free_unshared(struct mm *mm, const struct hvo_mode *mode, struct block_list *list)
{
	struct block_list done = BLOCK_LIST_INIT;

	hvo_unshare(mm, mode, list, &done);
	return publish(mm, &done, list);
}

u64 hvo_bare_free_huge(struct zone *zone, u64 count)
{
	struct block_list huge = BLOCK_LIST_INIT;
	const u64 rest = count - block_take(zone, FREE_HUGE, BLOCK_ORDER, count, BLOCK_BARE, &huge);

	block_take(zone, FREE_HUGE, GIGA_ORDER, rest / GIB_BLOCKS + (rest % GIB_BLOCKS > 0),
		   BLOCK_BARE, &huge);
	return free_unshared(zone->mm, &hvo_modes[HVO_ON], &huge);
}

u64 hvo_full_free_huge(struct zone *zone, u64 count)
{
	struct block_list list = BLOCK_LIST_INIT, done = BLOCK_LIST_INIT;
	u64 restored;

	if (block_take(zone, FREE_HUGE, BLOCK_ORDER, count, BLOCK_FULL, &list) > 0)
		hvo_restore(zone->mm, &hvo_modes[HVO_ON], &list, &done, &restored);
	return publish(zone->mm, &done, &list);
}

void hvo_bare_run(struct zone *zone, u32 index)
{
	struct block_list list = BLOCK_LIST_INIT;

	block_list_push(zone->mm, &list, index);
	free_unshared(zone->mm, &hvo_modes[HVO_ON], &list);
}

void hvo_free_restored(struct zone *zone, const struct hvo_mode *mode, u32 index)
{
	struct block_list list = BLOCK_LIST_INIT;

	block_list_push(zone->mm, &list, index);
	block_list_begin(zone->mm, &list, BLOCK_FULL);
	free_unshared(zone->mm, mode, &list);
}

u64 hvo_huge_free_full(struct zone *zone, u64 count)
{
	struct block_list list = BLOCK_LIST_INIT, left = BLOCK_LIST_INIT;

	if (block_take(zone, FREE_FULL, BLOCK_ORDER, count, BLOCK_HUGE, &list) > 0)
		hvo_optimise(zone->mm, &hvo_modes[HVO_ON], &list, &left);
	return publish(zone->mm, &list, &left);
}

static u64 bare_huge_in(struct zone *zone, u32 first, u32 count)
{
	const u32 index = block_take_in(zone, first, count, TAKE_HUGE, BLOCK_BARE);
	struct block_list list = BLOCK_LIST_INIT;

	if (index != BLOCK_NONE)
		block_list_push(zone->mm, &list, index);
	return free_unshared(zone->mm, &hvo_modes[HVO_ON], &list);
}

bool hvo_bare_in(struct zone *zone, u32 first, u32 count)
{
	struct block_list list = BLOCK_LIST_INIT, left = BLOCK_LIST_INIT;
	u32 index;

	if (bare_huge_in(zone, first, count) > 0)
		return true;
	index = block_take_in(zone, first, count, TAKE_FULL, BLOCK_HUGE);
	if (index == BLOCK_NONE)
		return false;
	block_list_push(zone->mm, &list, index);
	hvo_optimise(zone->mm, &hvo_modes[HVO_ON], &list, &left);
	publish(zone->mm, &list, &left);
	return bare_huge_in(zone, index, 1) > 0;
}

/* ---- demotion ---- */

/* A bare page's own head is wanted no more. The heads of mapped pages stay in their frames. */
static bool reserve_pieces(struct mm *mm, u32 index)
{
	const struct block_word word = block_look_at(mm, index);
	struct node *node = block_meta_node(mm, index);

	if (word.flags & BLOCK_MAPPED)
		return true;
	if (meta_reserve(node, META_HEADS, order_blocks(word.order)) < 0)
		return false;
	if (word.state == BLOCK_BARE)
		meta_unreserve(node, meta_kind_of_head(word.order), 1);
	return true;
}

u64 hvo_demote(struct mm *mm, const struct hvo_mode *mode, struct block_list *list,
	       struct block_list *done)
{
	struct block_list whole = BLOCK_LIST_INIT, kept = BLOCK_LIST_INIT, cut = BLOCK_LIST_INIT;
	struct block_list bare = BLOCK_LIST_INIT, full = BLOCK_LIST_INIT;
	struct hvo_mode in_place = *mode;
	u64 demoted;

	in_place.new_head = false;
	block_list_drain(mm, index, list)
		block_list_push(mm, reserve_pieces(mm, index) ? &whole : &kept, index);
	hvo_unshare(mm, mode, &whole, &cut);
	block_list_splice(mm, list, &kept);
	block_list_splice(mm, list, &whole);
	demoted = cut.count;
	block_list_drain(mm, index, &cut)
		block_cut(block_zone(mm, index), index,
			  block_look_at(mm, index).flags & BLOCK_MAPPED ? &full : &bare);
	hvo_make_all(mm, &hvo_modes[HVO_ON], &bare);
	hvo_make_all(mm, &in_place, &full);
	block_list_splice(mm, done, &bare);
	block_list_splice(mm, done, &full);
	return demoted;
}
