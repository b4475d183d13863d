/*
 * Evacuation: movable pages leave a chunk of a GiB that other memory has spoilt already, so that
 * memory which cannot be moved need not spoil another one (zone/gigablock.h).
 *
 *   GiB 9, tainted  [u u m m]  --the movers--> GiB 3, clean  [m . m m]
 *                        ^
 *                        then free, for unmovable pages
 *
 * Blocks are tried in order of address, from where the last call ended, so that blocks which refuse
 * are not tried again and again. After a search in vain some are left out, because its zone is most
 * likely full of memory that cannot be moved, and another zone is not. The pages that leave are
 * movable requests like any others, and these prefer clean GiB. The block of the chunk becomes
 * unmovable; its other movable pages stay in it.
 *
 * The cost is that of moving one chunk for each request that finds no room. A mover may itself ask
 * for unmovable pages; such a request does not evacuate.
 */
#include "mm/contig/evacuate.h"

#include "mm/memmap/enter.h"
#include "mm/page/migrate.h"
#include "mm/zone/gigablock.h"
#include "mm/zone/isolate.h"
#include "mm/zone/migratetype.h"
#include "mm/zone/section.h"

/*
 * For one order: chunks tried; blocks looked at; searches left out after one in vain. A chunk of
 * CHUNK_ORDER is tried first and smaller ones after it, so that few requests search. A GiB with
 * fewer movable frames than MOVABLE_LEAST is passed over, because nearly every look would be in
 * vain.
 */
enum { TRIES = 16, LOOKS = 512, REST = 64, CHUNK_ORDER = 6 };
enum { MOVABLE_LEAST = GIB_BLOCKS * BLOCK_FRAMES / 16 };

/* The chunk that a call tries to empty, and how often it may still try. */
struct effort {
	unsigned order;
	enum migratetype type; /* that the block of the chunk gets */
	unsigned tries, looks;
};

u64 evacuated_chunks;

/* Is it a block in pieces, some of which may be movable, as far as its record says? */
static bool is_candidate(const struct zone *zone, u32 index, enum migratetype type)
{
	const struct block_word word = block_look_any(zone->mm, index);

	return word.zone == zone->index && word.state == BLOCK_FULL && word.order == 0 &&
	       !(word.flags & (BLOCK_TRANSIT | BLOCK_FREE)) &&
	       (word.type == MIGRATE_MOVABLE || word.type == type);
}

/*
 * Is each page of `count` frames of a full block free in the buddy, or in use with a mover? Without
 * this look most attempts would fail half way. Zone lock held, so the block stays full.
 */
static bool frames_would_move(const struct page *pages, u64 count)
{
	u64 step;

	for (u64 i = 0; i < count; i += step) {
		const struct page_kind kind = page_kind(&pages[i]);
		const bool used =
			!(kind.flags & PAGE_PCP) && atomic_load_relaxed(&pages[i].refcount) > 0;

		step = kind.flags & (PAGE_BUDDY | PAGE_COMPOUND) ? order_pages(kind.order) : 1;
		if (kind.flags & PAGE_BUDDY)
			continue;
		if (!used || !page_flags_can_move(kind.flags) || step > count)
			return false;
	}
	return true;
}

/* The first chunk of a full block that would move, or NULL. Zone lock held. */
static struct page *find_chunk(const struct zone *zone, u32 index, unsigned order)
{
	struct page *pages = block_page(zone->mm, index);

	for (u64 i = 0; i < BLOCK_FRAMES; i += order_pages(order))
		if (frames_would_move(&pages[i], order_pages(order)))
			return &pages[i];
	return NULL;
}

/*
 * Find a chunk in the block, claim the block for `type` and isolate it, so that frames of the chunk
 * that are free or become so are not given out. NULL if there is none. No lock held.
 */
static struct page *isolate_chunk(struct zone *zone, u32 index, const struct effort *left,
				  struct isolation *token)
{
	struct page *chunk = NULL;

	zone_lock(zone);
	if (is_candidate(zone, index, left->type))
		chunk = find_chunk(zone, index, left->order);
	if (chunk && block_look_at(zone->mm, index).type == MIGRATE_MOVABLE)
		migratetype_change(zone, index, index + 1, BLOCK_TYPE_MASK, (u8)left->type);
	if (chunk && isolate_now(zone, index, 1, token) < 0)
		chunk = NULL;
	zone_unlock(zone);
	if (chunk)
		gigablock_taint(zone, index); /* if it was found to be clean just now */
	return chunk;
}

/* Move what is in use of a chunk. */
static bool try_chunk(struct zone *zone, u32 index, struct effort *left)
{
	const struct migrate_how how = {.giga = MIGRATE_KEEP_GIGA};
	struct migrate_stats stats = {0};
	struct isolation token;
	struct page *chunk = isolate_chunk(zone, index, left, &token);
	int err;

	if (!chunk)
		return false;
	left->tries--;
	err = migrate_pages(zone->mm, chunk, order_pages(left->order), &how, &stats);
	isolate_undo(zone, &token);
	if (err == -ENOMEM) /* nor will there be a page for the next chunk */
		left->tries = 0;
	atomic_add_relaxed(&evacuated_chunks, !err);
	return !err;
}

/* Can a GiB be emptied further? */
static bool is_worth_it(const struct gib *gib)
{
	return atomic_load_relaxed(&gib->tainted) &&
	       atomic_load_relaxed(&gib->movable) >= MOVABLE_LEAST;
}

/*
 * Try the blocks of tainted GiB in order of address, from the one that was looked at last on.
 * `again`: even if a search was in vain lately.
 */
static bool empty_some(struct zone *zone, unsigned order, enum migratetype type, bool again)
{
	const u32 first = (u32)zone_first_gib(zone) * GIB_BLOCKS,
		  count = (u32)zone_end_gib(zone) * GIB_BLOCKS - first;
	const u8 rest = atomic_load_relaxed(&zone->evacuate_rest[order]);
	struct effort left = {.order = order, .type = type, .tries = TRIES, .looks = LOOKS};
	u32 at = atomic_load_relaxed(&zone->evacuated) % count;
	bool done = false;

	if (rest > 0 && !again) {
		atomic_store_relaxed(&zone->evacuate_rest[order], (u8)(rest - 1));
		return false;
	}
	for (u32 seen = 0, step; seen < count && left.tries > 0 && left.looks > 0 && !done;
	     seen += step) {
		const u32 index = first + at;

		step = is_worth_it(gib_of(zone->mm, index)) ? 1 : GIB_BLOCKS - at % GIB_BLOCKS;
		if (step == 1 && is_candidate(zone, index, type)) {
			left.looks--;
			done = try_chunk(zone, index, &left);
		}
		if (!done)
			at = (at + step) % count;
	}
	atomic_store_relaxed(&zone->evacuated, at);
	if (!done)
		atomic_store_relaxed(&zone->evacuate_rest[order], REST);
	return done;
}

bool evacuate(struct zone *zone, unsigned order, enum migratetype type, bool again)
{
	struct pcp *pcp = pcp_of_this_cpu(zone->mm);
	bool done = false;

	if (pcp->evacuating)
		return false;
	pcp->evacuating = 1;
	for (unsigned more = CHUNK_ORDER; more > order && !done; more /= 2)
		done = empty_some(zone, more, type, again);
	done = done || empty_some(zone, order, type, again);
	pcp->evacuating = 0;
	return done;
}
