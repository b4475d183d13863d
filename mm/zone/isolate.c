/*
 * Isolation of ranges of blocks: see isolate.h.
 */
#include "mm/zone/isolate.h"

#include "kernel/core/panic.h"
#include "kernel/core/wait.h"
#include "mm/memmap/enter.h"
#include "mm/zone/buddy.h"
#include "mm/zone/migratetype.h"

/* ---- tokens. Zone lock held ---- */

static bool overlaps(const struct isolation *token, u32 first, u32 count)
{
	return first < token->first + token->count && token->first < first + count;
}

bool isolate_covers(const struct zone *zone, u32 first, u32 count)
{
	for (const struct isolation *token = zone->isolations; token; token = token->next)
		if (overlaps(token, first, count))
			return true;
	return false;
}

static bool token_begin(struct zone *zone, u32 first, u32 count, struct isolation *token)
{
	if (isolate_covers(zone, first, count))
		return false;
	*token = (struct isolation){.next = zone->isolations, .first = first, .count = count};
	zone->isolations = token;
	return true;
}

/*
 * The link that points to a token. Asserts if the token is not on the list: the caller then ends an
 * isolation that it does not hold.
 */
static struct isolation **token_find(struct zone *zone, const struct isolation *token)
{
	struct isolation **at = &zone->isolations;

	ASSERT(spin_held(&zone->lock), "an isolation of zone %u ends without the zone lock",
	       zone->index);
	while (*at && *at != token)
		at = &(*at)->next;
	ASSERT(*at,
	       "the isolation of %u blocks from %u is ended twice, or by a caller that does not "
	       "hold it",
	       token->count, token->first);
	return at;
}

void isolate_end(struct zone *zone, struct isolation *token)
{
	struct isolation **at = token_find(zone, token);

	*at = token->next;
	*token = (struct isolation){.count = 0};
}

void isolate_move(struct zone *zone, struct isolation *from, struct isolation *to)
{
	zone_lock(zone);
	ASSERT(to->count == 0, "an isolation is moved to a place that holds one of %u blocks",
	       to->count);
	*token_find(zone, from) = to;
	*to = *from;
	*from = (struct isolation){.count = 0};
	zone_unlock(zone);
}

/* ---- which blocks can be isolated ---- */

/* May a page in use be moved, by its holder or, for a pool's page, by the pool? */
static bool page_can_move(struct page_kind kind)
{
	return page_flags_can_move(kind.flags) || (kind.flags & PAGE_HUGETLB);
}

/*
 * The first frame of a full block that is neither free, nor on a per-CPU list, nor movable, or
 * PFN_NONE. A bad frame has no references and is never free again. Zone lock held, so the block
 * stays full.
 */
static pfn_t page_obstacle(const struct mm *mm, u32 index)
{
	const struct page *pages = block_page(mm, index);

	for (u64 i = 0; i < BLOCK_FRAMES;) {
		const struct page_kind kind = page_kind(&pages[i]);

		if (!(kind.flags & (PAGE_BUDDY | PAGE_PCP)) &&
		    ((kind.flags & PAGE_BAD) || atomic_load_relaxed(&pages[i].refcount) > 0) &&
		    !page_can_move(kind))
			return block_pfn(index) + i;
		i += kind.flags & (PAGE_BUDDY | PAGE_PCP | PAGE_COMPOUND) ? order_pages(kind.order)
									  : 1;
	}
	return PFN_NONE;
}

/* Does the block's section open or close? Opening gives the block a new type. */
static bool comes_or_goes(struct block_word word)
{
	return word.state == BLOCK_UNOPENED ||
	       ((word.flags & BLOCK_TRANSIT) && word.target == BLOCK_UNOPENED);
}

/* A block in transit is still changing, so its contents are checked after it was published. */
pfn_t isolate_obstacle(const struct zone *zone, u32 index)
{
	const struct mm *mm = zone->mm;
	struct block_word head;
	const u32 at = block_run_head(mm, index, &head);
	const struct block_word word = at == index ? head : block_look_at(mm, index);
	const struct page *page = block_page(mm, at);

	if (word.zone != zone->index || block_word_is_isolated(word) || comes_or_goes(word))
		return block_pfn(index);
	if (head.flags & (BLOCK_FREE | BLOCK_TRANSIT | BLOCK_POOL))
		return word.state != BLOCK_META ? PFN_NONE : block_pfn(index);
	switch (head.state) {
	case BLOCK_HUGE:
		return page_can_move(page_kind(page)) ? PFN_NONE : block_pfn(at);
	case BLOCK_FULL:
		return page_obstacle(mm, index);
	default:
		return block_pfn(index); /* Metadata memory, firmware, no RAM */
	}
}

