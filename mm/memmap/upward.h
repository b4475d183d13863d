/*
 * Upward calls: from a room (a directory of mm/) to a room above it. There are no others
 * (tests/lint/rooms.py).
 *
 * A room calls the rooms below it by name. Sometimes it needs a room above it, because the
 * allocator and the memory that describes it feed each other. Such calls go through this table,
 * which mm/init.c defines once for every struct mm.
 */
#pragma once

#include "kernel/lib/types.h"
#include "mm/memmap/zone.h"

struct block_list;
struct hvo_mode;
struct migrate_stats;

/* runs that give up their struct pages in one round, in cases where a single run is needed */
enum { HVO_BARE_BATCH = 8 };

struct mm_upward {
	/*
	 * memmap/ to zone/: metadata memory gets its frames from blocks of memory, and gives
	 * unneeded blocks back. meta_grow.h
	 */
	int (*meta_grow)(struct node *node, enum meta_kind kind, u64 count);
	void (*meta_trim)(struct node *node);

	/*
	 * memmap/, zone/ to page/: do a drain that was requested meanwhile; drain all CPUs' lists.
	 * pcp.h
	 */
	void (*drain_asked)(struct mm *mm);
	void (*drain_all)(struct mm *mm);

	/*
	 * zone/ to hvo/: free huge blocks give up their struct pages; full ones give up all but the
	 * head's, or in mapped sections those that lie elsewhere; one free block of several gives
	 * up all. hvo.h
	 */
	u64 (*bare_free_huge)(struct zone *zone, u64 count);
	u64 (*huge_free_full)(struct zone *zone, u64 count);
	bool (*bare_in)(struct zone *zone, u32 first, u32 count);
	u64 (*bring_home)(struct zone *zone);

	/* hvo/ to contig/: empty a GiB for a 1 GiB page. contig.h */
	u64 (*take_giga)(struct zone *zone, const struct hvo_mode *mode, u64 count,
			 struct block_list *list);

	/* page/ to contig/: movable pages leave a chunk of a tainted GiB. evacuate.h */
	bool (*evacuate)(struct zone *zone, unsigned order, enum migratetype type, bool again);

	/* page/ to contig/: bad frames. bad_frames.h */
	int (*mark_bad)(struct mm *mm, pfn_t pfn);
	void (*take_reported)(struct mm *mm);
	void (*freed_near_bad)(struct mm *mm, pfn_t pfn, unsigned order);

	/*
	 * page/ to hugetlb/: the last reference to the head of a pool's page was dropped; a range
	 * that holds a pool's page is being emptied. pool.h
	 */
	void (*pool_put_last)(struct mm *mm, struct page *page, u64 state);
	int (*pool_move_page)(struct mm *mm, u32 index, unsigned order,
			      struct migrate_stats *stats);

	/* contig/ to hugetlb/: this block has a bad frame. pool_move.h */
	void (*pool_dissolve_page)(struct mm *mm, u32 index);

	/* page/ to mapping/: the address where page_map() has put a frame. map.h */
	virt_t (*map_find)(pfn_t pfn);
};

extern const struct mm_upward mm_upward;
