/*
 * The machine's memory as the allocator sees it: one struct mm, its nodes and their zones. For
 * code inside mm/ and its tests; users see mm.h.
 *
 *   mm ── gib[]            block records, section states
 *    ├─── node 0 ── zone DMA32, zone NORMAL ── free lists, per-CPU lists
 *    │         └─── meta                      frames for struct pages and tables
 *    └─── node 1 ── ...
 *
 * All memory that is described hangs from a struct mm. Tests build private machines over borrowed
 * blocks, each in a vmemmap window of its own, and run them beside the real one. Global are only
 * the machine's own (mm_kernel, its pools, its huge mappings and mapped pages, the owners table of
 * debug.page_owner=on), the choices of options, and counters for reports.
 *
 * Lock order: zone -> metadata memory -> table (one per section group). No round, no waiting and no
 * allocation while any of them is held.
 *
 * Work on many blocks is done in turns at the lock of a zone or pool. A turn handles at most
 * LOCK_SLICE records, so that waiting CPUs get the lock in between. After each turn everything that
 * the lock guards is consistent. Blocks that are not done yet belong to the caller: in transit, or
 * on a private list.
 */
#pragma once

#include "kernel/core/fail.h"
#include "kernel/core/lock.h"
#include "kernel/lib/types.h"
#include "mm/map/memblock.h"
#include "mm/memmap/block.h"
#include "mm/mm.h"

/*
 * Classes of free runs of blocks, orders 9..18, by the state of their struct pages. A pool takes
 * the classes in the order of these constants; small allocations prefer the full ones.
 */
enum free_class {
	/*
	 * heads of 2 MiB or 1 GiB pages, tails shared; they never merge, because pages of different
	 * orders do not share the same tails
	 */
	FREE_HUGE,
	FREE_BARE,   /* no struct pages */
	FREE_FULL,   /* all struct pages exist, in an on-demand section */
	FREE_MAPPED, /* all struct pages exist, in a mapped section */
	FREE_CLASSES
};

enum zone_kind { ZONE_DMA32, ZONE_NORMAL, ZONE_KINDS };

/*
 * One isolation. It belongs to the code whose memory holds this token (isolate.h). All access is
 * under zone->lock, except that the holder may look at its own `count` without it.
 */
struct isolation {
	struct isolation *next;
	u32 first, count; /* blocks; count 0: the token holds no isolation */
};

/* Bounds of zone->split_batch. */
enum { SPLIT_BATCH_MIN = 4, SPLIT_BATCH_MAX = 128 };
enum { HUGE_AHEAD = 16 }; /* how far ahead a walk of free huge pages prefetches */

/*
 * A zone: the memory of one kind on one node.
 *
 * Keys of the fields, here and in the structs below. A field may have more than one:
 *   (c) constant after start-up
 *   (z) zone->lock: zone_lock()
 *   (m) lock of metadata memory: node->meta.lock
 *   (a) atomic, written and read by any CPU; with another key: written as that key says, read
 *       without it
 *   (o) written by its owner CPU only; the comment names the owner
 *   (h) hint, may be stale
 */
struct zone {
	struct mm *mm;            /* (c) */
	node_t node;              /* (c) */
	u8 index;                 /* (c) in mm->zone[] */
	enum zone_kind kind;      /* (c) */
	pfn_t start_pfn, end_pfn; /* (c) span; holes and other nodes' blocks may lie inside */
	/* Watermarks in frames (watermark.h). */
	u64 reserve; /* (c) kept for requests that cannot wait */
	u64 ready;   /* (c) the part of it that should have struct pages already, if possible */
	u64 lowmem;  /* (c) kept as well, from requests that memory above 4 GiB could serve */
	/*
	 * (c) section_home(): the block for the struct pages of the section at one end; those of
	 * the other sections follow. Or BLOCK_NONE. A benchmark may move the homes while no section
	 * of the zone is open mapped (section_place_memmaps()).
	 */
	u32 first_home;
	bool homes_from_below; /* (c) that end is the lower one */

