/* B+-tree of areas: see area_tree.h. */
#include "mm/vm/area_tree.h"

#include <arch/atomic.h>
#include <arch/barrier.h>

#include "kernel/core/panic.h"

enum {
	NODE_HEADER = 2 * sizeof(u64),
	AREA_WORDS = sizeof(struct area) / sizeof(u64),
	NODE_WORDS = (PAGE_SIZE - NODE_HEADER) / sizeof(u64),
	LEAF_MAX = NODE_WORDS / AREA_WORDS,
	CHILD_WORDS = 2,
	INNER_MAX = NODE_WORDS / CHILD_WORDS,
};

/* The words of an entry are its key first, then the rest: an area begins with its start. */
struct area_node {
	u32 level; /* 0: leaf */
	u32 count; /* entries */
	struct area_node *next_spare;
	u64 word[NODE_WORDS];
};

_Static_assert(sizeof(struct area_node) == PAGE_SIZE, "a node is a page");
_Static_assert(sizeof(struct area) % sizeof(u64) == 0 && offsetof(struct area, start) == 0,
	       "an area is copied in words, and its first word is its key");

/* The way from the root to a leaf. */
struct path {
	struct area_node *node[AREA_TREE_HEIGHT_MAX]; /* by level */
	u32 at[AREA_TREE_HEIGHT_MAX]; /* the child taken; in the leaf, the number of areas that
					 begin at or below the address */
	u32 levels;
	u64 right; /* the least key to the right of the leaf; 0: none */
	u64 left;  /* the greatest address to the left of the leaf's; 0: none */
};

static u32 entry_words(u32 level)
{
	return level == 0 ? AREA_WORDS : CHILD_WORDS;
}

static u32 entries_max(u32 level)
{
	return level == 0 ? LEAF_MAX : INNER_MAX;
}

/* ---- words: readers may look at any time ---- */

static u64 word_of(const struct area_node *node, u32 level, u32 entry, u32 word)
{
	return atomic_load_relaxed(&node->word[entry * entry_words(level) + word]);
}

static void write_words(struct area_node *node, u32 level, u32 entry, const u64 *from)
{
	const u32 words = entry_words(level);

	for (u32 i = 0; i < words; i++)
		atomic_store_relaxed(&node->word[entry * words + i], from[i]);
}

static void copy_entries(struct area_node *to, u32 at, const struct area_node *from, u32 first,
			 u32 count)
{
	const u32 words = entry_words(from->level);

	for (u32 i = 0; i < count * words; i++)
		atomic_store_relaxed(&to->word[at * words + i], from->word[first * words + i]);
}

/* Make room for an entry, or close the room of one. */
static void open_entry(struct area_node *node, u32 at)
{
	const u32 words = entry_words(node->level);

	for (u32 i = node->count * words; i > at * words; i--)
		atomic_store_relaxed(&node->word[i - 1 + words], node->word[i - 1]);
	atomic_store_relaxed(&node->count, node->count + 1);
}

static void close_entry(struct area_node *node, u32 at)
{
	const u32 words = entry_words(node->level);

	for (u32 i = at * words; i < (node->count - 1) * words; i++)
		atomic_store_relaxed(&node->word[i], node->word[i + words]);
	atomic_store_relaxed(&node->count, node->count - 1);
}

/* An area is read and written in words. */
union area_words {
	struct area area;
	u64 word[AREA_WORDS];
};

static struct area area_at(const struct area_node *leaf, u32 at)
{
	union area_words copy;
	const u64 *from = &leaf->word[at * AREA_WORDS];

	for (u32 i = 0; i < AREA_WORDS; i++)
		copy.word[i] = atomic_load_relaxed(&from[i]);
	return copy.area;
}

/* ---- the way down ---- */

