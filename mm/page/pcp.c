/*
 * Per-CPU lists, orders 0..3: see pcp.h. Draining and disabling are in pcp_drain.c, order 9 in
 * pcp_huge.c.
 */
#include "mm/page/pcp.h"

#include "kernel/core/cmdline.h"
#include "mm/page/pcp_drain.h"
#include "mm/page/pcp_types.h"
#include "mm/zone/buddy_small.h"
#include "mm/zone/watermark.h"

enum { SEARCH_SLOTS = 8 }; /* slots searched for a run of order 1..3 before one is fetched */

static u64 high_max = PCP_HIGH_MAX;
OPTION_U64(pcp.high, high_max, PCP_HIGH_MIN, PCP_HIGH_MAX,
	   "the most frames of a zone that a CPU may hold");

/* Pointers first: to the lists of each zone, of no node's first zone, and of each node's. */
u64 pcp_bytes(unsigned zones, node_t nodes)
{
	const u64 pointers = zones + nodes + 1;

	return ALIGN_UP(sizeof(struct pcp) + pointers * sizeof(struct pcp_zone *), CACHE_LINE) +
	       zones * sizeof(struct pcp_zone) + sizeof(struct pcp_counts);
}

void pcp_init(struct mm *mm, cpu_t cpu)
{
	const unsigned zones = mm->zones;
	struct pcp *pcp = mm->pcp[cpu];
	struct pcp_counts *counts =
		(struct pcp_counts *)((virt_t)pcp + pcp_bytes(zones, mm->nodes)) - 1;
	struct pcp_zone *first = (struct pcp_zone *)counts - zones;

	pcp->counts = counts;
	pcp->freed = first;
	pcp->first = &pcp->zone[zones];
	for (unsigned z = 0; z < zones; z++) {
		pcp->zone[z] = &first[z];
		first[z].zone = z;
		first[z].in_use = page_state(0, 0, (u8)z, 1);
		first[z].on_list = page_state(PAGE_PCP, 0, (u8)z, 0);
		first[z].recent =
			(struct pcp_recent){.pages = PCP_NO_PAGES, .map = first[z].map[0]};
		for (unsigned type = 0; type < MIGRATE_TYPES; type++)
			first[z].word[type] = &first[z].none;
	}
	for (node_t n = 0; n <= mm->nodes; n++) {
		const node_t node = n > 0 ? n - 1 : MIN(cpu_data(cpu)->node, mm->nodes - 1);
		const u8 *zone = mm->node[node].zone;
		const u8 index =
			zone[ZONE_NORMAL] != ZONE_NONE ? zone[ZONE_NORMAL] : zone[ZONE_DMA32];

		pcp->first[n] = index == ZONE_NONE ? NULL : pcp->zone[index];
	}
}

/* ---- slots ---- */

bool pcp_slot_is_empty(struct pcp_zone *mine, u32 slot)
{
	for (unsigned w = 0; w < PCP_WORDS && mine->words[slot]; w++)
		if ((mine->words[slot] & 1u << w) && !mine->map[slot][w])
			mine->words[slot] &= (u8) ~(1u << w);
	return !mine->words[slot];
}

void pcp_slot_unuse(struct pcp_zone *mine, u32 slot)
{
	mine->used[mine->type[slot]][slot / 64] &= ~(1ULL << slot % 64);
}

static void slot_use(struct pcp_zone *mine, u32 slot)
{
	mine->used[mine->type[slot]][slot / 64] |= 1ULL << slot % 64;
}

/* Forget that allocation goes to this slot next, for each type, and that freeing does. */
static void slot_leave(struct pcp_zone *mine, u32 slot)
{
	if (mine->recent.map == mine->map[slot])
		mine->recent.pages = PCP_NO_PAGES;
	for (unsigned type = 0; type < MIGRATE_TYPES; type++)
		if (mine->word[type] >= mine->map[slot] && mine->word[type] < mine->map[slot + 1])
			mine->word[type] = &mine->none;
}

