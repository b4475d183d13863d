/*
 * The machine's memory as the allocator sees it: one struct mm, its nodes, their zones. Inside mm/ only; users see mm.h.
 *
 *   mm ── gib[]            block records, section states
 *    ├─── node 0 ── zone DMA32, zone NORMAL ── free lists, per-CPU lists
 *    │         └─── meta                      frames for struct pages and tables
 *    └─── node 1 ── ...
 *
 * Everything hangs from a struct mm, none of it is global: tests build private machines over borrowed blocks in
 * their own vmemmap window and run beside the real one.
 *
 * Lock order: zone -> META -> table (one per section group). No round, no waiting, no allocation with any of them held.
 *
 * Work on many blocks is done in turns at the lock of a zone or pool, LOCK_SLICE records in each, so that CPUs that wait have theirs
 * in between. After each turn all that the lock guards is true; what is not done yet is the caller's: in transit, or on a list of its own.
 */
#pragma once

#include "kernel/fail.h"
#include "kernel/lock.h"
#include "kernel/types.h"
#include "mm/block.h"
#include "mm/memblock.h"
#include "mm/mm.h"

/*
 * Free runs of blocks, orders 9..18, by what their struct pages are like. The order of the constants is the order in
 * which a pool takes them; small allocations prefer the full ones.
 */
enum free_class {
	FREE_HUGE,   /* heads of 2 MiB or 1 GiB pages, tails shared: never merge, they would not share the same tails */
	FREE_BARE,   /* no struct pages */
	FREE_FULL,   /* struct pages all there, in an on-demand section */
	FREE_MAPPED, /* the same, in a mapped section */
	FREE_CLASSES
};

enum zone_kind { ZONE_DMA32, ZONE_NORMAL, ZONE_KINDS };

struct page_list {
	struct page *head;
};

/*
 * An isolation and whose it is: that of the memory it lies in (isolate.h). All but the holder's
 * look at `count` is under zone->lock.
 */
struct isolation {
	struct isolation *next;
	u32 first, count; /* blocks; count 0: it stands for nothing */
	u64 generation;   /* number of the isolation in its zone: a token that was ended and begun again is another one */
};

struct zone {
	struct mm *mm;
	node_t node;
	u8 index; /* in mm->zone[] */
	enum zone_kind kind;
	pfn_t start_pfn, end_pfn; /* span; holes and other nodes' blocks may lie inside */
	/* Watermarks in frames (watermark.h); fixed after start-up. */
	u64 reserve; /* kept for requests that cannot wait */
	u64 ready;   /* so many of them with struct pages, if it can be done */
	u64 lowmem;  /* kept besides from requests that memory above 4 GiB could serve */
	u32 first_home; /* section_home(): block for the struct pages of the section at one end; the others' follow. Or BLOCK_NONE */
	bool homes_up;  /* that end is the lower one */

	__cacheline_aligned struct spinlock lock;
	u32 block_list[FREE_CLASSES][MIGRATE_LISTS][BLOCK_ORDERS]; /* list k: buddy_list_of() */
	u16 block_lists[FREE_CLASSES][MIGRATE_LISTS]; /* bit k: list k is not empty */
	struct page *page_list[MIGRATE_LISTS][PAGE_ORDERS];
	u16 page_orders[MIGRATE_LISTS];

	unsigned max_order; /* runs of blocks merge up to this */

	/* In 4 KiB frames, under the lock. */
	u64 free_class[FREE_CLASSES]; /* in whole blocks */
	u64 free_small;               /* in orders 0..8 */
	u64 free_type[MIGRATE_LISTS]; /* all of the above once more, by the type of their block */
	u64 transit;
	u64 bad;
	u64 unopened; /* that opening sections would bring */

	struct isolation *isolations; /* those that are going on, under the lock; no two overlap */
	u64 isolations_begun;         /* ever, under the lock */

	u64 open_cursor;   /* lowest section that may be unopened; a hint */
	u64 ram, reserved; /* frames; reserved is atomic: what gets no struct pages joins it */
	u64 boot;          /* frames given out by memblock and not freed since */
	u32 pcp_disabled;  /* how many want no CPU to hold frames of this zone (pcp_disable()); atomic */
};

/* META: see meta.h. */
enum meta_kind { META_LONG, META_TAILS, META_MEMMAP, META_KINDS };

struct meta_block;

/* Frames of a META block that wait for one generation: see meta_gate.h. */
enum { GATE_LOTS = 4 };

struct gate_lot {
	struct gate_lot *next, *prev; /* in the node's queue */
	struct meta_block *block;
	u64 tag; /* the generation; 0: the lot is unused */
	u64 map[BLOCK_FRAMES / 64];
};

