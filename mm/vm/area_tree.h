/*
 * The ordered structure of a space's areas: a B+-tree whose nodes are pages.
 *
 *	inner node   [first address, child] x up to 255
 *	leaf         [area] x up to 85, in the order of addresses; areas do not overlap
 *
 * A node is removed when it is empty, and neighbours are never joined. That keeps deletion short,
 * and in practice the tree hardly grows by it (Johnson and Shasha, "B-trees with inserts and
 * deletes: why free-at-empty is better than merge-at-half", 1993).
 *
 * Readers take no lock. A writer makes `seq` odd, changes nodes, and makes it even again; a reader
 * that finds another value than at its beginning starts anew. Nodes stay nodes of this tree until
 * area_tree_take_node(), so a reader that is overtaken may read wrong contents, but never another
 * owner's memory: it checks `seq` before it follows a pointer. Writers are serialised by their
 * caller's lock (space.c).
 */
#pragma once

#include "kernel/lib/types.h"

struct vm_object;

enum area_flags {
	AREA_SHARED = 1 << 0,     /* MAP_SHARED: writes reach the object */
	AREA_BUSY = 1 << 1,       /* being changed: its owner is the call that set this */
	AREA_POOL = 1 << 2,       /* large pages come only from the pool of their size */
	AREA_WHOLE = 1 << 3,      /* no call cuts a page of the area's size */
	AREA_HUGE = 1 << 4,       /* madvise(MADV_HUGEPAGE) */
	AREA_SMALL = 1 << 5,      /* madvise(MADV_NOHUGEPAGE) */
	AREA_NO_RESERVE = 1 << 6, /* MAP_NORESERVE: a pool promises nothing */
	AREA_FALLBACK = 1 << 7,   /* smaller pages come where there is none of the area's size */
	AREA_COMMIT = 1 << 8,     /* the owner's: it is or was writable (kernel/program/commit.h) */
};

/* Source of pages: the CPU's own node first, or nodes of a set (node n is bit n). */
enum policy { POLICY_NEAR, POLICY_PREFER, POLICY_BIND, POLICY_INTERLEAVE };
enum { POLICY_NODES = 64 }; /* that a set can have */
struct memory_policy {
	u8 how; /* enum policy */
	u64 nodes;
} __packed; /* an area has 48 bytes */

struct area {
	u64 start, end;           /* bytes, whole pages; [start, end) */
	struct vm_object *object; /* source of contents, with a reference; NULL: zero pages */
	u64 offset;               /* of `start` in the object, in bytes */
	u16 flags;                /* enum area_flags */
	u8 rights;                /* enum user_rights */
	u8 level;                 /* size of its pages; with PT_PAGE 2 MiB pages may come, too */
	/* where its pages come from: mbind() */
	struct memory_policy policy;
};

struct area_node;

struct area_tree {
	u64 seq;                 /* odd: being changed */
	struct area_node *root;  /* NULL: empty, before the first insertion */
	struct area_node *spare; /* nodes that are kept ready */
	size_t spares;
	u64 promised; /* insertions that calls under way will make; spare nodes are kept for them */
	u64 count;    /* areas */
};

enum { AREA_TREE_HEIGHT_MAX = 7, AREA_TREE_COUNT_MAX = 65530 };

/*
 * Hand a page to the tree as a spare node, zeroed; the tree's until it is taken out. Caller's lock
 * held. area_tree_short(): how many more are needed before `insertions` insertions, besides those
 * promised, cannot fail.
 */
void area_tree_give_node(struct area_tree *tree, void *page);
size_t area_tree_short(const struct area_tree *tree, unsigned insertions);

/* A page of the tree, taken out, or NULL when there is none left. Only when no reader is left. */
void *area_tree_take_node(struct area_tree *tree);

/*
 * Writers, caller's lock held. Between area_tree_change() and area_tree_changed() readers wait, so
 * that a change of several steps is seen whole.
 *
 * insert: the area overlaps none. remove: the area that begins at `start`. replace: put `area` in
 * the place of the area that begins at `start`. It must begin there, too, because an area with
 * another start may belong into another leaf, and may end anywhere before the next area.
 */
void area_tree_change(struct area_tree *tree);
void area_tree_changed(struct area_tree *tree);
void area_tree_insert(struct area_tree *tree, const struct area *area);
void area_tree_remove(struct area_tree *tree, u64 start);
void area_tree_replace(struct area_tree *tree, u64 start, const struct area *area);

/*
 * Copy the first area that ends above `addr`. False, and nothing is copied, if there is none. Any
 * context; no lock needed.
 */
bool area_tree_from(const struct area_tree *tree, u64 addr, struct area *area);

/*
 * area_tree_from() for a caller that remembers its last answer: as long as the tree is not changed,
 * an address in the area that was found last takes no search. `last` is zero at first. Only for one
 * tree, and one CPU at a time.
 */
struct area_found {
	u64 seq;
	struct area area;
};
bool area_tree_from_again(const struct area_tree *tree, u64 addr, struct area_found *last,
			  struct area *area);

/*
 * For a caller that holds the lock of the tree's writers, also in the middle of a change:
 * area_tree_from(); and both neighbours of `addr`, the last area that begins below it and the first
 * that begins there or above. If there is no such area, *below or *above keeps its old value.
 */
bool area_tree_own_from(const struct area_tree *tree, u64 addr, struct area *area);
void area_tree_own_around(const struct area_tree *tree, u64 addr, struct area *below,
			  struct area *above);
