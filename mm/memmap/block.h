/*
 * Block table: one small record per 2 MiB of physical address space, opened per GiB.
 *
 *   GiB 0            GiB 1            GiB 2 (hole)     GiB 3
 *   [512 records]    [512 records]    -                (opened on first use)
 *
 * Free memory of 2 MiB and more is described here and nowhere else, so merging, isolation, searches
 * for contiguous ranges, NMI handlers and statistics never touch a struct page that might not
 * exist. block_state.c lists the states and every legal change between them.
 *
 * Owners: a record on a zone list belongs to zone->lock. A record off the lists belongs to the CPU,
 * pool or page that took it off. Type and isolation bit are always written under zone->lock,
 * whoever owns the record. The free pages of a RESERVED block, which may lie in two zones, are
 * counted under either zone's lock.
 *
 * Reading: everything in a record that other CPUs read without a lock is one word. Code that does
 * not own a record loads the word once (block_look()) and decides on that snapshot, because a
 * second load may show another state, order or owner. Only the owner of a record may read its list
 * links.
 *
 * Writing: block_put() stores the whole word. It is for a CPU that owns the record and holds
 * zone->lock, which excludes every other writer, and for records that nobody can find yet. All
 * other code changes single fields in one atomic step with block_change().
 */
#pragma once

#include "kernel/lib/types.h"
#include "mm/memmap/page.h"

enum block_state {
	BLOCK_UNOPENED, /* its section was never opened */
	BLOCK_ABSENT,   /* no RAM */
	/* contains non-RAM, the image or firmware ranges, or straddles nodes or zones */
	BLOCK_RESERVED,
	BLOCK_BARE,   /* no struct pages: wholly free, or a free page of a pool */
	BLOCK_HUGE,   /* head of a 2 MiB or 1 GiB page: in use, in a pool, or free */
	BLOCK_NOHEAD, /* blocks 1..511 of a 1 GiB page */
	/*
	 * has all its struct pages: is split, was once split, holds boot allocations, or lies in a
	 * mapped section
	 */
	BLOCK_FULL,
	BLOCK_META, /* holds frames for tables and struct pages (mm/memmap/meta.h) */
	BLOCK_STATES
};

/*
 * Migratetypes, one per block: the kind of use that the block is given out for. Isolation is a bit
 * beside the type and leaves the type as it is. Free memory of an isolated block lies on separate
 * lists, from which nothing is given out (migratetype.h).
 */
enum migratetype {
	MIGRATE_UNMOVABLE,
	MIGRATE_MOVABLE,
	MIGRATE_RECLAIMABLE,
	/*
	 * movable pages only, so that its ranges can always be emptied; never claimed for another
	 * type
	 */
	MIGRATE_CMA,
	MIGRATE_TYPES,
	MIGRATE_ISOLATE = MIGRATE_TYPES, /* a list, not a type */
	MIGRATE_LISTS
};

enum { BLOCK_TYPE_MASK = 0x0f, BLOCK_ISOLATED = 0x80 };

/* The free list that a type byte stands for. */
static inline enum migratetype type_list(u8 type)
{
	return type & BLOCK_ISOLATED ? MIGRATE_ISOLATE : (enum migratetype)(type & BLOCK_TYPE_MASK);
}

enum block_flags {
	BLOCK_FREE = 1 << 0,    /* head of a run on a zone list */
	BLOCK_TRANSIT = 1 << 1, /* on no list, being changed; `target` is the state it will get */
	BLOCK_POOL = 1 << 2,    /* belongs to a pool: free in it or in use */
	BLOCK_POOL_FREE = 1 << 3,
	/* in a mapped section: its vmemmap is, or once was, one 2 MiB mapping */
	BLOCK_MAPPED = 1 << 4,
	BLOCK_MEMMAP = 1 << 5, /* Metadata memory: holds the struct pages of a mapped section */
};

struct meta_block;

/* The contents of a record's word, as one load finds them. */
struct block_word {
	u8 state, target;
	u8 order; /* of the run, page or transit that this block heads; 0 if it heads none */
	u8 flags;
	u8 type;        /* migratetype and BLOCK_ISOLATED */
	u8 zone;        /* index of its zone in its mm */
	u16 free_pages; /* RESERVED, FULL: frames in the buddy below order 9 */
};

/*
 * Reported blocks: a note in `target`, which means something else only in transit. The host has
 * taken back the memory behind the block since anybody could last write to it (mm/zone/report.h).
 * The note of a huge page's head covers the page. Only free blocks, bare or huge, have one.
 * block_begin() and buddy_take_huge() drop it with the store that they make anyway,
 * block_set_state() drops it with the state, and mm_account() fails on a note anywhere else.
 */