/* Entries of the node with a key at or below `addr`, counted from entry `from` on. */
static u32 entries_below(const struct area_node *node, u32 level, u32 from, u32 count, u64 addr)
{
	u32 low = from, high = count;

	while (low < high) {
		const u32 middle = (low + high) / 2;

		if (word_of(node, level, middle, 0) <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* True if no writer has changed the tree since `seq` was read: all that was read since is valid. */
static bool unchanged(const struct area_tree *tree, u64 seq)
{
	fence_compiler();
	return atomic_load_acquire(&tree->seq) == seq;
}

/*
 * Go down to the leaf for `addr`. False if the tree was changed on the way; the path is then
 * useless. The first child of a node also has all that is below its key.
 */
static bool descend(const struct area_tree *tree, u64 seq, u64 addr, struct path *path)
{
	struct area_node *node = atomic_load_acquire(&tree->root);

	path->right = path->left = path->levels = 0;
	if (!unchanged(tree, seq))
		return false;
	while (node) {
		const u32 level = atomic_load_acquire(&node->level),
			  count = atomic_load_acquire(&node->count);
		u32 at;

		if (!unchanged(tree, seq))
			return false;
		ASSERT(level < AREA_TREE_HEIGHT_MAX && count <= entries_max(level),
		       "a node of a space's areas is damaged");
		at = entries_below(node, level, level == 0 ? 0 : 1, count, addr);
		if (path->levels == 0)
			path->levels = level + 1;
		path->node[level] = node;
		if (level == 0) {
			path->at[0] = at;
			break;
		}
		if (at < count)
			path->right = word_of(node, level, at, 0);
		if (at > 1)
			path->left = word_of(node, level, at - 1, 0) - 1;
		path->at[level] = at - 1;
		node = (struct area_node *)(virt_t)word_of(node, level, at - 1, 1);
		if (!unchanged(tree, seq))
			return false;
	}
	return true;
}

static u64 read_begin(const struct area_tree *tree)
{
	u64 seq = atomic_load_acquire(&tree->seq);

	while (seq & 1) {
		cpu_relax();
		seq = atomic_load_acquire(&tree->seq);
	}
	return seq;
}

/* Copy entry `at` of the path's leaf, if it has so many. */
static bool leaf_area(const struct path *path, u32 at, struct area *area)
{
	if (path->levels == 0 || at >= MIN(atomic_load_relaxed(&path->node[0]->count), LEAF_MAX))
		return false;
	*area = area_at(path->node[0], at);
	return true;
}

/*
 * The last area that begins at or below the address of the path, and the first above it. 1: found.
 * 0: there is none. -1: the tree was changed meanwhile. *area may change in any case.
 */
static inline int look_below(const struct area_tree *tree, u64 seq, const struct path *path,
			     struct area *area)
{
	struct path left;

	if (path->levels > 0 && path->at[0] > 0)
		return leaf_area(path, path->at[0] - 1, area);
	if (path->left == 0)
		return 0;
	if (!descend(tree, seq, path->left, &left))
		return -1;
	return left.at[0] > 0 && leaf_area(&left, left.at[0] - 1, area);
}

static inline int look_above(const struct area_tree *tree, u64 seq, const struct path *path,
			     struct area *area)
{
	struct path right;

	if (path->levels > 0 && leaf_area(path, path->at[0], area))
		return 1;
	if (path->right == 0)
		return 0;
	if (!descend(tree, seq, path->right, &right))
		return -1;
	return leaf_area(&right, 0, area);
}

static int try_from(const struct area_tree *tree, u64 seq, u64 addr, struct area *area)
{
	struct path path;
	int found;

	if (!descend(tree, seq, addr, &path))
		return -1;
	/* the last area of the leaf before may reach beyond the key that divides the two */
	found = look_below(tree, seq, &path, area);
	if (found == 0 || (found > 0 && area->end <= addr))
		found = look_above(tree, seq, &path, area);
	return unchanged(tree, seq) ? found : -1;
}

/* Store what was found, if anything. */
static bool give(int found, const struct area *from, struct area *to)
{
	if (found > 0)
		*to = *from;
	return found > 0;
}

bool area_tree_from(const struct area_tree *tree, u64 addr, struct area *area)
{
	struct area copy;
	int found;

	do
		found = try_from(tree, read_begin(tree), addr, &copy);
	while (found < 0);
	return give(found, &copy, area);
}

bool area_tree_from_again(const struct area_tree *tree, u64 addr, struct area_found *last,
			  struct area *area)
{
	int found;

	if (atomic_load_acquire(&tree->seq) == last->seq && last->area.start <= addr &&
	    addr < last->area.end) {
		*area = last->area;
		return true;
	}
	do {
		last->seq = read_begin(tree);
		found = try_from(tree, last->seq, addr, &last->area);
	} while (found < 0);
	if (found == 0)
		last->area = (struct area){.start = 0};
	return give(found, &last->area, area);
}

bool area_tree_own_from(const struct area_tree *tree, u64 addr, struct area *area)
{
	struct area copy;

	return give(try_from(tree, tree->seq, addr, &copy), &copy, area);
}

static void find(const struct area_tree *tree, u64 addr, struct path *path)
{
	const bool still = descend(tree, tree->seq, addr, path);

	ASSERT(still, "a space's areas changed without their lock");
}

void area_tree_own_around(const struct area_tree *tree, u64 addr, struct area *below,
			  struct area *above)
{
	struct path path;

	find(tree, addr - 1, &path);
	look_below(tree, tree->seq, &path, below);
	look_above(tree, tree->seq, &path, above);
}

/* ---- nodes ---- */

void area_tree_give_node(struct area_tree *tree, void *page)
{
	struct area_node *node = page;

	node->next_spare = tree->spare;
	tree->spare = node;
	tree->spares++;
}

/* Each insertion may split a node of every level, and one of them adds a root. */
size_t area_tree_short(const struct area_tree *tree, unsigned insertions)
{
	const size_t levels = tree->root ? tree->root->level + 1 : 1;
	const size_t needed = (tree->promised + insertions) * (levels + 1) + 1;

	return tree->spares < needed ? needed - tree->spares : 0;
}

static struct area_node *take_spare(struct area_tree *tree, u32 level)
{
	struct area_node *node = tree->spare;

	ASSERT(node, "a change of a space's areas without nodes kept ready");
	tree->spare = node->next_spare;
	tree->spares--;
	atomic_store_relaxed(&node->level, level);
	atomic_store_relaxed(&node->count, 0);
	return node;
}

void *area_tree_take_node(struct area_tree *tree)
{
	struct area_node *node = tree->spare;

	if (node) {
		tree->spare = node->next_spare;
		tree->spares--;
		return node;
	}
	if (tree->root && tree->root->level == 0) {
		node = tree->root;
		atomic_store_relaxed(&tree->root, NULL);
	}
	return node;
}

/* ---- changes ---- */

void area_tree_change(struct area_tree *tree)
{
	atomic_store_relaxed(&tree->seq, tree->seq + 1);
	fence_store(); /* odd before anything changes */
}

void area_tree_changed(struct area_tree *tree)
{
	atomic_store_release(&tree->seq, tree->seq + 1);
}

/* Add an entry to the node of `level`, which is split if it is full. */
static void insert_entry(struct area_tree *tree, struct path *path, u32 level, u32 at,
			 const u64 *words)
{
	struct area_node *node = path->node[level], *right;
	u32 half;
	u64 child[CHILD_WORDS];

	if (node->count < entries_max(level)) {
		open_entry(node, at);
		write_words(node, level, at, words);
		return;
	}
	right = take_spare(tree, level);
	half = node->count / 2;
	copy_entries(right, 0, node, half, node->count - half);
	atomic_store_relaxed(&right->count, node->count - half);
	atomic_store_relaxed(&node->count, half);
	if (at > half) {
		open_entry(right, at - half);
		write_words(right, level, at - half, words);
	} else {
		open_entry(node, at);
		write_words(node, level, at, words);
	}
	child[0] = right->word[0];
	child[1] = (u64)(virt_t)right;
	if (level + 1 == path->levels) {
		struct area_node *root = take_spare(tree, level + 1);
		const u64 first[CHILD_WORDS] = {0, (u64)(virt_t)node};

		write_words(root, level + 1, 0, first);
		write_words(root, level + 1, 1, child);
		atomic_store_relaxed(&root->count, 2);
		atomic_store_release(&tree->root, root);
		return;
	}
	insert_entry(tree, path, level + 1, path->at[level + 1] + 1, child);
}

void area_tree_insert(struct area_tree *tree, const struct area *area)
{
	const union area_words copy = {.area = *area};
	struct path path;

	if (!tree->root)
		atomic_store_release(&tree->root, take_spare(tree, 0));
	find(tree, area->start, &path);
	insert_entry(tree, &path, 0, path.at[0], copy.word);
	tree->count++;
}

static void remove_entry(struct area_tree *tree, const struct path *path, u32 level, u32 at)
{
	struct area_node *node = path->node[level];

	close_entry(node, at);
	if (node->count > 0 || level + 1 == path->levels)
		return;
	area_tree_give_node(tree, node);
	remove_entry(tree, path, level + 1, path->at[level + 1]);
}

/* A root with one child gives way to it. */
static void lower_root(struct area_tree *tree)
{
	while (tree->root->level > 0 && tree->root->count == 1) {
		struct area_node *old = tree->root;

		atomic_store_release(&tree->root, (struct area_node *)(virt_t)old->word[1]);
		area_tree_give_node(tree, old);
	}
}

static void find_exactly(const struct area_tree *tree, u64 start, struct path *path)
{
	find(tree, start, path);
	ASSERT(path->levels > 0 && path->at[0] > 0 &&
		       path->node[0]->word[(path->at[0] - 1) * AREA_WORDS] == start,
	       "no area begins at %llx", start);
}

void area_tree_remove(struct area_tree *tree, u64 start)
{
	struct path path;

	find_exactly(tree, start, &path);
	remove_entry(tree, &path, 0, path.at[0] - 1);
	lower_root(tree);
	tree->count--;
}

void area_tree_replace(struct area_tree *tree, u64 start, const struct area *area)
{
	const union area_words copy = {.area = *area};
	struct path path;

	ASSERT(area->start == start, "an area changed its start");
	find_exactly(tree, start, &path);
	write_words(path.node[0], 0, path.at[0] - 1, copy.word);
}
