/*
 * Block table: one small record per 2 MiB of physical address space, opened per GiB.
 *
 *   GiB 0            GiB 1            GiB 2 (hole)     GiB 3
 *   [512 records]    [512 records]    -                (opened on first use)
 *
 * Free memory of 2 MiB and more is described here and nowhere else, so merging, isolation, searches for contiguous
 * ranges, NMI handlers and statistics never touch a struct page that might not exist. States and every legal
 * change between them: block_state.c.
 *
 * Owners: a record on a zone list belongs to zone->lock; off it, to the CPU, pool or page that took
 * it off. Type and isolation bit are always written under zone->lock, whoever owns the record. The
 * free pages of a RESERVED block, which may lie in two zones, are counted under either zone's lock.
 *
 * Reading: all that can change is one word. Code that does not own a record loads the word once
 * (block_look()) and decides on that snapshot; a second load may tell of another state, order or
 * owner. The list links belong to whoever owns the record.
 *
 * Writing: block_put() stores the whole word. It is for a CPU that owns the record and holds
 * zone->lock, which excludes every other writer, and for records that nobody can find yet.
 * Everybody else changes some fields, all in one step, with block_change().
 */
#pragma once

#include "kernel/types.h"
#include "mm/page.h"

enum block_state {
	BLOCK_UNOPENED, /* its section was never opened */
	BLOCK_ABSENT,   /* no RAM */
	BLOCK_RESERVED, /* contains non-RAM, the image or firmware ranges, or straddles nodes or zones */
	BLOCK_BARE,     /* wholly free, no struct pages */
	BLOCK_HUGE,     /* head of a 2 MiB or 1 GiB page: in use, in a pool, or free */
	BLOCK_NOHEAD,   /* blocks 1..511 of a 1 GiB page */
	BLOCK_FULL,     /* has all its struct pages: split, or once split, or boot allocations, or a mapped section */
	BLOCK_META,     /* holds frames for tables and struct pages (mm/meta.h) */
	BLOCK_STATES
};

/*
 * Migratetypes, per block: what it is given out for. Isolation is a bit beside the type, which survives it; what is free in
 * an isolated block lies on lists of their own, from which nothing is given out (migratetype.h).
 */
enum migratetype {
	MIGRATE_UNMOVABLE,
	MIGRATE_MOVABLE,
	MIGRATE_RECLAIMABLE,
	MIGRATE_CMA, /* movable pages only, so that ranges can always be emptied; never claimed for another type */
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
	BLOCK_TRANSIT = 1 << 1, /* on no list, being changed; `target` says into what */
	BLOCK_POOL = 1 << 2,    /* a pool's, free in it or in use */
	BLOCK_POOL_FREE = 1 << 3,
	BLOCK_MAPPED = 1 << 4, /* in a mapped section: the vmemmap is, or was, one 2 MiB mapping */
	BLOCK_MEMMAP = 1 << 5, /* META: holds the struct pages of a mapped section */
	BLOCK_POISONED = 1 << 6, /* a huge page freed with poison=on: its contents are the poison (page_poison.h) */
};

struct meta_block;

/* What a record says, as one load finds it. */
struct block_word {
	u8 state, target;
	u8 order; /* of the run, page or transit this block heads; 0 if it heads none */
	u8 flags;
	u8 type;  /* migratetype and BLOCK_ISOLATED */
	u8 zone;  /* index in its mm */
	u16 free_pages; /* RESERVED, FULL: frames in the buddy below order 9 */
};

enum { BLOCK_FREE_PAGES_SHIFT = 48 }; /* its place in the word */

struct block {
	u64 word;       /* a struct block_word: block_look(), block_put(), block_change() */
	u32 next, prev; /* list links: block numbers */
	u64 tag;        /* not to be used before this generation is done */
	union {
		struct meta_block *meta; /* META: its maps */
		u64 zero;                /* free in a pool: 1 if all of the page is known to be zero (prezero.c) */
		u64 owner;               /* else a note of whose it is, for people */
	};
};

_Static_assert(sizeof(struct block) == 32, "a block record is half a cache line");
_Static_assert(sizeof(struct block_word) == sizeof(u64), "what changes in a record is one word");

#define BLOCK_NONE ((u32)-1)

/* Sections: 128 MiB of RAM, 2 MiB of struct pages, one vmemmap PMD entry. */
enum section_state { SECTION_ABSENT, SECTION_UNOPENED, SECTION_OPENING, SECTION_OPEN, SECTION_CLOSING };
enum section_style { SECTION_ON_DEMAND = 0, SECTION_MAPPED = 0x80 }; /* a bit beside the state */
enum { SECTION_STATE_MASK = 0x7f };

