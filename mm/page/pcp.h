/*
 * Per-CPU lists: the frames that a CPU holds of a zone, so that most calls need no lock and no
 * cache line of another CPU.
 *
 *   slot   tag: block 4711   [64 bits][64 bits] ...   8 words: which of its 512 frames are held
 *   slot   tag: block 4712   [64 bits][64 bits] ...   32 sets of 4 slots, found by block number
 *     :
 *   word[type] -> the word the next page of this type comes from, lowest frame first
 *   recent     -> the block that a page was freed to last, and its hot page: one that is given out
 *                 before the word's, if there is one
 *
 * Orders 0..3 are all runs of bits in one word. Freeing sets the bits, so neighbours merge simply
 * by being neighbours; allocating clears them. The struct page of a free page is not touched in
 * between, because no list goes through it.
 *
 * A page that is freed to the same block as the one before becomes the hot page if there is none. A
 * CPU that allocates and frees in turn then works on one pointer. With the bits alone, the address
 * of each store would depend on the bits read before it, and the next load would have to wait for
 * that.
 *
 * A CPU that holds too much gives frames back a few blocks at a time, cut into the largest runs; a
 * drain gives back many blocks in one turn. A CPU that lacks frames fetches one large run or, from
 * memory that is in pieces, all the pieces of a few blocks. Two CPUs may hold pages of the same
 * block.
 *
 * Order 9 is a short list of HUGE blocks with formed heads and shared tails. An entry whose block
 * still owes a shootdown round (the tag in its record) is given out only when that round is done.
 *
 * No type is cached with a page. Freeing reads the block's type once, to choose where the next page
 * of that type comes from. Returning frames to the buddy reads it again under zone->lock, once per
 * block, so pages of a block that was retyped meanwhile get to the right list (Weiner, "mm:
 * page_alloc: remove pcppage migratetype caching", 2023-09). pcp.type_cache=on|first|each selects
 * the state before the per-CPU list series, its first patch, and all of it: pcp_types.c. Pages
 * of isolated blocks never enter a list.
 *
 * Nothing is locked and no interrupt is masked, for these reasons:
 *
 * 1. Only the owner CPU writes its lists, there is no preemption, and interrupt handlers neither
 *    allocate nor free.
 * 2. One handler does come here: the drain that another CPU requested. If it interrupted the
 *    allocator (`inside`), it only leaves a note, and the interrupted call drains as it leaves.
 * 3. If the zone's lock is not free, the handler leaves the note as well, and the CPU drains when
 *    it releases a zone's lock. The handler waits for the lock only when it is asked again and the
 *    interrupted code neither has a lock nor queues for one.
 * 4. `inside` and the note are written by plain stores, because only this CPU and its own
 *    interrupts look at them.
 *
 * Drains have generations (mm->drains), as shootdown rounds have, and CPUs share them. A CPU that
 * needs a drain waits for any drain begun after its request, whichever CPU began it. If several
 * CPUs wait meanwhile, one of them begins the next drain for all.
 *
 * Only CPUs that hold something are interrupted. A CPU that is left alone holds nothing that the
 * drain should have found, for this reason:
 *
 *   owner       holding = 1; full fence; read pcp_disabled and the block's type; keep the page
 *   requester   raise pcp_disabled, or isolate the block; raise mm->drains (a locked instruction);
 *               read `holding`
 *
 * One of the two sees the other (the store-buffering pattern, as for idle CPUs in
 * kernel/core/shootdown.c). Either the requester sees that the CPU holds something, and waits for
 * it, or the CPU sees what the requester has changed, and keeps none of it. `holding` is set where
 * `high` is computed (pcp_high()), and nothing is kept while `high` is 0. A drain clears both, so
 * fast paths, which work only where something may be held, pay nothing for this.
 *
 * Source of the idea: Wrenger et al., "LLFree: Scalable and Optionally-Persistent Page-Frame
 * Allocation", USENIX ATC 2023 (dense bitmaps, reserved trees); the per-CPU pagesets of Linux
 * mm/page_alloc.c for what they must guarantee.
 */
#pragma once

#include "kernel/core/shootdown.h"
#include "mm/memmap/enter.h"

