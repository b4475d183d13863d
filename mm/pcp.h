/*
 * Per-CPU lists: what a CPU holds of a zone, so that most calls need no lock and no other CPU's cache lines.
 *
 *   slot   tag: block 4711   [64 bits][64 bits] ... 8 words: which of its 512 frames this CPU holds
 *   slot   tag: block 4712   [64 bits][64 bits] ...            32 sets of 4 slots, found by the block's number
 *     :
 *   word[type] -> the word the next page of this type comes from, lowest frame first
 *
 * Orders 0..3 alike are runs of bits in one word: freeing sets them, so neighbours merge by being neighbours, and
 * allocating clears them. A free page's struct page is not touched between: no list goes through it. What a CPU holds too
 * much goes back a block at a time, cut into the largest runs before the lock is taken (a drain: many blocks a turn); what it
 * lacks is fetched as one large run, or, from memory that is in pieces, as all the pieces of one block. Two CPUs may hold pages of
 * the same block.
 *
 * Order 9 is a short list of HUGE blocks, heads formed, tails shared; an entry whose block still owes a shootdown round (its
 * record's tag) is given out only when that round is done.
 *
 * No type is cached with a page. Freeing reads the block's type once, to choose where the next page of that type comes
 * from; going back to the buddy reads it again under zone->lock, once per block, so pages of a block that was retyped
 * meanwhile get to the right list (Weiner, "mm: page_alloc: remove pcppage migratetype caching", 2023-09).
 * pcp_type_cache=on|first|each is what was before that series, its first patch, and all of it: pcp_types.c.
 * Pages of isolated blocks never enter.
 *
 * Why nothing is locked and no interrupt is masked: all of this is written by its own CPU only, there is no preemption,
 * and interrupt handlers neither allocate nor free. The one handler that comes here is the drain that another CPU asked for: it does
 * nothing if it interrupted the allocator (`inside`) but leave a note, and the interrupted call drains as it leaves. If the zone's
 * lock is not free it leaves the note, too, and the CPU drains when it gives a zone's lock back; only when asked again, and only if
 * the interrupted code neither has a lock nor queues for one, does the handler wait for it. `inside` and the note are written by plain
 * stores: only this CPU and its own interrupts look at them.
 *
 * Drains have generations (mm->drains), as shootdown rounds have. Drains are joined: a CPU that needs one waits for any that was begun
 * after it came, whichever CPU began it, and of those that come meanwhile one begins the next for all.
 *
 * Only CPUs that hold something are interrupted. Why a CPU that is left alone holds nothing the drain should have found:
 *
 *   owner       holding = 1; full fence; read pcp_disabled and the block's type; keep the page
 *   requester   raise pcp_disabled, or isolate the block; raise mm->drains (a locked instruction); read `holding`
 *
 * One of the two sees the other (the store-buffering pattern, as for idle CPUs in kernel/shootdown.c): the requester sees that the
 * CPU holds, and waits for it; or the CPU sees what the requester has changed, and keeps nothing of it. `holding` is set where `high` is
 * computed (pcp_high()), and nothing is kept while `high` is 0. A drain clears both, so fast paths, which work only where something
 * may be held, pay nothing for this.
 *
 * Source of the idea: Wrenger et al., "LLFree: Scalable and Optionally-Persistent Page-Frame Allocation", USENIX ATC 2023
 * (dense bitmaps, reserved trees); Linux mm/page_alloc.c per-CPU pagesets for what they must guarantee.
 */
#pragma once

#include <arch/barrier.h>

#include "kernel/panic.h"
#include "kernel/percpu.h"
#include "kernel/shootdown.h"
#include "mm/zone.h"

enum {
	PCP_ORDERS = 4,
	PCP_SETS = 32,
	PCP_WAYS = 4,
	PCP_SLOTS = PCP_SETS * PCP_WAYS,
	PCP_WORDS = BLOCK_FRAMES / 64,
	PCP_HIGH_MIN = 32,     /* frames a CPU may hold of a zone, however small */
	PCP_HIGH_MAX = 65536,  /* and however large */
	PCP_SHARE = 8,         /* all CPUs together: an eighth of the zone (Linux: percpu_pagelist_high_fraction's least) */
	PCP_REFILL_ORDER = 8,  /* run fetched at once, if `high` allows */
	PCP_HUGE_MAX = 128,    /* entries of order 9 */
	PCP_HUGE_BATCH = 64,
};