/* One GiB of address space: all that exists for memory that was never used. */
struct gib {
	struct block *blocks; /* GIB_BLOCKS records, or NULL; set once, with a release store */
	u8 section[GIB_SECTIONS];
	u32 memmap[GIB_SECTIONS]; /* mapped: block that holds the section's struct pages */
	u32 free;    /* frames in the buddy; kept if `whole`, under the zone's lock, read without it */
	u32 movable; /* frames in use that their holder can move, and free 2 MiB pages of pools; atomic */
	u16 meta;    /* blocks that are META; atomic */
	bool whole;  /* all of it is RAM of one node: it can be a 1 GiB page */
};

/* A private list of blocks, chained through their records; order and ownership are the holder's. */
struct block_list {
	u32 head, tail;
	u64 count;
};

#define BLOCK_LIST_INIT ((struct block_list){.head = BLOCK_NONE, .tail = BLOCK_NONE})

struct mm;

/* Fields of a word, by name; those that are not named are 0. */
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

/*
 * What the record says now. Code that sees a flag also sees what its writer wrote before it. Any
 * context, no lock.
 */
static inline struct block_word block_look(const struct block *block)
{
	return block_word_of(atomic_load_acquire(&block->word));
}

/*
 * All of the word in one store. The caller owns the record and holds zone->lock, or nobody can find
 * the record yet.
 */
static inline void block_put(struct block *block, struct block_word word)
{
	atomic_store_release(&block->word, block_word_bits(word));
}

/*
 * The bits of `clear` are cleared and those of `set` are set, in one step; all other bits keep what
 * others write meanwhile. The caller owns these fields: as the record's owner, as holder of
 * zone->lock (type), of the pool's lock (POOL_FREE) or of META's (MEMMAP).
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
 * `frames` more of the block's pages are in the buddy, or fewer. `word` is what the record said
 * under zone->lock, which excludes every other writer of a FULL block. Pages of a RESERVED block
 * lie in two zones, perhaps, and are counted under two locks.
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

static inline bool block_word_is_isolated(struct block_word word)
{
	return word.type & BLOCK_ISOLATED;
}

/* The same of a record of which nothing else is asked. */
static inline enum migratetype block_type(const struct block *block)
{
	return block_word_type(block_look(block));
}

static inline bool block_is_isolated(const struct block *block)
{
	return block_word_is_isolated(block_look(block));
}

/*
 * Record of block number `index` (pfn / 512), or NULL if its GiB holds no RAM or was never opened. Any context, no
 * lock. The answer stays valid: tables are opened, never closed.
 */
struct block *block_at(const struct mm *mm, u32 index);
struct block *block_of(const struct mm *mm, pfn_t pfn);

/* What the record of block `index` says. The record exists. */
struct block_word block_look_at(const struct mm *mm, u32 index);

/*
 * Head of what covers block `index`: a free run, a 1 GiB page, a run in transit; itself if it
 * stands alone. *word is what the head's record said when it was found. The answer is good for as
 * long as the caller keeps it from changing: under the zone lock for what is free. The record
 * exists.
 */
u32 block_run_head(const struct mm *mm, u32 index, struct block_word *word);

static inline pfn_t block_pfn(u32 index)
{
	return (pfn_t)index << BLOCK_ORDER;
}

void block_list_push(const struct mm *mm, struct block_list *list, u32 index);
void block_list_push_front(const struct mm *mm, struct block_list *list, u32 index);
u32 block_list_pop(const struct mm *mm, struct block_list *list); /* BLOCK_NONE when empty */
void block_list_remove(const struct mm *mm, struct block_list *list, u32 index);

/* Move all of `from` to the end of `list`. */
void block_list_splice(const struct mm *mm, struct block_list *list, struct block_list *from);

/* The first `count` of `list` (all, if there are fewer) become `first`, which is overwritten. Walks them. */
void block_list_cut(const struct mm *mm, struct block_list *list, u64 count, struct block_list *first);

/*
 * Change a record's state; whoever changes it may use the contents, so POISONED goes with it.
 * Asserts that the pair is in the table of block_state.c and counts it. The caller owns the record
 * (see the top of this file).
 */
void block_set_state(struct mm *mm, u32 index, enum block_state to);

/*
 * The same for all of the word at once, and for neighbours that are in one state, `count` > 0, each
 * `zone` from its own byte of `zones` on (NULL: word.zone). The caller may use block_put().
 */
void block_put_states(struct mm *mm, u32 first, u32 count, struct block_word word, const u8 *zones);

/* What a META block becomes when it is emptied: full in a mapped section, whose struct pages stand, else bare. */
enum block_state block_state_without_use(const struct mm *mm, u32 index);

bool block_change_legal(enum block_state from, enum block_state to);

/* How often each change happened, for reports; names for people. */
u64 block_changes(const struct mm *mm, enum block_state from, enum block_state to);
const char *block_state_name(enum block_state state);