enum {
	PCP_ORDERS = 4,
	PCP_SETS = 32,
	PCP_WAYS = 4,
	PCP_SLOTS = PCP_SETS * PCP_WAYS,
	PCP_WORDS = BLOCK_FRAMES / 64,
	PCP_HIGH_MIN = 32,  /* frames that a CPU may hold of any zone, however small */
	PCP_HUGE_MAX = 256, /* entries of order 9; one turn at the lock fills or empties the list */
	PCP_HUGE_AHEAD = 8, /* entries before its turn, the head of one is prefetched */
	/* most frames that it may hold, however large the zone */
	PCP_HIGH_MAX = PCP_HUGE_MAX * BLOCK_FRAMES,
	/*
	 * all CPUs together: an eighth of the zone (Linux: the least percpu_pagelist_high_fraction)
	 */
	PCP_SHARE = 8,
	PCP_REFILL_ORDER = 8, /* order of the run fetched at once, if `high` allows */
	PCP_EVICT = 4,        /* most slots that go back in one turn at the zone's lock */
	PCP_FETCH = 4,        /* most blocks in pieces that are fetched in one */
};

/* No struct page is aligned like this address, and no pointer can have a value near it. */
#define PCP_NO_PAGES ((virt_t)0x8000000000000001ULL)

/*
 * The block that a page was freed to last, as freeing the next page inline needs it. It is
 * forgotten when its slot gets another block or type.
 */
struct pcp_recent {
	virt_t pages;              /* its first struct page; PCP_NO_PAGES: no block */
	const struct block *block; /* its record */
	u64 *map;                  /* its words, in its slot */
	struct page *hot;          /* (oa) a page of it that is held beside its words, or NULL */
	u8 type;                   /* of its slot */
};

/*
 * One CPU's share of one zone. Lock keys of its fields:
 *
 *   (o)   written and read by its owner CPU only: inside the allocator (pcp_enter()), or in the
 *         drain handler if that did not interrupt the allocator
 *   (oa)  written by its owner CPU, read atomically by other CPUs without a lock to add it up
 *
 * Accounting (pcp_held()) reads the slots and the huge entries of all CPUs while they are parked.
 */
struct pcp_zone {
	u64 *word[MIGRATE_TYPES];              /* (o) a word of a slot, or `none` */
	struct page *word_page[MIGRATE_TYPES]; /* (o) page of bit 0 of that word */
	struct pcp_recent recent;              /* (o), but for `hot` */
	u32 last_tag, last_slot;               /* (o) of the slot found or claimed last */
	u64 in_use, on_list; /* (c) the state of a single page in use, and of one that is held */
	unsigned zone;       /* (c) index of the zone */
	s64 held;            /* (oa) frames in all slots */
	/*
	 * (o) most frames to hold in slots; beyond it frames go back. 0: not computed yet, or
	 * disabled
	 */
	s64 high;
	/* (oa) frames taken from the zone less frames given back; those not held are in use */
	s64 moved;
	/* (oa) pageblock types read on freeing: by pcp_free(), and by the inline fast paths */
	u64 lookups, lookups_fast;
	u64 fetch_lookups;      /* (oa) pageblock types read on fetching */
	u64 drain_lookups;      /* (oa) and on giving back to the buddy */
	u64 drained;            /* (oa) frames given back */
	u64 stale;              /* (oa) those given back under a type that is not their block's */
	u64 refills, evictions; /* (oa) fetches from the zone; slots given back to it */

	u32 tag[PCP_SLOTS]; /* (o) block number + 1; 0: none */
	/* (o) bit w: word w may have frames; a clear bit is certain */
	u8 words[PCP_SLOTS];
	u8 type[PCP_SLOTS];                      /* (o) block's type when frames last came in */
	u64 used[MIGRATE_TYPES][PCP_SLOTS / 64]; /* (o) slots of this type with any words */
	u32 hand;                                /* (o) next slot to evict, modulo the choice */
	u64 none;                                /* (o) a word without frames, always 0 */

	u32 huge_count;         /* (oa) entries of `huge` in use */
	u32 huge[PCP_HUGE_MAX]; /* (o) blocks of order 9, the hottest last */
	/* (o) bit set: this CPU holds the frame */
	__cacheline_aligned u64 map[PCP_SLOTS][PCP_WORDS];
};