enum { BLOCK_REPORTED = 0x80 };

enum { BLOCK_FREE_PAGES_SHIFT = 48 }; /* position of free_pages in the word */

/*
 * Keys of the fields:
 *   (z) zone->lock
 *   (m) lock of metadata memory
 *   (p) pool->lock
 *   (a) atomic, read by any CPU without a lock
 *   (o) the owner of the record, while it is on no list (see "Owners" above)
 */
struct block {
	u64 word; /* (zoa) a struct block_word: block_look(), block_put(), block_change() */
	/* (z) on a zone list, (p) on a pool's list, (o) elsewhere; block numbers */
	u32 next, prev;
	u64 tag; /* (o) the block must not be used before this generation is done */
	union {
		/*
		 * (m) metadata memory: its maps; constant while any of the block's frames is in use
		 */
		struct meta_block *meta;
		/*
		 * (z) on a list of free huge pages: block number + 1 of one that lies some entries
		 * further on, or of any other; 0: none. Only prefetched (buddy_huge.c)
		 */
		u64 ahead;
		/* (zo) otherwise: a note that the owner keeps during one change of state */
		u64 owner;
	};
};

_Static_assert(sizeof(struct block) == 32, "a block record is half a cache line");
_Static_assert(sizeof(struct block_word) == sizeof(u64), "what changes in a record is one word");

#define BLOCK_NONE ((u32)-1)

/* Frames, all contiguous, of the block records of a GiB. */
enum { GIB_RECORD_FRAMES = GIB_BLOCKS * sizeof(struct block) / PAGE_SIZE };

/* Sections: 128 MiB of RAM, 2 MiB of struct pages, one vmemmap PMD entry. */
enum section_state {
	SECTION_ABSENT,
	SECTION_UNOPENED,
	SECTION_OPENING,
	SECTION_OPEN,
	SECTION_CLOSING
};
enum section_style { SECTION_ON_DEMAND = 0, SECTION_MAPPED = 0x80 }; /* a bit beside the state */
enum { SECTION_STATE_MASK = 0x7f };

/* One GiB of address space. For memory that was never used, nothing but this exists. */
struct gib {
	/* GIB_BLOCKS records, or NULL; set once, with release, under mm->table_lock */
	struct block *blocks;
	u8 section[GIB_SECTIONS];
	/* mapped sections: the block that holds the section's struct pages */
	u32 memmap[GIB_SECTIONS];
	/*
	 * frames in the buddy; kept only if `whole`; written under the zone's lock, read without it
	 */
	u32 free;
	/* frames in use that their holder can move, plus free 2 MiB pages of pools; atomic */
	u32 movable;
	u16 meta; /* blocks that are metadata memory; atomic */
	/* hint: 1 + the block of the page that its holder refused to move last; 0: none; atomic */
	u16 refused;
	bool whole; /* all of it is RAM of one node, so it can become a 1 GiB page */
	/* it holds memory that cannot be moved; some was freed (zone/gigablock.h); atomic */
	bool tainted, emptied;
};

/*
 * A private list of blocks, chained through their records, which therefore exist. Its holder
 * decides the order and owns the blocks.
 */
struct block_list {
	u32 head, tail;
	u64 count;
};

#define BLOCK_LIST_INIT ((struct block_list){.head = BLOCK_NONE, .tail = BLOCK_NONE})

/* `index` is each block of the list in turn; the body leaves the list as it is. */
#define block_list_foreach(mm, index, list)                                                        \
	for (u32 index = (list)->head; index != BLOCK_NONE; index = block_existing(mm, index)->next)

/*
 * `index` is each block in turn, taken off the list; the list is empty afterwards. A body that
 * leaves the loop leaves the rest on the list.
 */
#define block_list_drain(mm, index, list)                                                          \
	for (u32 index = block_list_pop(mm, list); index != BLOCK_NONE;                            \
	     index = block_list_pop(mm, list))

struct mm;

/* A word from named fields; fields that are not named are 0. */
#define BLOCK_WORD(...) ((struct block_word){__VA_ARGS__})

static inline u64 block_word_bits(struct block_word word)
{
	u64 bits;

	__builtin_memcpy(&bits, &word, sizeof(bits));
	return bits;
}

static inline struct block_word block_word_of(u64 bits)
{
	struct block_word word;

	__builtin_memcpy(&word, &bits, sizeof(word));
	return word;
}