/* Add the bits of one word. */
static void slot_add(struct pcp_zone *mine, u32 slot, unsigned w, u64 bits)
{
	if (!mine->map[slot][w]) {
		mine->words[slot] |= (u8)(1u << w);
		slot_use(mine, slot);
	}
	mine->map[slot][w] |= bits;
}

void pcp_fold_hot(struct pcp_zone *mine)
{
	const struct page *hot = mine->recent.hot;
	pfn_t pfn;
	u32 slot;

	if (!hot)
		return;
	pfn = page_to_pfn(hot);
	slot = pcp_slot_of(mine, (u32)(pfn >> BLOCK_ORDER));
	ASSERT(slot < PCP_SLOTS, "frame %llx is held, but its block has no slot", pfn);
	slot_add(mine, slot, pfn % BLOCK_FRAMES / 64, pcp_run_mask(pfn, 0));
	atomic_store_relaxed(&mine->recent.hot, NULL);
	pcp_add_held(mine, 1);
}

/*
 * The slot's block was retyped. Frames freed from now on are of the new type, and so are those in
 * the slot.
 */
static void slot_retype(struct pcp_zone *mine, u32 slot, enum migratetype type)
{
	pcp_fold_hot(mine);
	slot_leave(mine, slot);
	pcp_slot_unuse(mine, slot);
	mine->type[slot] = (u8)type;
	if (mine->words[slot])
		slot_use(mine, slot);
}

/* An empty slot of the block's set, or PCP_SLOTS. */
static u32 empty_slot(struct pcp_zone *mine, u32 index)
{
	const u32 set = index % PCP_SETS * PCP_WAYS;

	for (u32 slot = set; slot < set + PCP_WAYS; slot++)
		if (pcp_slot_is_empty(mine, slot))
			return slot;
	return PCP_SLOTS;
}

u64 pcp_frames_of(const u64 map[PCP_WORDS])
{
	u64 frames = 0;

	for (unsigned w = 0; w < PCP_WORDS; w++)
		frames += (u64)__builtin_popcountll(map[w]);
	return frames;
}

/*
 * Evict a slot from the block's set, which is full, and from those of the next sets that are full
 * as well, in one turn at the zone's lock. Besides the first, slots go only up to an eighth of what
 * the CPU may hold, as in choose_victims(). Returns the first.
 */
static u32 make_room(struct zone *zone, struct pcp_zone *mine, u32 index)
{
	const u32 way = mine->hand++ % PCP_WAYS;
	u32 victims[PCP_EVICT];
	unsigned count = 0;
	s64 frames = 0;

	for (u32 i = 0; i < PCP_EVICT && (count == 0 || frames < mine->high / 8); i++) {
		if (empty_slot(mine, index + i) != PCP_SLOTS)
			continue;
		victims[count] = (index + i) % PCP_SETS * PCP_WAYS + way;
		frames += (s64)pcp_frames_of(mine->map[victims[count++]]);
	}
	pcp_evict(zone, mine, victims, count);
	return victims[0];
}

/* Claim a slot for a block that has none: an empty one of its set, or the next to be evicted. */
static u32 slot_claim(struct zone *zone, struct pcp_zone *mine, u32 index, enum migratetype type)
{
	u32 slot;

	pcp_fold_hot(mine); /* a slot whose block has a hot page is not empty */
	slot = empty_slot(mine, index);
	if (slot == PCP_SLOTS)
		slot = make_room(zone, mine, index);
	slot_leave(mine, slot);
	pcp_slot_unuse(mine, slot);
	mine->tag[slot] = mine->last_tag = index + 1;
	mine->last_slot = slot;
	mine->type[slot] = (u8)type;
	return slot;
}

/* ---- taking frames that are held ---- */

