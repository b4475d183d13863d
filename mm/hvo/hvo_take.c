/*
 * HVO: taking free runs for a mode, and changes of free runs from one class to another.
 */
#include "mm/hvo/hvo_take.h"

#include "mm/hvo/hvo_restore.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/upward.h"
#include "mm/memmap/vmemmap.h"
#include "mm/zone/buddy.h"
#include "mm/zone/transit.h"

u64 hvo_take_blocks(struct zone *zone, const struct hvo_mode *mode, unsigned order, u64 count,
		    struct block_list *list)
{
	/* preinit uses the pages that it made at boot, when they have been given back */
	const bool takes_bare = !mode->mapped || mode->born;
	u64 taken = mode->take(zone, order, count, list), gained = 1;

	/*
	 * No free 2 MiB page is left, so every free huge page is a 1 GiB one. Turn such pages into
	 * bare blocks. Blocks that were small pages become huge ones first, where the mode itself
	 * takes none.
	 */
	while (taken < count && gained && order == BLOCK_ORDER && takes_bare &&
	       (hvo_bare_free_huge(zone, 1) > 0 || hvo_huge_free_full(zone, count - taken) > 0)) {
		gained = mode->take(zone, order, count - taken, list);
		taken += gained;
	}
	if (taken < count && order == GIGA_ORDER) /* make room for the rest, if possible */
		taken += mm_upward.take_giga(zone, mode, count - taken, list);
	return taken;
}

/* ---- free blocks between classes ---- */

void hvo_clear_run(struct mm *mm, u32 index)
{
	const u32 blocks = order_blocks(block_look_at(mm, index).order);
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK], head;

	vmemmap_clear(mm, index, frames);
	head = frames[0];
	for (u32 i = 1; i < blocks; i++)
		vmemmap_clear(mm, index + i, frames);
	block_at(mm, index)->owner = head;
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

/* The wait is needed because a bare block, and its lines, may be used at once. */
void hvo_make_bare(struct mm *mm, struct block_list *list)
{
	u64 tag;

	if (list->count == 0)
		return;
	block_list_foreach(mm, index, list)
		hvo_clear_run(mm, index);
	tag = shootdown_tag();
	give_heads(mm, list, tag);
	block_list_foreach(mm, index, list)
		bare_run(mm, index, tag);
	shootdown_wait(tag);
}

/* Runs of on-demand sections lose their struct pages. */
static u64 bare_list(struct mm *mm, struct block_list *list)
{
	const u64 count = list->count;

	hvo_make_bare(mm, list);
	block_list_publish_free(mm, list);
	return count;
}

/*
 * Runs get all their struct pages back: those of mapped sections, where bare never occurs, and
 * those that become small pages. Runs that cannot be restored stay huge.
 */
static u64 restore_list(struct mm *mm, const struct hvo_mode *mode, struct block_list *list)
{
	struct block_list done = BLOCK_LIST_INIT;
	u64 restored;

	if (list->count == 0)
		return 0;
	hvo_restore(mm, mode, list, &done, &restored);
	hvo_forget_heads(mm, &done);
	block_list_publish_free(mm, &done);
	block_list_publish_free(mm, list);
	return restored;
}

u64 hvo_bare_free_huge(struct zone *zone, u64 count)
{
	struct mm *mm = zone->mm;
	struct block_list huge = BLOCK_LIST_INIT, bare = BLOCK_LIST_INIT, restore = BLOCK_LIST_INIT;
	const u64 rest = count - block_take(zone, FREE_HUGE, BLOCK_ORDER, count, BLOCK_BARE, &huge);

	block_take(zone, FREE_HUGE, GIGA_ORDER, rest / GIB_BLOCKS + (rest % GIB_BLOCKS > 0),
		   BLOCK_BARE, &huge);
	block_list_drain(mm, index, &huge)
		block_list_push(mm,
				block_look_at(mm, index).flags & BLOCK_MAPPED ? &restore : &bare,
				index);
	return bare_list(mm, &bare) + restore_list(mm, &hvo_modes[HVO_ON], &restore);
}

u64 hvo_full_free_huge(struct zone *zone, u64 count)
{
	struct block_list list = BLOCK_LIST_INIT;

	block_take(zone, FREE_HUGE, BLOCK_ORDER, count, BLOCK_FULL, &list);
	return restore_list(zone->mm, &hvo_modes[HVO_ON], &list);
}

void hvo_bare_run(struct zone *zone, u32 index)
{
	struct block_list list = BLOCK_LIST_INIT;

	block_list_push(zone->mm, &list, index);
	if (block_look_at(zone->mm, index).flags & BLOCK_MAPPED)
		restore_list(zone->mm, &hvo_modes[HVO_ON], &list);
	else
		bare_list(zone->mm, &list);
}

void hvo_free_restored(struct zone *zone, const struct hvo_mode *mode, u32 index)
{
	struct block_list list = BLOCK_LIST_INIT;

	block_list_push(zone->mm, &list, index);
	block_list_begin(zone->mm, &list, BLOCK_FULL);
	restore_list(zone->mm, mode, &list);
}

u64 hvo_huge_free_full(struct zone *zone, u64 count)
{
	struct mm *mm = zone->mm;
	struct block_list list = BLOCK_LIST_INIT, left = BLOCK_LIST_INIT;
	u64 changed;

	if (block_take(zone, FREE_FULL, BLOCK_ORDER, count, BLOCK_HUGE, &list) == 0)
		return 0;
	hvo_optimise(mm, &hvo_modes[HVO_ON], &list, &left);
	changed = list.count;
	block_list_publish_free(mm, &list);
	block_list_publish_free(mm, &left);
	return changed;
}