	__cacheline_aligned struct spinlock lock; /* rank: LOCK_ZONE */
	/* (z) list k: buddy_list_of() */
	u32 block_list[FREE_CLASSES][MIGRATE_LISTS][BLOCK_ORDERS];
	u16 block_lists[FREE_CLASSES][MIGRATE_LISTS];       /* (z) bit k: list k is not empty */
	struct page *page_list[MIGRATE_LISTS][PAGE_ORDERS]; /* (z) */
	u16 page_orders[MIGRATE_LISTS];                     /* (z) bit k: list k is not empty */

	unsigned max_order; /* (zh) runs of blocks merge up to this; hvo_take.c reads it unlocked */

	/* (z) the last huge pages that came back, block number + 1 (buddy_huge.c), and how many */
	u32 huge_given[HUGE_AHEAD], huge_gave;

	/* In 4 KiB frames. */
	u64 free_class[FREE_CLASSES]; /* (za) in whole blocks */
	u64 free_small;               /* (za) in orders 0..8 */
	u64 free_type[MIGRATE_LISTS]; /* (za) the same frames again, by the type of their list */
	u64 transit;                  /* (za) in transit (transit.h) */
	u64 bad;                      /* (za) withheld as bad (bad_frames.h) */
	u64 unopened;                 /* (za) that opening sections would bring */

	struct isolation *isolations; /* (z) those under way; no two overlap */

	u64 open_cursor; /* (ah) lowest section that may be unopened */
	/* (c) all RAM, (a) reserved frames, which RAM without struct pages joins; in frames */
	u64 ram, reserved;
	u64 boot;        /* (a) frames given out by memblock and not freed since */
	u32 split_batch; /* (a) huge pages that become small together next (page_split.c) */
	u32 evacuated;   /* (ah) the block that was looked at last in a tainted GiB (evacuate.c) */
	u8 evacuate_rest[BLOCK_ORDER]; /* (ah) searches of that order to leave out (evacuate.c) */
	/* (a) number of callers that want no CPU to hold frames of this zone (pcp_disable()) */
	u32 pcp_disabled;
};

/* Metadata memory: see meta.h. */
enum meta_kind { META_LASTING, META_HEADS, META_TAILS, META_MEMMAP, META_KINDS };

struct meta_block;

/*
 * Frames of one metadata block that wait for the same generation: see meta_gate.h. All fields: (m).
 */
enum { GATE_LOTS = 4 };

struct gate_lot {
	struct gate_lot *next, *prev; /* in the node's queue */
	struct meta_block *block;
	u64 tag; /* the generation; 0: the lot is unused */
	u64 map[BLOCK_FRAMES / 64];
};

/* Descriptor of a metadata block. All fields: (m). */
struct meta_block {
	struct meta_block *next; /* same node and kind, lowest block first */
	/* the node whose metadata memory counts it, not always the node that the block lies on */
	struct node *node;
	u32 block;
	u16 kind;
	u16 used, gated; /* frames; used includes gated */
	u64 used_map[BLOCK_FRAMES / 64], gated_map[BLOCK_FRAMES / 64];
	/* audits only: frames that were reached from their users (account_meta.c) */
	u64 seen_map[BLOCK_FRAMES / 64];
	struct gate_lot lot[GATE_LOTS];
};

/* Metadata memory of a node: see meta.h. Keys: see struct zone. */
struct meta {
	struct spinlock lock;                /* rank: LOCK_META */
	struct meta_block *list[META_KINDS]; /* (m) in order of address */
	/* (m) no block before it has a free frame; NULL: look from the start */
	struct meta_block *hint[META_KINDS];
	struct meta_block *spare; /* (m) unused descriptors */
	u64 spare_frames;         /* (m) frames that hold descriptors, used and spare */
	/* (m) blocks, (m) frames used, (ma) frames gated; `used` includes `gated` */
	u64 blocks, used, gated;
	/* (mah) frames not used, (m) frames reserved; the latter are among the former */
	u64 free[META_KINDS], reserved[META_KINDS];
	u64 unused[META_KINDS];                  /* (m) blocks none of whose frames is used */
	struct gate_lot *gate_first, *gate_last; /* (m) gated frames, in order of tag */
	bool growing;     /* (oa) owner: the CPU in mm->growing, which makes it grow */
	u64 near;         /* (a) the GiB, of mm->gib[], where a block was found last */
	u64 first_gib;    /* (c) the GiB, of mm->gib[], of the node's first metadata block */
	u64 lasting_keep; /* (c) frames of kind LASTING that heads do not use */
};