/* The lowest aligned run of 2^order frames in a word; 64 if there is none. */
static unsigned find_run(u64 bits, unsigned order)
{
	if (order > 0)
		bits &= bits >> 1 & 0x5555555555555555ULL;
	if (order > 1)
		bits &= bits >> 2 & 0x1111111111111111ULL;
	if (order > 2)
		bits &= bits >> 4 & 0x0101010101010101ULL;
	return bits ? (unsigned)__builtin_ctzll(bits) : 64;
}

/* Make the first word of the slot that has such a run the word of its type. */
static bool slot_offers(struct zone *zone, struct pcp_zone *mine, u32 slot, unsigned order)
{
	const unsigned type = mine->type[slot];

	if (pcp_slot_is_empty(mine, slot)) {
		pcp_slot_unuse(mine, slot);
		return false;
	}
	for (unsigned words = mine->words[slot]; words; words &= words - 1) {
		const unsigned w = (unsigned)__builtin_ctz(words);

		if (find_run(mine->map[slot][w], order) == 64)
			continue;
		mine->word[type] = &mine->map[slot][w];
		mine->word_page[type] = pfn_page(zone->mm, block_pfn(mine->tag[slot] - 1) + w * 64);
		return true;
	}
	return false;
}

/*
 * Point word[type] at a word that has such a run. The slot where pages were freed last comes first,
 * because they are the hottest.
 */
static bool find_word(struct zone *zone, struct pcp_zone *mine, unsigned order,
		      enum migratetype type)
{
	unsigned looked = 0;

	if (mine->last_tag && mine->type[mine->last_slot] == type &&
	    slot_offers(zone, mine, mine->last_slot, order))
		return true;
	for (unsigned i = 0; i < PCP_SLOTS / 64; i++) {
		for (u64 used = mine->used[type][i]; used; used &= used - 1) {
			if (slot_offers(zone, mine, i * 64 + (u32)__builtin_ctzll(used), order))
				return true;
			if (order > 0 && ++looked == SEARCH_SLOTS)
				return false;
		}
	}
	return false;
}

/* Take a run from the word at hand. */
static struct page *take_run(struct pcp_zone *mine, unsigned order, enum migratetype type)
{
	u64 *word = mine->word[type];
	const unsigned at = find_run(*word, order);

	if (at == 64)
		return NULL;
	*word &= ~pcp_run_mask(at, order);
	pcp_add_held(mine, -(s64)order_pages(order));
	return mine->word_page[type] + at;
}

/* ---- fetching from the zone ---- */

/*
 * Called before the first page is kept after a drain: see pcp.h. Drains begun so far have nothing
 * to find here.
 */
static __attribute__((noinline)) void begin_to_hold(const struct mm *mm, struct pcp *pcp)
{
	atomic_store_relaxed(&pcp->holding, 1);
	fence_full(); /* pairs with the increment of mm->drains */
	atomic_store_relaxed(&pcp->drained, atomic_load_acquire(&mm->drains));
}

s64 pcp_high(struct zone *zone, struct pcp_zone *mine)
{
	const s64 share = (s64)(zone->ram / PCP_SHARE / cpu_count);
	struct pcp *pcp = pcp_of_this_cpu(zone->mm);

	if (!pcp->holding)
		begin_to_hold(zone->mm, pcp);
	if (atomic_load_acquire(&zone->pcp_disabled))
		mine->high = 0;
	else if (mine->high == 0)
		mine->high = MAX(MIN(share, (s64)high_max), PCP_HIGH_MIN);
	return mine->high;
}