/* A way to know the type of a page on a list: see pcp_types.c. */
struct pcp_types {
	const char *name;
	/*
	 * each page is given back by itself; otherwise a block's pages go back in the largest runs
	 */
	bool by_page;
	bool stored; /* the type is stored with the page, and believed */
	bool twice;  /* looked up as the page is fetched, and twice as it is freed in bulk */
};

enum { PCP_TYPES_ON, PCP_TYPES_FIRST, PCP_TYPES_EACH, PCP_TYPES_OFF };
extern const struct pcp_types pcp_types[]; /* in this order; ends with a NULL name */

/*
 * pcp_bytes(): size in bytes of one CPU's lists for so many zones and nodes. pcp_init() initialises
 * lists in that many zeroed bytes; the zones are known.
 */
u64 pcp_bytes(unsigned zones, node_t nodes);
void pcp_init(struct mm *mm, cpu_t cpu);

/*
 * Take 2^order frames (0..3) of `type` that this CPU holds or can fetch from the zone's small
 * lists. NULL if there are none. The struct page is as its last user left it, not prepared. Not
 * entered.
 */
struct page *pcp_alloc(struct zone *zone, unsigned order, enum migratetype type);

/* Take such frames of what this CPU holds. NULL if it holds none. Entered. */
struct page *pcp_alloc_held(struct zone *zone, struct pcp_zone *mine, unsigned order,
			    enum migratetype type);

/*
 * pcp_alloc() for many single pages at once, up to 64 from one word. Returns how many were taken, 0
 * if there are none; *first is the page of bit 0 of *bits. Entered.
 */
unsigned pcp_alloc_word(struct zone *zone, enum migratetype type, unsigned max, struct page **first,
			u64 *bits);

/* Keep 2^order frames (0..3), refcount 0 already. Entered. */
void pcp_free(struct zone *zone, struct pcp_zone *mine, const struct block *block, pfn_t pfn,
	      unsigned order);

/* The slow half of pcp_free_huge(): make room, or find that the block cannot be kept. */
bool pcp_free_huge_slowly(struct zone *zone, struct pcp_zone *mine, u32 index,
			  struct block_word word);

/* Sums over all CPUs. */
struct pcp_stats {
	u64 lookups, fetch_lookups, drain_lookups, drained, stale, refills, evictions;
};
struct pcp_stats pcp_stats(const struct mm *mm);

static inline struct pcp_zone *pcp_mine(const struct zone *zone)
{
	return pcp_of_this_cpu(zone->mm)->zone[zone->index];
}

static inline void pcp_add_held(struct pcp_zone *mine, s64 frames)
{
	atomic_store_relaxed(&mine->held, mine->held + frames);
}

/* Take the hot page, if it is of this type; else NULL. Entered. */
static inline struct page *pcp_take_hot(struct pcp_zone *mine, enum migratetype type)
{
	struct page *page = mine->recent.hot;

	if (!page || mine->recent.type != type)
		return NULL;
	atomic_store_relaxed(&mine->recent.hot, NULL);
	return page;
}

/*
 * The slot of a block, or PCP_SLOTS if it has none. At most one slot has the tag. They are compared
 * without a branch, because where pages are freed at random none could be predicted.
 */
static inline u32 pcp_slot_of(const struct pcp_zone *mine, u32 index)
{
	const u32 set = index % PCP_SETS * PCP_WAYS, sought = index + 1;
	const u32 *tag = &mine->tag[set];
	const u32 way = (tag[1] == sought) + 2 * (tag[2] == sought) + 3 * (tag[3] == sought);

	return likely(tag[way] == sought) ? set + way : PCP_SLOTS;
}

_Static_assert(PCP_WAYS == 4, "pcp_slot_of() compares four tags");

/* The slot of a block that is likely to be the one found or claimed last. */
static inline u32 pcp_find(struct pcp_zone *mine, u32 index)
{
	u32 slot;

	if (mine->last_tag == index + 1)
		return mine->last_slot;
	slot = pcp_slot_of(mine, index);
	if (slot != PCP_SLOTS) {
		mine->last_tag = index + 1;
		mine->last_slot = slot;
	}
	return slot;
}