/* Isolate one run, page or block. Returns the number of blocks; -EAGAIN: ask again; -EBUSY. */
static int isolate_some(struct zone *zone, u32 index, u32 end)
{
	int done = -EBUSY;

	if (fail_here(&zone->mm->fail, FAIL_ISOLATE))
		return -EBUSY;
	zone_lock(zone);
	if (isolate_obstacle(zone, index) == PFN_NONE)
		done = migratetype_change(zone, index, end, 0, BLOCK_ISOLATED);
	zone_unlock(zone);
	return done;
}

/*
 * Has any run, page or block of [first, end) these flags of `mask`? Read under the lock, a slice in
 * each turn: a block that is not in transit any more is already where it was published to.
 */
static bool any_has(struct zone *zone, u32 first, u32 end, u8 mask, u8 flags)
{
	bool any = false;

	for (u32 index = first; index < end && !any;) {
		const u32 stop = MIN(index + LOCK_SLICE, end);

		zone_lock(zone);
		while (index < stop && !any) {
			struct block_word word;
			const u32 head = block_run_head(zone->mm, index, &word);

			any = (word.flags & mask) == flags;
			index = word.order > BLOCK_ORDER ? head + order_blocks(word.order)
							 : index + 1;
		}
		zone_unlock(zone);
	}
	return any;
}

/*
 * Put the token on the zone's list. From here on the range is the token's: no other CPU isolates a
 * part of it or closes one of its sections, even before the bits are set.
 */
static bool claim(struct zone *zone, u32 first, u32 count, struct isolation *token)
{
	bool claimed;

	zone_lock(zone);
	claimed = token_begin(zone, first, count, token);
	zone_unlock(zone);
	return claimed;
}

int isolate_range(struct zone *zone, u32 first, u32 count, struct isolation *token)
{
	const u32 end = first + count;
	struct wait wait =
		wait_begin(WAIT_TRANSIT, "blocks in transit to be published before isolation");
	u32 index = first;
	int done = 0;

	if (!claim(zone, first, count, token))
		return -EBUSY;
	while (index < end && wait.late == 0) {
		done = isolate_some(zone, index, end);
		if (done == -EAGAIN)
			wait_spin(&wait, CPU_NONE);
		else if (done < 0)
			break;
		else
			index += (u32)done;
	}
	while (done > 0 && wait.late == 0 &&
	       any_has(zone, first, end, BLOCK_TRANSIT, BLOCK_TRANSIT))
		wait_spin(&wait, CPU_NONE);
	if (done > 0 && wait.late == 0)
		return 0;
	isolate_undo(zone, token);
	return -EBUSY;
}

int isolate_now(struct zone *zone, u32 first, u32 count, struct isolation *token)
{
	int done;

	ASSERT(spin_held(&zone->lock), "block %u is isolated without the zone lock", first);
	for (u32 index = first; index < first + count; index++)
		if (comes_or_goes(block_look_at(zone->mm, index)))
			return -EBUSY;
	if (!token_begin(zone, first, count, token))
		return -EBUSY;
	done = migratetype_change(zone, first, first + count, 0, BLOCK_ISOLATED);
	ASSERT(done < 0 || (u32)done == count, "only %d of %u blocks from %u were isolated", done,
	       count, first);
	if (done < 0)
		isolate_end(zone, token);
	return MIN(done, 0);
}

void isolate_undo(struct zone *zone, struct isolation *token)
{
	const u32 end = token->first + token->count;
	u32 index = token->first;

	zone_lock(zone);
	token_find(zone, token);
	while (index < end) {
		const bool is = block_word_is_isolated(block_look_at(zone->mm, index));
		const int done = is ? migratetype_change(zone, index, end, BLOCK_ISOLATED, 0) : 1;

		ASSERT(done > 0, "a part of the free 1 GiB page with block %u was isolated", index);
		index += (u32)done;
		zone_unlock(zone); /* one run or block in each turn at the lock: ranges are long */
		zone_lock(zone);
	}
	isolate_end(zone, token);
	zone_unlock(zone);
}

bool isolate_test(struct zone *zone, u32 first, u32 count)
{
	return !any_has(zone, first, first + count, BLOCK_FREE, 0);
}