/* A node. Keys: see struct zone. */
struct node {
	struct mm *mm;       /* (c) */
	node_t id;           /* (c) */
	u8 zone[ZONE_KINDS]; /* (c) indices, ZONE_NONE if the node has no such memory */
	/*
	 * (c) the node whose metadata memory serves this one: itself, or the nearest with enough
	 * memory
	 */
	node_t meta_node;
	node_t *fallback; /* (c) all nodes, nearest first */
	struct meta meta; /* has its own lock */
};

enum { ZONE_NONE = 0xff, ZONES_MAX = 255 };

enum { TAIL_ORDERS = 2 }; /* shared tail pages per zone: orders 9 and 18 */

/* Per CPU: lists (pcp.c), and counts that would bounce between caches if shared (mm_count()). */
struct pcp;

/*
 * Counts of work that several CPUs may share. Each CPU has its own copy, in lines that no other CPU
 * writes; readers add the copies up.
 */
enum mm_count {
	COUNT_SECTIONS_OPENED,
	COUNT_SECTIONS_CLOSED,
	COUNT_PMD_SPLITS,
	COUNT_STRETCHES, /* parts of batches that were divided among CPUs (hvo_share.c) */
	/* those of them that another CPU did than the one that divided the batch */
	COUNT_STRETCHES_HELPED,
	/*
	 * frames used as vmemmap page tables, less those given back; each of them is a metadata
	 * memory or boot frame as well
	 */
	COUNT_TABLES,
	COUNT_CHANGES, /* and the next: COUNT_CHANGE() */
	MM_COUNTS = COUNT_CHANGES + BLOCK_STATES * BLOCK_STATES
};

/* Blocks that changed from one state to another (block_state.c). */
#define COUNT_CHANGE(from, to) (COUNT_CHANGES + (from)*BLOCK_STATES + (to))

/*
 * Extra work beside allocating and freeing. Both paths find out with one test of mm->watch
 * (page_check.h).
 */
enum mm_watch {
	WATCH_OWNERS = 1 << 0, /* debug.page_owner=on */
	WATCH_BAD = 1 << 1,    /* some frames in use must be withheld when they are freed */
	/* frames were reported as bad and the report has not been handled yet */
	WATCH_REPORTED = 1 << 2,
};

/*
 * Bad frames that are not withheld yet (bad_frames.h), each with a token for an isolation that it
 * may hold. Any context may note a frame in a `word` that is 0; all else is for the CPU that
 * withdraws frames.
 */
enum { BAD_FRAMES_MAX = 64 };

struct bad_frame {
	bool pending; /* it was looked at and could not be taken out */
	struct isolation isolation;
};

struct bad_frames {
	u32 again;       /* atomic: somebody wanted a withdrawal while one was being made */
	u32 withdrawing; /* number of the CPU that withdraws frames + 1, or 0; atomic */
	u32 wait;        /* number of frees until the next attempt; atomic */
	u32 lost;        /* reports for which there was no room; atomic */
	/* frame + 1; 0: none; atomic, and side by side, because CPUs that free pages look at all */
	u64 word[BAD_FRAMES_MAX];
	struct bad_frame frame[BAD_FRAMES_MAX];
};

/*
 * The machine's memory, or a test's. Keys: see struct zone. The key of a pointer is that of the
 * pointer, not of the memory behind it.
 */