/* One CPU's share of one zone. Written by its owner; counts are atomic for those who add them up. */
struct pcp_zone {
	u64 *word[MIGRATE_TYPES];              /* of a slot, or `none` */
	struct page *word_page[MIGRATE_TYPES]; /* page of its bit 0 */
	u32 last_tag, last_slot;               /* of the last page freed */
	u32 fast_tag;                          /* last_tag, or 0: that page went the slow way, and the next has to */
	s64 held;                              /* frames in all slots */
	s64 high;                              /* more than this go back; 0: not computed yet, or disabled */
	s64 moved; /* frames taken from the zone less frames given back: what is not held of them is in use */
	u64 lookups, lookups_fast; /* pageblock types read on freeing: by pcp_free(), by page_fast.h */
	u64 fetch_lookups;         /* on fetching */
	u64 drain_lookups;         /* and on giving back to the buddy */
	u64 drained;               /* frames given back */
	u64 stale;                 /* frames given back under a type that is not their block's */
	u64 refills, evictions;

	u32 tag[PCP_SLOTS];                     /* block number + 1; 0: none */
	u8 words[PCP_SLOTS];                    /* bit w: word w may have frames; a clear bit is certain */
	u8 type[PCP_SLOTS];                     /* when last freed to */
	u64 used[MIGRATE_TYPES][PCP_SLOTS / 64]; /* slots of this type with any words */
	u32 hand;                               /* next to be evicted */
	u64 none;                               /* a word without frames */

	u32 huge_count;
	u32 huge[PCP_HUGE_MAX]; /* blocks, the hottest last */
	__cacheline_aligned u64 map[PCP_SLOTS][PCP_WORDS];
};

/* What a CPU has counted. Written by its owner, in lines of their own; atomic for those who add them up. */
struct pcp_counts {
	__cacheline_aligned u64 change[BLOCK_STATES][BLOCK_STATES]; /* of blocks, from one state to another (block_state.c) */
	u64 count[MM_COUNTS]; /* enum mm_count; one that falls may be below 0 on a CPU */
};

struct pcp {
	u8 inside;       /* between pcp_enter() and pcp_leave() */
	u8 drain_wanted; /* by another CPU: drain on leaving the allocator */
	u8 holding;      /* the lists may hold something, and `high` of a zone may be above 0 */
	u64 drained;     /* of the drains of mm->drains, the last that this CPU has done */
	struct pcp_counts *counts;
	struct pcp_zone *zone[];
};

/* What stands for a page's type on a list: see pcp_types.c. */
struct pcp_types {
	const char *name;
	bool by_page; /* each page is given back by itself; else a block's pages in the largest runs */
	bool stored;  /* its type with it, and believed */
	bool twice;   /* looked up as it is fetched, and twice as it is freed in bulk */
};

extern const struct pcp_types pcp_types[]; /* on, first, each, off; ends with a NULL name */

/* The one chosen with pcp_type_cache=, off by default; by name, NULL if there is none. */
const struct pcp_types *pcp_types_selected(void);
const struct pcp_types *pcp_types_find(const char *name);

/* Change it: all lists are emptied first. Returns what it was. No lock held, not entered; one caller at a time. */
const struct pcp_types *pcp_set_types(struct mm *mm, const struct pcp_types *types);

/* Bytes of one CPU's lists for so many zones; and making them out of so many zeroes. */
u64 pcp_bytes(unsigned zones);
void pcp_init(struct pcp *pcp, unsigned zones);


/*
 * 2^order frames (0..3) of `type` that this CPU holds, or that it can fetch from the zone's small lists. NULL if there are none. The
 * struct page is as it was left: not prepared. Entered.
 */