/* May this CPU hold one frame more in slots? The hot page is held beside them. */
static inline bool pcp_has_room(const struct pcp_zone *mine)
{
	return mine->held + 1 < mine->high;
}

/* Does the block owe a round that is not done yet? */
static inline bool pcp_huge_is_due(const struct mm *mm, u32 index)
{
	return block_of_used(mm, block_pfn(index))->tag > shootdown_done();
}

/*
 * Take the last entry of order 9, if its round is done. BLOCK_NONE if there is none, or if
 * pcp_alloc_huge() would have to wait for the round. Entered.
 */
static inline u32 pcp_pop_huge(const struct mm *mm, struct pcp_zone *mine)
{
	const u32 count = mine->huge_count;
	u32 index;

	if (unlikely(count == 0))
		return BLOCK_NONE;
	index = mine->huge[count - 1];
	if (unlikely(pcp_huge_is_due(mm, index)))
		return BLOCK_NONE;
	page_prefetch(block_page(mm, mine->huge[(count - 1 - PCP_HUGE_AHEAD) % PCP_HUGE_MAX]));
	atomic_store_relaxed(&mine->huge_count, count - 1);
	return index;
}

/* Add an entry of order 9, if there is room. Entered. */
static inline bool pcp_push_huge(struct pcp_zone *mine, u32 index, struct block_word word)
{
	const u32 count = mine->huge_count;

	if (unlikely(count == PCP_HUGE_MAX || (s64)(count + 1) * BLOCK_FRAMES > mine->high ||
		     word.type >= MIGRATE_CMA))
		return false;
	counter_add(&mine->lookups_fast, 1);
	mine->huge[count] = index;
	atomic_store_relaxed(&mine->huge_count, count + 1);
	return true;
}

/*
 * Keep one block of order 9. False if the zone is too small for that, the lists are disabled, or
 * the block is isolated or CMA; the caller then frees it itself. Entered.
 */
static inline bool pcp_free_huge(struct zone *zone, struct pcp_zone *mine, u32 index,
				 struct block_word word)
{
	return likely(pcp_push_huge(mine, index, word)) ||
	       pcp_free_huge_slowly(zone, mine, index, word);
}

/* The bits of an aligned run of 2^order frames (0..3) in its word. */
static inline u64 pcp_run_mask(pfn_t pfn, unsigned order)
{
	return ((1ULL << (1u << order)) - 1) << (pfn % 64);
}

/*
 * Add the hot page to the slot of its block. Called before another block becomes the recent one,
 * and before a slot gets another block or type. Entered, or in the drain handler.
 */
void pcp_fold_hot(struct pcp_zone *mine);

/*
 * A page was freed to word `w` of this slot: the next page of its type is taken from there, and the
 * next one to be freed may go there inline. No page is hot.
 */
static inline void pcp_freed_to(struct zone *zone, struct pcp_zone *mine, const struct block *block,
				u32 slot, unsigned w)
{
	const u8 type = mine->type[slot];
	struct page *pages = pfn_page(zone->mm, block_pfn(mine->tag[slot] - 1));

	mine->word[type] = &mine->map[slot][w];
	mine->word_page[type] = pages + w * 64;
	mine->recent.pages = (virt_t)pages;
	mine->recent.block = block;
	mine->recent.map = mine->map[slot];
	mine->recent.type = type;
	atomic_store_relaxed(&mine->recent.hot, NULL); /* pcp_count() looks */
}

/* Number of frames of a block whose bits are set. */
u64 pcp_frames_of(const u64 map[PCP_WORDS]);

/*
 * Bring the struct pages of a block into the cache before the lock is taken to walk them; a walk of
 * cold ones takes microseconds.
 */
void pcp_warm_block(const struct zone *zone, u32 index);

/* Does the slot hold nothing? Clears the bits of words that have become empty. */
bool pcp_slot_is_empty(struct pcp_zone *mine, u32 slot);

/* The slot is empty: stop the search for pages from looking there. */
void pcp_slot_unuse(struct pcp_zone *mine, u32 slot);

/* How many frames this CPU may hold now; 0 while the lists are disabled. */
s64 pcp_high(struct zone *zone, struct pcp_zone *mine);