struct mm {
	u32 watch;                               /* (a) enum mm_watch */
	pfn_t root;                              /* (c) page tables that hold the vmemmap window */
	virt_t vmemmap;                          /* (c) window base */
	u64 first_gib, gibs;                     /* (c) */
	struct gib *gib;                         /* (c) [gib - first_gib] */
	struct memblock_list *memory, *reserved; /* (c) frozen */
	node_t nodes;                            /* (c) */
	struct node *node;                       /* (c) */
	unsigned zones;                          /* (c) */
	struct zone *zone;                       /* (c) */
	pfn_t *shared_tail;                      /* (c) [zone * TAIL_ORDERS + (order == 18)] */
	struct pcp **pcp;                        /* (c) [cpu] */
	/*
	 * (a) drains begun, drains complete, CPUs interrupted for them (pcp_drain.c); written by
	 * the CPU in `drain_claim` only
	 */
	u64 drains, drains_done, drain_messages;
	u32 drain_claim; /* (a) number + 1 of the one CPU that drains; 0: none */
	u32 growing; /* (a) number + 1 of the one CPU that makes metadata memory grow; 0: none */
	/* (a) how CPUs' lists know the types of their pages (pcp_types.c) */
	const struct pcp_types *pcp_types;
	struct pool *pools; /* (c) the pools over this mm */
	/*
	 * (c) vmemmap tables: [section % TABLE_LOCKS]; gib->blocks: [number of the GiB %
	 * TABLE_LOCKS]
	 */
	struct spinlock *table_lock;
	enum section_style style; /* (c) of sections that the allocator opens */
	bool ready;               /* (c) */
	bool gigablock;           /* (c) memory is placed by GiB (zone/gigablock.h) */
	/* (a) PMDs split whose round is not complete; until then no PTE of their tables changes */
	u32 splits_unflushed;
	struct fail_plan fail; /* (a) tests: the calls that must fail */
	struct bad_frames bad; /* see struct bad_frames for who owns what */
	/* (a) frames in transit that CPUs hold while they look for more: none come back soon */
	u64 transit_kept;
};

enum { TABLE_LOCKS = 64 };

/*
 * The most records handled in one turn at a lock. The only exception is joining or cutting a 1 GiB
 * page, which takes GIB_BLOCKS records in one turn.
 */
enum { LOCK_SLICE = 256 };

extern struct mm mm_kernel;

/*
 * Record of block number `index` (pfn / 512), or NULL if its GiB holds no RAM or was never opened.
 * Any context, no lock. The answer stays valid: tables are opened, never closed.
 */
static inline struct block *block_at(const struct mm *mm, u32 index)
{
	const u64 gib = (u64)index / GIB_BLOCKS - mm->first_gib;
	struct block *blocks;

	if (gib >= mm->gibs) /* a block below the first GiB wraps to a large number */
		return NULL;
	blocks = atomic_load_acquire(&mm->gib[gib].blocks);
	return blocks ? &blocks[index % GIB_BLOCKS] : NULL;
}

static inline struct block *block_of(const struct mm *mm, pfn_t pfn)
{
	return block_at(mm, (u32)(pfn >> BLOCK_ORDER));
}

static inline struct gib *gib_of(const struct mm *mm, u32 index)
{
	return &mm->gib[index / GIB_BLOCKS - mm->first_gib];
}

/* Record of block `index`, which must have one: every block that is open or on a list has. */
static inline struct block *block_existing(const struct mm *mm, u32 index)
{
	return &atomic_load_acquire(&gib_of(mm, index)->blocks)[index % GIB_BLOCKS];
}

/* The word of the record of block `index`, which must exist. */
static inline struct block_word block_look_at(const struct mm *mm, u32 index)
{
	return block_look(block_existing(mm, index));
}

/* That word, or one in state BLOCK_ABSENT where there is no record. */
static inline struct block_word block_look_any(const struct mm *mm, u32 index)
{
	const struct block *block = block_at(mm, index);

	return block ? block_look(block) : BLOCK_WORD(.state = BLOCK_ABSENT);
}