struct page *pcp_alloc(struct zone *zone, unsigned order, enum migratetype type);

/*
 * The same for single pages, many at once: up to 64 from one word. Returns how many, 0 if there are none; *first is the page
 * of bit 0 of *bits. Entered.
 */
unsigned pcp_alloc_word(struct zone *zone, enum migratetype type, unsigned max, struct page **first, u64 *bits);

/* Keep 2^order frames (0..3); refcount 0 already. Entered. */
void pcp_free(struct zone *zone, struct pcp_zone *mine, const struct block *block, pfn_t pfn, unsigned order);

/* The same for orders 0..8, straight to the zone. Entered. */
void pcp_give_back(struct zone *zone, struct page *page, unsigned order);

/*
 * A HUGE block of order 9 from this CPU's list or the zone's; its head is as free lists have it. BLOCK_NONE if there is none, or
 * none whose round is done and the caller may not wait. Entered.
 */
u32 pcp_alloc_huge(struct zone *zone, bool may_wait);

/* What pcp_free_huge() leaves over: room has to be made, or there is none to be had. */
bool pcp_free_huge_slowly(struct zone *zone, struct pcp_zone *mine, u32 index, struct block_word word);

/*
 * Everything that any CPU held when this was called goes back to the buddy. Many callers at once share a drain. No lock held, not
 * entered; waits for those that hold something.
 */
void pcp_drain_all(struct mm *mm);

/* The same in two steps: the drain that serves what the caller has changed so far; and waiting until it is done. */
u64 pcp_drain_tag(const struct mm *mm);
void pcp_drain_wait(struct mm *mm, u64 tag);

/*
 * From the return of pcp_disable() to pcp_enable() no CPU holds frames of the zone: frees go straight to the buddy. Nests.
 * No lock held.
 */
void pcp_disable(struct zone *zone);
void pcp_enable(struct zone *zone);

/* Frames that CPUs hold of a zone, and that are in use; exact when all CPUs are parked. */
u64 pcp_count(const struct mm *mm, const struct zone *zone);
s64 pcp_in_use(const struct mm *mm, const struct zone *zone);

/* Frames that go to users or come back without being held between: not entered, and entered. */
void pcp_count_in_use(struct zone *zone, s64 frames);
void pcp_add_in_use(struct zone *zone, s64 frames);

/*
 * Which frames of a block all CPUs hold: bits added to `map`; how many frames, huge entries as 512 (without bits). A frame
 * held twice is counted twice. For accounting, all CPUs parked.
 */
u64 pcp_held(const struct mm *mm, u32 index, u64 map[PCP_WORDS]);

/* Sums over all CPUs. */
struct pcp_stats {
	u64 lookups, fetch_lookups, drain_lookups, drained, stale, refills, evictions;
};
struct pcp_stats pcp_stats(const struct mm *mm);

/* Sums over all CPUs of what mm_count() and changes of state have counted. */
u64 mm_counted(const struct mm *mm, enum mm_count which);

/* pcp_high=: returns what it was. For the benchmark; nothing may be held when it changes. */
u64 pcp_set_high(u64 frames);

static inline struct pcp *pcp_of_this_cpu(const struct mm *mm)
{
	return mm->pcp[cpu_id()];
}

static inline struct pcp_zone *pcp_mine(const struct zone *zone)
{
	return pcp_of_this_cpu(zone->mm)->zone[zone->index];
}

/* `n` more, or fewer: it wraps. Not in an interrupt handler. */
static inline void mm_count(struct mm *mm, enum mm_count which, u64 n)
{
	counter_add(&pcp_of_this_cpu(mm)->counts->count[which], n);
}

void pcp_leave_slow(struct mm *mm);

/*
 * Enter and leave the allocator on this CPU: drains asked for meanwhile are done on leaving. They do not nest, and who is inside
 * waits for no other CPU's lists: two that did would wait for each other.
 */