/* The word without the bits of `clear` and with those of `set`; the fields stay in one register. */
static inline struct block_word block_word_with(struct block_word word, struct block_word clear,
						struct block_word set)
{
	return block_word_of((block_word_bits(word) & ~block_word_bits(clear)) |
			     block_word_bits(set));
}

/*
 * The present contents of the record's word. The load has acquire semantics: code that sees a flag
 * also sees what its writer wrote before it. Any context, no lock.
 */
static inline struct block_word block_look(const struct block *block)
{
	return block_word_of(atomic_load_acquire(&block->word));
}

/*
 * Store the whole word at once. The caller owns the record and holds zone->lock, or nobody can find
 * the record yet.
 */
static inline void block_put(struct block *block, struct block_word word)
{
	atomic_store_release(&block->word, block_word_bits(word));
}

/*
 * Clear the bits of `clear` and set those of `set` in one atomic step; all other bits keep what
 * other CPUs write meanwhile. The caller must own the fields it changes: as the record's owner, or
 * as holder of zone->lock (type), of the pool's lock (POOL_FREE) or of metadata memory's lock
 * (MEMMAP).
 */
static inline void block_change(struct block *block, struct block_word clear, struct block_word set)
{
	const u64 mask = ~block_word_bits(clear), bits = block_word_bits(set);
	u64 was = atomic_load_relaxed(&block->word);

	while (!atomic_cas(&block->word, was, (was & mask) | bits))
		was = atomic_load_relaxed(&block->word);
}

static inline void block_set_flags(struct block *block, u8 flags)
{
	atomic_fetch_or(&block->word, block_word_bits(BLOCK_WORD(.flags = flags)));
}

static inline void block_clear_flags(struct block *block, u8 flags)
{
	atomic_fetch_and(&block->word, ~block_word_bits(BLOCK_WORD(.flags = flags)));
}

/*
 * Add `frames`, which may be negative, to the count of the block's pages in the buddy. `word` is
 * what the record said under zone->lock. That lock excludes every other writer of a FULL block. The
 * pages of a RESERVED block may lie in two zones and so be counted under two locks, so this case
 * adds atomically.
 */
static inline void block_count_free(struct block *block, struct block_word word, s64 frames)
{
	const u64 add = (u64)frames << BLOCK_FREE_PAGES_SHIFT;

	if (unlikely(word.state == BLOCK_RESERVED))
		atomic_fetch_add(&block->word, add);
	else
		atomic_store_relaxed(&block->word, block_word_bits(word) + add);
}

static inline enum migratetype block_word_type(struct block_word word)
{
	return word.type & BLOCK_TYPE_MASK;
}

static inline bool block_word_is_reported(struct block_word word)
{
	return !(word.flags & BLOCK_TRANSIT) && (word.target & BLOCK_REPORTED);
}

static inline bool block_word_is_isolated(struct block_word word)
{
	return word.type & BLOCK_ISOLATED;
}

/* The type of the block, for callers that need nothing else from the record. */
static inline enum migratetype block_type(const struct block *block)
{
	return block_word_type(block_look(block));
}

/*
 * Head of whatever covers block `index`: a free run, a 1 GiB page or a run in transit. A block that
 * stands alone is its own head. *word receives what the head's record said when it was found. The
 * answer stays good only while the caller prevents a change, for a free run by holding the zone
 * lock. The record of `index` must exist.
 */
u32 block_run_head(const struct mm *mm, u32 index, struct block_word *word);

static inline pfn_t block_pfn(u32 index)
{
	return (pfn_t)index << BLOCK_ORDER;
}

void block_list_push(const struct mm *mm, struct block_list *list, u32 index);
u32 block_list_pop(const struct mm *mm, struct block_list *list); /* BLOCK_NONE when empty */
void block_list_remove(const struct mm *mm, struct block_list *list, u32 index);

/* Move all of `from` to the end of `list`. */
void block_list_splice(const struct mm *mm, struct block_list *list, struct block_list *from);

/*
 * Move the first `count` blocks of `list`, or all if there are fewer, to `first`, which is
 * overwritten. The cost is one step per block moved.
 */
void block_list_cut(const struct mm *mm, struct block_list *list, u64 count,
		    struct block_list *first);

/* block_list_cut() for a caller that has walked: `last` is the last of the `count` blocks. */
void block_list_cut_after(const struct mm *mm, struct block_list *list, u64 count, u32 last,
			  struct block_list *first);