static inline struct page *pfn_page(const struct mm *mm, pfn_t pfn)
{
	return (struct page *)(mm->vmemmap + (pfn << PAGE_STRUCT_SHIFT));
}

/* The first struct page of a block: its head, if it heads a page. */
static inline struct page *block_page(const struct mm *mm, u32 index)
{
	return pfn_page(mm, block_pfn(index));
}

/* A counter that is written under a lock, or by one CPU, and read without it. */
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

	for (unsigned class = 0; class < FREE_CLASSES; class ++)
		frames += atomic_load_relaxed(&zone->free_class[class]);
	return frames;
}

/* `frames` of block `index` entered the buddy, or left it if negative. Zone lock held. */
static inline void gib_count_free(const struct mm *mm, u32 index, s64 frames)
{
	struct gib *gib = gib_of(mm, index);

	if (gib->whole)
		atomic_store_relaxed(&gib->free, gib->free + (u32)frames);
}

/* `frames` of block `index` became movable, or stopped being so if negative. Any context. */
static inline void gib_count_movable(const struct mm *mm, u32 index, s64 frames)
{
	atomic_add_relaxed(&gib_of(mm, index)->movable, (u32)frames);
}

/*
 * A pool page becomes free in its pool, or stops being so. Returns what that adds to the movable
 * frames of its GiB. Free 2 MiB pages count as movable, because a pool can take another in
 * exchange. Free 1 GiB pages make no room for others of their size. Pool lock held.
 */
static inline s64 block_mark_pool_free(struct block *block, u8 flag)
{
	const struct block_word word = block_look(block);

	if ((word.flags & BLOCK_POOL_FREE) == flag)
		return 0;
	if (flag)
		block_set_flags(block, BLOCK_POOL_FREE);
	else
		block_clear_flags(block, BLOCK_POOL_FREE);
	if (word.order != BLOCK_ORDER)
		return 0;
	return flag ? BLOCK_FRAMES : -BLOCK_FRAMES;
}

static inline void block_set_pool_free(const struct mm *mm, u32 index)
{
	gib_count_movable(mm, index,
			  block_mark_pool_free(block_existing(mm, index), BLOCK_POOL_FREE));
}

static inline void block_clear_pool_free(const struct mm *mm, u32 index)
{
	gib_count_movable(mm, index, block_mark_pool_free(block_existing(mm, index), 0));
}

/* Record of the block of a frame in use; such a block always has one. */
static inline struct block *block_of_used(const struct mm *mm, pfn_t pfn)
{
	return block_existing(mm, (u32)(pfn >> BLOCK_ORDER));
}

static inline struct zone *block_zone(struct mm *mm, u32 index)
{
	return &mm->zone[block_look_at(mm, index).zone];
}

static inline struct node *zone_node(struct zone *zone)
{
	return &zone->mm->node[zone->node];
}

/* The nodes in order of distance from `node`: number 0 is itself, mm->nodes - 1 the farthest. */
static inline struct node *node_near(const struct node *node, node_t number)
{
	return &node->mm->node[node->fallback[number]];
}

/* RAM of the node in frames. */
u64 node_ram(const struct node *node);

/* The node's zone of that kind, or NULL if it has no such memory. */
static inline struct zone *node_zone(const struct node *node, enum zone_kind kind)
{
	const u8 zone = node->zone[kind];

	return zone == ZONE_NONE ? NULL : &node->mm->zone[zone];
}

/* The node whose metadata memory supplies frames for the zone's struct pages. */
static inline struct node *zone_meta_node(struct zone *zone)
{
	return &zone->mm->node[zone_node(zone)->meta_node];
}

/* The node whose metadata memory supplies frames for the struct pages of an opened block. */
static inline struct node *block_meta_node(struct mm *mm, u32 index)
{
	return zone_meta_node(block_zone(mm, index));
}

/* The sum over all CPUs of a count kept by mm_count(). */
u64 mm_counted(const struct mm *mm, unsigned which);