static inline struct pcp *pcp_enter(struct mm *mm) __acquires(pcp)
{
	struct pcp *pcp = pcp_of_this_cpu(mm);

	DEBUG_ASSERT(!pcp->inside, "the allocator was entered twice");
	pcp->inside = 1;
	__counts_as(pcp, 1);
	fence_compiler(); /* only this CPU's own interrupt looks */
	return pcp;
}

static inline void pcp_left(struct pcp *pcp) __releases(pcp)
{
	pcp->inside = 0;
	__counts_as(pcp, -1);
}

static inline void pcp_leave(struct mm *mm, struct pcp *pcp) __releases(pcp)
{
	fence_compiler();
	if (unlikely(atomic_load_relaxed(&pcp->drain_wanted)))
		pcp_leave_slow(mm);
	pcp_left(pcp);
}

/*
 * A zone's lock. Who gives it back does what a drain asked for meanwhile: a CPU that goes from one turn at the lock to the next, isolating
 * ranges or growing a pool, does not enter the lists for minutes, and the interrupt that asks always finds it in the queue.
 */
static inline void zone_lock(struct zone *zone) __acquires(zone)
{
	spin_lock(&zone->lock);
}

static inline void zone_unlock(struct zone *zone) __releases(zone)
{
	const struct pcp *pcp = pcp_of_this_cpu(zone->mm);

	spin_unlock(&zone->lock);
	if (unlikely(atomic_load_relaxed(&pcp->drain_wanted)) && !pcp->inside)
		pcp_leave(zone->mm, pcp_enter(zone->mm));
}

static inline void pcp_add_held(struct pcp_zone *mine, s64 frames)
{
	atomic_store_relaxed(&mine->held, mine->held + frames);
}

/* Slot of a block, or PCP_SLOTS. */
static inline u32 pcp_find(struct pcp_zone *mine, u32 index)
{
	const u32 set = index % PCP_SETS * PCP_WAYS;

	if (likely(mine->last_tag == index + 1))
		return mine->last_slot;
	for (u32 slot = set; slot < set + PCP_WAYS; slot++) {
		if (mine->tag[slot] == index + 1) {
			mine->last_tag = index + 1;
			mine->last_slot = slot;
			mine->fast_tag = 0;
			return slot;
		}
	}
	return PCP_SLOTS;
}

/* Does the block owe a round that is not done? */
static inline bool pcp_huge_is_due(const struct mm *mm, u32 index)
{
	return block_of_used(mm, block_pfn(index))->tag > shootdown_done();
}

/* The last entry of order 9, if its round is done. BLOCK_NONE: none, or pcp_alloc_huge() has to wait for it. Entered. */
static inline u32 pcp_pop_huge(const struct mm *mm, struct pcp_zone *mine)
{
	const u32 count = mine->huge_count;
	u32 index;

	if (unlikely(count == 0))
		return BLOCK_NONE;
	index = mine->huge[count - 1];
	if (unlikely(pcp_huge_is_due(mm, index)))
		return BLOCK_NONE;
	atomic_store_relaxed(&mine->huge_count, count - 1);
	return index;
}

/* One more, if there is room. Entered. */
static inline bool pcp_push_huge(struct pcp_zone *mine, u32 index, struct block_word word)
{
	const u32 count = mine->huge_count;

	if (unlikely(count == PCP_HUGE_MAX || (s64)(count + 1) * BLOCK_FRAMES > mine->high ||
		     word.type >= MIGRATE_CMA))
		return false;
	mine->lookups_fast++;
	mine->huge[count] = index;
	atomic_store_relaxed(&mine->huge_count, count + 1);
	return true;
}

/* Keep one. False: the zone is too small for that, or lists are disabled, or the block isolated: free it yourself. Entered. */
static inline bool pcp_free_huge(struct zone *zone, struct pcp_zone *mine, u32 index, struct block_word word)
{
	return likely(pcp_push_huge(mine, index, word)) || pcp_free_huge_slowly(zone, mine, index, word);
}

/* Bits of an aligned run of 2^order frames (0..3) in its word. */
static inline u64 pcp_run_mask(pfn_t pfn, unsigned order)
{
	return ((1ULL << (1u << order)) - 1) << (pfn % 64);
}