struct meta_block {
	struct meta_block *next; /* same node and kind, lowest block first */
	struct node *node;       /* whose META counts it: not always the node the block lies on */
	u32 block;
	u16 kind;
	u16 used, gated; /* frames; used includes gated */
	u64 used_map[BLOCK_FRAMES / 64], gated_map[BLOCK_FRAMES / 64];
	u64 seen_map[BLOCK_FRAMES / 64]; /* of an audit: frames reached from their users (account_meta.c) */
	struct gate_lot lot[GATE_LOTS];
};

struct meta {
	struct spinlock lock;
	struct meta_block *list[META_KINDS];
	struct meta_block *hint[META_KINDS]; /* no block before it has a free frame; NULL: look from the start */
	struct meta_block *spare;            /* unused descriptors */
	u64 spare_frames;                    /* frames that hold descriptors, used and spare */
	u64 blocks, used, gated;             /* frames for the latter two */
	u64 free[META_KINDS], reserved[META_KINDS];
	u64 unused[META_KINDS]; /* blocks none of whose frames is used */
	struct gate_lot *gate_first, *gate_last; /* gated frames, in order of tag */
	u32 growing; /* number + 1 of the one CPU that turns a block into META; 0: none */
	struct node *met; /* that CPU's: a node whose META it needed meanwhile, and which another CPU was growing */
};

struct node {
	struct mm *mm;
	node_t id;
	u8 zone[ZONE_KINDS]; /* indices, ZONE_NONE if the node has no such memory */
	node_t meta_node;    /* whose META serves this node: itself, or the nearest with enough memory */
	node_t *fallback;    /* all nodes, nearest first */
	struct meta meta;
};

enum { ZONE_NONE = 0xff, ZONES_MAX = 255 };

enum { TAIL_ORDERS = 2 }; /* shared tail pages per zone: orders 9 and 18 */

/* Per CPU: lists (pcp.c) and counts that would bounce if they were shared (mm_count()). */
struct pcp;

/*
 * What all CPUs that share a job count. Each has its own, in lines that no other CPU writes; readers add them up.
 */
enum mm_count {
	COUNT_SECTIONS_OPENED,
	COUNT_SECTIONS_CLOSED,
	COUNT_PMD_SPLITS,
	COUNT_STRETCHES_HELPED, /* of batches that CPUs shared (hvo.c): done by others than who asked */
	COUNT_TABLES,           /* frames used as vmemmap page tables, less those given back; they are META or boot frames too */
	MM_COUNTS
};

/* What is done beside allocating and freeing, by one test of mm->watch on either path (page_check.h). */
enum mm_watch {
	WATCH_OWNERS = 1 << 0, /* page_owner=on */
	WATCH_POISON = 1 << 1, /* poison=on */
	WATCH_BAD = 1 << 2,    /* frames in use are to be kept out of use when they are freed */
	WATCH_REPORTED = 1 << 3, /* frames were reported as bad and nobody has seen to it */
};

/*
 * Frames that are bad and cannot be had yet (bad_frames.h), each with the isolation that it holds
 * or does not.
 */
enum { BAD_PENDING_MAX = 32 };

struct bad_frame {
	pfn_t pfn; /* atomic: looked at by those who free */
	struct isolation isolation;
};

struct bad_frames {
	u32 settling; /* 1: a CPU is at it, and the rest is its own; atomic */
	u32 count;
	u32 wait; /* frees until it is tried again; atomic */
	struct bad_frame frame[BAD_PENDING_MAX];
};

/* What pools, a room above, have to say about pages of theirs. */
struct page_pool_ops {
	/* The last reference to the head of a pool's page was dropped; it was in `state` before. No lock held. */
	void (*put_last)(struct mm *mm, struct page *page, u64 state);
};

struct mm {
	u32 watch;       /* enum mm_watch, atomic */
	pfn_t root;      /* page tables that hold the vmemmap window */
	virt_t vmemmap;  /* window base */
	u64 first_gib, gibs;
	struct gib *gib;
	struct memblock_list *memory, *reserved; /* frozen */
	node_t nodes;
	struct node *node;
	unsigned zones;
	struct zone *zone;
	pfn_t *shared_tail; /* [zone * TAIL_ORDERS + (order == 18)] */
	struct pcp **pcp;   /* [cpu] */
	u64 drains, drains_done, drain_messages; /* drains begun and complete, CPUs interrupted for them (pcp_drain.c) */
	u32 drain_claim; /* number + 1 of the one CPU that drains; 0: none */
	const struct pcp_types *pcp_types; /* how their pages' types are known (pcp_types.c); atomic */
	struct pool *pools; /* those over it */
	const struct page_pool_ops *pool_ops; /* theirs; NULL before there is one */
	struct spinlock *table_lock; /* vmemmap tables: [section % TABLE_LOCKS] */
	enum section_style style; /* of sections that the allocator opens */
	bool ready;
	u32 splits_unflushed; /* PMDs split whose round is not complete; nobody changes a PTE of their tables before */
	struct fail_plan fail; /* tests: what is to fail */
	struct bad_frames bad;
	u64 transit_kept; /* frames in transit that come back to nobody: of CPUs that have them and look for more; atomic */
};