/* Keep frames that were just taken from the zone, given as bits of one block. */
static void keep_fetched(struct zone *zone, struct pcp_zone *mine, u32 index,
			 const u64 map[PCP_WORDS], enum migratetype type)
{
	const s64 frames = (s64)pcp_frames_of(map);
	u32 slot;

	if (frames == 0)
		return; /* another CPU took them while the lock was dropped */
	slot = pcp_find(mine, index);
	if (slot == PCP_SLOTS)
		slot = slot_claim(zone, mine, index, type);
	if (mine->type[slot] != type)
		slot_retype(mine, slot, type);
	for (unsigned w = 0; w < PCP_WORDS; w++)
		if (map[w])
			slot_add(mine, slot, w, map[w]);
	if (unlikely(zone->mm->pcp_types->by_page))
		pcp_note_fetched(zone, mine, index, map, type);
	pcp_add_held(mine, frames);
	atomic_store_relaxed(&mine->moved, mine->moved + frames);
	counter_add(&mine->refills, 1);
}

/* Take one run from the zone, as bits. */
static u32 fetch_run(struct zone *zone, unsigned order, enum migratetype type, u64 map[PCP_WORDS])
{
	struct page *page = buddy_take_pages(zone, order, type);
	const pfn_t pfn = page ? page_to_pfn(page) : 0;

	if (!page)
		return BLOCK_NONE;
	block_map_add(map, pfn % BLOCK_FRAMES, order);
	return (u32)(pfn >> BLOCK_ORDER);
}

void pcp_warm_block(const struct zone *zone, u32 index)
{
	const struct page *pages = block_page(zone->mm, index);

	for (unsigned i = 0; i < BLOCK_FRAMES; i++)
		page_prefetch(&pages[i]);
}

/*
 * Fetch one large run or, if the zone has only pieces, all pieces of some blocks. Returns true if
 * there is more at hand than before. A zone that is short gives no more than is asked for, because
 * its reserve would be given out with the rest. When the lists are disabled the run has the order
 * asked for and goes straight to the caller, in *direct.
 */
static bool fetch(struct zone *zone, struct pcp_zone *mine, unsigned order, enum migratetype type,
		  struct page **direct)
{
	const s64 high = pcp_high(zone, mine), most = MIN(high / 2, (s64)zone_spare(zone));
	u64 map[PCP_FETCH][PCP_WORDS] = {0};
	unsigned orders, want = order, count = 0;
	u32 blocks[PCP_FETCH];
	u64 taken = 0;

	while (want < PCP_REFILL_ORDER && (s64)order_pages(want + 1) <= most)
		want++;
	zone_lock(zone);
	orders = zone->page_orders[type] >> order;
	if (!high || !orders) {
		*direct = orders ? buddy_take_pages(zone, order, type) : NULL;
		zone_unlock(zone);
		return false;
	}
	if (!(zone->page_orders[type] >> want)) {
		want = order + 31 - (unsigned)__builtin_clz(orders);
		count = buddy_blocks_in_pieces(zone, want, type, (u64)MAX(most - mine->held, 0),
					       blocks, PCP_FETCH);
	}
	if (count > 0) {
		zone_unlock(zone);
		for (unsigned i = 0; i < count; i++)
			pcp_warm_block(zone, blocks[i]);
		zone_lock(zone);
	}
	for (unsigned i = 0; i < count; i++)
		taken += buddy_take_pieces(zone, blocks[i], type, map[i]);
	if (taken == 0) {
		want = zone->page_orders[type] >> want ? want : order;
		blocks[0] = fetch_run(zone, want, type, map[0]);
		count = blocks[0] != BLOCK_NONE;
	}
	zone_unlock(zone);
	for (unsigned i = 0; i < count; i++)
		keep_fetched(zone, mine, blocks[i], map[i], type);
	return count > 0;
}

struct page *pcp_alloc_held(struct zone *zone, struct pcp_zone *mine, unsigned order,
			    enum migratetype type)
{
	struct page *page = order == 0 ? pcp_take_hot(mine, type) : NULL;

	if (page)
		return page;
	pcp_fold_hot(mine); /* so that it completes a larger one */
	do
		page = take_run(mine, order, type);
	while (!page && find_word(zone, mine, order, type));
	return page;
}