enum { TABLE_LOCKS = 64 };

/* Records handled in one turn at a lock, at most. Only a 1 GiB page is joined, and cut, in one turn: GIB_BLOCKS records. */
enum { LOCK_SLICE = 256 };

extern struct mm mm_kernel;

static inline struct page *pfn_page(const struct mm *mm, pfn_t pfn)
{
	return (struct page *)(mm->vmemmap + (pfn << PAGE_STRUCT_SHIFT));
}

/* A counter written under a lock and looked at without it. */
static inline void counter_add(u64 *counter, u64 n)
{
	atomic_store_relaxed(counter, *counter + n);
}

static inline void counter_sub(u64 *counter, u64 n)
{
	atomic_store_relaxed(counter, *counter - n);
}

/* Frames in the zone's free lists. */
static inline u64 zone_free(const struct zone *zone)
{
	u64 frames = atomic_load_relaxed(&zone->free_small);

	for (unsigned class = 0; class < FREE_CLASSES; class++)
		frames += atomic_load_relaxed(&zone->free_class[class]);
	return frames;
}

static inline struct gib *gib_of(const struct mm *mm, u32 index)
{
	return &mm->gib[index / GIB_BLOCKS - mm->first_gib];
}

/* Frames of block `index` entered or left the buddy. Zone lock held. */
static inline void gib_count_free(const struct mm *mm, u32 index, s64 frames)
{
	struct gib *gib = gib_of(mm, index);

	if (gib->whole)
		atomic_store_relaxed(&gib->free, gib->free + (u32)frames);
}

/* Frames of block `index` became movable, or are no more. Any context. */
static inline void gib_count_movable(const struct mm *mm, u32 index, s64 frames)
{
	atomic_add_relaxed(&gib_of(mm, index)->movable, (u32)frames);
}

/*
 * A pool page lies free in its pool, or no more. Free 2 MiB ones count as movable: a pool takes another for it. 1 GiB ones make no
 * room for others of their size. Pool lock held.
 */
static inline void block_set_pool_free(const struct mm *mm, u32 index, bool is_free)
{
	struct block *block = block_at(mm, index);
	const struct block_word word = block_look(block);

	lock_work(1);
	if (!(word.flags & BLOCK_POOL_FREE) == !is_free)
		return;
	if (word.order == BLOCK_ORDER)
		gib_count_movable(mm, index, is_free ? BLOCK_FRAMES : -BLOCK_FRAMES);
	if (is_free) {
		block->zero = 0; /* nobody knows what the last user left */
		block_set_flags(block, BLOCK_POOL_FREE);
	} else {
		block_clear_flags(block, BLOCK_POOL_FREE);
	}
}

/* What is known of a free pool page is known as long as it lies there. Returns whether it was known to be zero. Pool lock held. */
static inline bool block_forget_zero(const struct mm *mm, u32 index)
{
	struct block *block = block_at(mm, index);
	const bool was = block->zero;

	block->zero = 0;
	return was;
}

/* Record of the block of a frame in use: it exists. */
static inline struct block *block_of_used(const struct mm *mm, pfn_t pfn)
{
	return &mm->gib[(pfn >> GIGA_ORDER) - mm->first_gib].blocks[pfn >> BLOCK_ORDER & (GIB_BLOCKS - 1)];
}

static inline struct zone *block_zone(struct mm *mm, u32 index)
{
	return &mm->zone[block_look_at(mm, index).zone];
}

static inline struct node *zone_node(struct zone *zone)
{
	return &zone->mm->node[zone->node];
}

/* Whose META pays for the zone's struct pages. */
static inline struct node *zone_meta_node(struct zone *zone)
{
	return &zone->mm->node[zone_node(zone)->meta_node];
}

/* The same for an opened block. */
static inline struct node *block_meta_node(struct mm *mm, u32 index)
{
	return zone_meta_node(block_zone(mm, index));
}