struct page *pcp_alloc(struct zone *zone, unsigned order, enum migratetype type)
{
	struct pcp *pcp = pcp_enter(zone->mm);
	struct pcp_zone *mine = pcp->zone[zone->index];
	struct page *page, *direct = NULL;

	do {
		page = pcp_alloc_held(zone, mine, order, type);
	} while (!page && fetch(zone, mine, order, type, &direct));
	if (direct) {
		page = direct;
		pcp_add_in_use(zone, (s64)order_pages(order));
	}
	pcp_leave(zone->mm, pcp);
	return page;
}

unsigned pcp_alloc_word(struct zone *zone, enum migratetype type, unsigned max, struct page **first,
			u64 *bits)
{
	struct pcp_zone *mine = pcp_mine(zone);
	u64 *word = mine->word[type], left;
	unsigned count;

	if (!*word && !find_word(zone, mine, 0, type))
		return 0;
	word = mine->word[type];
	for (left = *word, count = 0; left && count < max; count++)
		left &= left - 1;
	*bits = *word ^ left;
	*word = left;
	*first = mine->word_page[type];
	pcp_add_held(mine, -(s64)count);
	return count;
}

/* ---- keeping frames that are freed ---- */

/*
 * Choose slots to evict in one turn at the zone's lock: at least one, and more of them up to an
 * eighth of what the CPU may hold. The slot that was just freed to goes only if all others are
 * empty. Returns how many.
 */
static unsigned choose_victims(struct pcp_zone *mine, u32 slot, u32 victims[PCP_EVICT])
{
	unsigned count = 0;
	s64 frames = 0;

	for (unsigned turn = 0; turn < PCP_SLOTS && count < PCP_EVICT; turn++) {
		const u32 victim = mine->hand++ % PCP_SLOTS;

		if (victim == slot || pcp_slot_is_empty(mine, victim))
			continue;
		if (count > 0 && frames >= mine->high / 8)
			break;
		victims[count++] = victim;
		frames += (s64)pcp_frames_of(mine->map[victim]);
	}
	if (count == 0)
		victims[count++] = slot;
	return count;
}

/* Evict slots until enough frames are gone. */
static __attribute__((noinline)) void held_too_much(struct zone *zone, struct pcp_zone *mine,
						    u32 slot)
{
	u32 victims[PCP_EVICT];

	while (mine->held >= mine->high)
		pcp_evict(zone, mine, victims, choose_victims(mine, slot, victims));
}

void pcp_free(struct zone *zone, struct pcp_zone *mine, const struct block *block, pfn_t pfn,
	      unsigned order)
{
	const u32 index = (u32)(pfn >> BLOCK_ORDER);
	const unsigned w = pfn % BLOCK_FRAMES / 64;
	const bool may_hold = likely(mine->high != 0) || pcp_high(zone, mine) != 0;
	const u8 type = block_look(block).type; /* after pcp_high(): see pcp.h */
	u32 slot;

	counter_add(&mine->lookups, 1);
	if (unlikely(type & BLOCK_ISOLATED) || unlikely(!may_hold)) {
		pcp_give_back(zone, pfn_page(zone->mm, pfn), order);
		return;
	}
	slot = pcp_find(mine, index);
	if (unlikely(slot == PCP_SLOTS))
		slot = slot_claim(zone, mine, index, type);
	if (unlikely(mine->type[slot] != type))
		slot_retype(mine, slot, type);
	if (mine->recent.hot)
		pcp_fold_hot(mine); /* the hottest page is given out first */
	slot_add(mine, slot, w, pcp_run_mask(pfn, order));
	pcp_freed_to(zone, mine, block, slot, w);
	if (unlikely(zone->mm->pcp_types->by_page))
		pcp_note_freed(zone, mine, pfn_page(zone->mm, pfn), order, type);
	pcp_add_held(mine, (s64)order_pages(order));
	if (unlikely(mine->held >= mine->high))
		held_too_much(zone, mine, slot);
}
