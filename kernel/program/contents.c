/* Contents of regular files: see contents.h. */
#include "kernel/program/contents.h"

#include <arch/atomic.h>

#include "kernel/core/percpu.h"
#include "kernel/core/wait.h"
#include "kernel/lib/string.h"
#include "kernel/program/store.h"
#include "kernel/program/thread.h"
#include "mm/clear/clear.h"
#include "mm/mm.h"
#include "mm/vm/pages.h"

enum {
	FANOUT_SHIFT = 9,
	FANOUT = 1 << FANOUT_SHIFT,
	HEIGHT_MAX = 4, /* covers 2^36 pages, more than CONTENTS_MAX */
	DROP_AT_ONCE = 32,
	TRIES_MAX = 8, /* of a writer whose page is cut off again and again */
};

static u64 all_pages; /* of all files; atomic */

/* ---- the tree ---- */

static struct page **children(struct page *node)
{
	return page_address(node);
}

/* The slot in a node of `height` on the way to a page. */
static unsigned slot_of(u64 index, unsigned height)
{
	return (unsigned)(index >> (FANOUT_SHIFT * (height - 1))) % FANOUT;
}

static bool covers(unsigned height, u64 index)
{
	return index >> (FANOUT_SHIFT * height) == 0;
}

/* In the slot of a page of a pool that does not exist and is promised. */
#define PROMISED ((struct page *)1)

static bool is_page(const struct page *slot)
{
	return slot && slot != PROMISED;
}

/* The page, or NULL if it does not exist. Caller holds the lock. */
static struct page *look_up(const struct contents *c, u64 index)
{
	struct page *page = c->root;

	if (!covers(c->height, index))
		return NULL;
	for (unsigned height = c->height; height > 0 && page; height--)
		page = children(page)[slot_of(index, height)];
	return is_page(page) ? page : NULL;
}

/* Use the page that was allocated for the tree, if it still is there. */
static struct page *use(struct page **spare)
{
	struct page *page = *spare;

	*spare = NULL;
	return page;
}

/* Make the tree high enough. False if `*spare` did not suffice. */
static bool raise(struct contents *c, u64 index, struct page **spare)
{
	while (!covers(c->height, index)) {
		if (c->root) {
			struct page *node = use(spare);

			if (!node)
				return false;
			children(node)[0] = c->root;
			c->root = node;
		}
		c->height++;
	}
	return true;
}

/* Bytes that the image has for a page. */
static u64 source_bytes(const struct contents *c, u64 index)
{
	const u64 at = index << PAGE_SHIFT;

	return at < c->source_size ? MIN(c->source_size - at, PAGE_SIZE) : 0;
}

/* Caller holds the lock, or is the last to use the file. */
static void count_pages(struct contents *c, u64 more)
{
	c->pages += more;
	if (c->level == PT_PAGE)
		atomic_add_relaxed(&all_pages, more);
}

u64 contents_pages(void)
{
	return atomic_load_relaxed(&all_pages);
}

/*
 * The slot of the page, NULL if `*spare` did not suffice for the nodes above; a node that was added
 * stays, so the next page that is brought here goes further. Caller holds the lock.
 */
static struct page **bring_slot(struct contents *c, u64 index, struct page **spare)
{
	struct page **slot = &c->root;

	if (!raise(c, index, spare))
		return NULL;
	for (unsigned height = c->height; height > 0; height--) {
		if (!*slot)
			*slot = use(spare);
		if (!*slot)
			return NULL;
		slot = &children(*slot)[slot_of(index, height)];
	}
	return slot;
}

/* The page, made of `*spare` if it does not exist, or NULL. Caller holds the lock. */
static struct page *bring(struct contents *c, u64 index, struct page **slot, struct page **spare)
{
	const u64 bytes = source_bytes(c, index);

	if (is_page(*slot) || !*spare)
		return is_page(*slot) ? *slot : NULL;
	*slot = use(spare);
	if (bytes > 0)
		memcpy(page_address(*slot), c->source + (index << PAGE_SHIFT), bytes);
	count_pages(c, 1);
	return *slot;
}

/* A page for the slot of a file of huge pages, whose turn the caller has; NULL: there is none. */
static struct page *pool_page(const struct contents *c, const struct page *slot)
{
	struct page *page = pool_page_take(pages_pool(c->level), this_cpu()->node,
					   slot == PROMISED ? POOL_RESERVED : POOL_ANY);

	if (page)
		clear_huge_as_selected(page_address(page), contents_page_bytes(c), CLEAR_NO_HINT,
				       this_cpu()->node);
	return page;
}

/*
 * Only files of huge pages need turns: a page of a pool must come as its slot says, and into a tree
 * that has its node; and promises must be as many as the pages that were absent.
 */
static void begin_turn(struct contents *c)
{
	if (c->level > PT_PAGE)
		wait_turn(&c->turn, "a huge page of a file that another thread brings");
}

static void end_turn(struct contents *c)
{
	if (c->level > PT_PAGE)
		atomic_store_release(&c->turn, 0);
}

/*
 * The page with one reference more, brought if need be. NULL if there is no memory. *cuts receives
 * the count as of then. With `beyond`, the page must not lie wholly beyond the end: *beyond is then
 * set, and NULL is returned.
 */
static struct page *get_page(struct contents *c, u64 index, u32 *cuts, bool *beyond)
{
	struct page *spare = NULL, *page = NULL, **slot;
	bool outside;

	begin_turn(c);
	do {
		spin_lock(&c->lock);
		outside = beyond && index >= DIV_ROUND_UP(c->size, contents_page_bytes(c));
		slot = outside ? NULL : bring_slot(c, index, &spare);
		page = slot ? bring(c, index, slot, &spare) : NULL;
		if (page)
			page_get(page);
		*cuts = c->cuts;
		spin_unlock(&c->lock);
		if (!page && !outside)
			spare = slot && c->level > PT_PAGE ? pool_page(c, *slot) : store_page();
	} while (!page && !outside && spare);
	end_turn(c);
	if (spare)
		page_put(spare);
	if (beyond)
		*beyond = outside;
	return page;
}

/*
 * Drop a tree, and the promises in it. Returns how many pages it had, without its nodes. At most
 * HEIGHT_MAX calls deep.
 */
static u64 drop_tree(const struct contents *c, struct page *root, unsigned height)
{
	u64 pages = height == 0;

	if (root == PROMISED)
		pool_unreserve(pages_pool(c->level), 1);
	if (!is_page(root))
		return 0;
	for (unsigned i = 0; height > 0 && i < FANOUT; i++)
		pages += drop_tree(c, children(root)[i], height - 1);
	page_put(root);
	return pages;
}

void contents_init(struct contents *c, const void *source, u64 size)
{
	*c = (struct contents){
		.lock = SPINLOCK_INIT(LOCK_LEAF),
		.source = source,
		.source_size = size,
		.size = size,
	};
}

void contents_end(struct contents *c)
{
	count_pages(c, -drop_tree(c, c->root, c->height));
}

u64 contents_size(const struct contents *c)
{
	return atomic_load_relaxed(&c->size);
}

u64 contents_stored(struct contents *c)
{
	u64 bytes;

	spin_lock(&c->lock);
	bytes = MAX(c->pages * contents_page_bytes(c), c->source_size);
	spin_unlock(&c->lock);
	return bytes;
}

/* ---- reading ---- */

/*
 * The bytes of one page from `at` on, in the direct map, or NULL for zeros. *bytes is how many are
 * wanted, and receives how many of them there are before the end. *page receives the page, if there
 * is one. Caller holds the lock, or nobody uses the file any more.
 */
static const u8 *find(const struct contents *c, u64 at, u64 *bytes, struct page **page)
{
	*bytes = at < c->size ? MIN(*bytes, c->size - at) : 0;
	*page = *bytes > 0 ? look_up(c, at / contents_page_bytes(c)) : NULL;
	if (*page)
		return (const u8 *)page_address(*page) + at % contents_page_bytes(c);
	if (at >= c->source_size)
		return NULL;
	*bytes = MIN(*bytes, c->source_size - at);
	return c->source + at;
}

const void *contents_bytes(const struct contents *c, u64 at, u64 *bytes)
{
	struct page *page;

	*bytes = PAGE_SIZE - at % PAGE_SIZE;
	return find(c, at, bytes, &page);
}

/* Copy at most `bytes` of one page. Returns how many lie in the file, or -EFAULT. */
static s64 read_part(void *arg, struct span *to, u64 at, u64 bytes)
{
	struct contents *c = arg;
	struct page *page;
	const u8 *from;
	int err;

	spin_lock(&c->lock);
	from = find(c, at, &bytes, &page);
	if (page)
		page_get(page);
	spin_unlock(&c->lock);
	err = from ? span_write(to, from, bytes) : span_zero(to, bytes);
	if (page)
		page_put(page);
	return err ? err : (s64)bytes;
}

s64 contents_read(struct contents *c, struct span *to, u64 at)
{
	return span_each(to, at, read_part, c);
}

/* ---- writing ---- */

/*
 * After a copy into [at, at + bytes): count it as written, unless the file has lost pages since
 * `cuts` was noted.
 */
static bool publish(struct contents *c, u64 end, u32 cuts)
{
	bool same;

	spin_lock(&c->lock);
	same = c->cuts == cuts;
	if (same)
		c->written = MAX(c->written, end);
	if (same && end > c->size)
		atomic_store_relaxed(&c->size, end);
	spin_unlock(&c->lock);
	return same;
}

/*
 * After a copy that failed: the bytes beyond the end are zero again. Other CPUs that write there
 * now do so again.
 */
static void retract(struct contents *c, struct page *page, u64 at, u64 bytes)
{
	u64 keep;

	spin_lock(&c->lock);
	keep = c->size > at ? MIN(c->size - at, bytes) : 0;
	if (keep < bytes) {
		memset((u8 *)page_address(page) + at % PAGE_SIZE + keep, 0, bytes - keep);
		c->cuts++;
	}
	spin_unlock(&c->lock);
}

/* Write a part of one page. Returns its bytes, or an error. */
static s64 write_part(void *arg, struct span *from, u64 at, u64 bytes)
{
	struct contents *c = arg;
	const struct span again = *from;

	for (unsigned tries = 0;; tries++) {
		u32 cuts;
		struct page *page = get_page(c, at >> PAGE_SHIFT, &cuts, NULL);
		bool done;
		int err;

		if (!page)
			return -ENOSPC;
		err = span_read(from, (u8 *)page_address(page) + at % PAGE_SIZE, bytes);
		if (err)
			retract(c, page, at, bytes);
		page_put(page);
		if (err)
			return err;
		done = publish(c, at + bytes, cuts);
		if (done || tries == TRIES_MAX)
			return (s64)bytes;
		*from = again;
	}
}

s64 contents_write(struct contents *c, struct span *from, u64 at)
{
	if (from->total > 0 && at >= CONTENTS_MAX)
		return -EFBIG;
	from->total = MIN(from->total, CONTENTS_MAX - MIN(at, CONTENTS_MAX));
	return span_each(from, at, write_part, c);
}

/* Zero what the page at the end of the file has beyond it. Caller holds the lock. */
static void clear_tail(struct contents *c, u64 size)
{
	struct page *page = look_up(c, size >> PAGE_SHIFT);

	if (page)
		memset((u8 *)page_address(page) + size % PAGE_SIZE, 0,
		       PAGE_SIZE - size % PAGE_SIZE);
}

s64 contents_append(struct contents *c, struct span *from, u64 *at)
{
	const u64 bytes = from->total;
	u64 place;
	s64 done;

	spin_lock(&c->lock);
	place = c->size;
	if (bytes <= CONTENTS_MAX - place)
		atomic_store_relaxed(&c->size, place + bytes);
	spin_unlock(&c->lock);
	*at = place;
	if (bytes > CONTENTS_MAX - place)
		return -EFBIG;
	done = contents_write(c, from, place);
	if (done == (s64)bytes)
		return done;
	/* give the rest of the place back, as far as no other CPU has written behind it */
	spin_lock(&c->lock);
	if (c->size == place + bytes) {
		atomic_store_relaxed(&c->size, MAX(c->written, place));
		clear_tail(c, c->size);
		c->cuts++;
	}
	spin_unlock(&c->lock);
	return done;
}

int contents_add(struct contents *c, const void *from, u64 size)
{
	struct span span = span_of_kernel((void *)(uintptr_t)from, size);

	return contents_write(c, &span, c->size) == (s64)size ? 0 : -ENOMEM;
}

/* ---- size ---- */

/*
 * Take a tree of pages from index `first` on off the file. NULL if there is none. Caller holds the
 * lock.
 */
static struct page *take_off(struct contents *c, u64 first, unsigned *height)
{
	struct page **tree = &c->root;

	*height = c->height;
	if (first > 0 && !covers(c->height, first - 1))
		return NULL;
	while (first > 0 && *height > 0 && *tree) {
		struct page **child = children(*tree);
		unsigned i = slot_of(first - 1, (*height)--);

		tree = &child[i];
		while (++i < FANOUT)
			if (child[i])
				return use(&child[i]);
	}
	if (first > 0)
		return NULL;
	c->height = 0;
	return use(tree);
}

/*
 * Take pages beyond the new end off. NULL: none is left, and the caller sets the size in the same
 * turn at the lock. Until then, bytes that are cut off read as zeros, and none come back.
 */
static struct page *cut(struct contents *c, u64 size, unsigned *height)
{
	struct page *tree = take_off(c, DIV_ROUND_UP(size, contents_page_bytes(c)), height);

	c->source_size = MIN(c->source_size, size);
	if (tree)
		return tree;
	c->cuts++;
	c->written = MIN(c->written, size);
	if (c->level == PT_PAGE)
		clear_tail(c, size);
	return NULL;
}

int contents_resize(struct contents *c, u64 size)
{
	u64 dropped = 0;
	bool cuts = false;
	struct page *tree;
	unsigned height = 0;

	if (size > CONTENTS_MAX)
		return -EFBIG;
	begin_turn(c);
	do {
		spin_lock(&c->lock);
		count_pages(c, -dropped);
		cuts |= size < c->size;
		/* a file of huge pages may have some beyond its end */
		tree = cut(c, size, &height);
		if (!tree)
			atomic_store_relaxed(&c->size, size);
		spin_unlock(&c->lock);
		dropped = drop_tree(c, tree, height);
	} while (tree);
	end_turn(c);
	return cuts;
}

/*
 * The slot of the first page that exists from *index on, which moves there; NULL if there is none
 * below `end`, or after STEPS_MAX steps. Caller holds the lock.
 */
static struct page **find_from(struct contents *c, u64 *index, u64 end)
{
	enum { STEPS_MAX = 1000 };

	for (unsigned steps = 0; *index < end && steps < STEPS_MAX; steps++) {
		struct page **slot = &c->root;
		unsigned height = c->height;

		if (!covers(height, *index)) {
			*index = end;
			break;
		}
		for (; height > 0 && *slot; height--)
			slot = &children(*slot)[slot_of(*index, height)];
		if (is_page(*slot))
			return slot;
		*index = ((*index >> FANOUT_SHIFT * height) + 1) << FANOUT_SHIFT * height;
	}
	return NULL;
}

/* Free the pages from *index to `end`, which lies beyond those of the image, one turn at a time. */
static void drop_pages(struct contents *c, u64 *index, u64 end)
{
	struct page *dropped[DROP_AT_ONCE], **slot;
	unsigned count = 0;

	begin_turn(c);
	spin_lock(&c->lock);
	for (slot = find_from(c, index, end); slot; slot = find_from(c, index, end)) {
		dropped[count++] = *slot;
		*slot = NULL;
		++*index;
		if (count == DROP_AT_ONCE)
			break;
	}
	count_pages(c, -(u64)count);
	c->cuts++;
	spin_unlock(&c->lock);
	end_turn(c);
	while (count > 0)
		page_put(dropped[--count]);
}

/* Zero a part of one page. */
static int clear_part(struct contents *c, u64 at, u64 bytes)
{
	const u64 index = at / contents_page_bytes(c);
	struct page *page;
	u32 cuts;
	bool there;

	spin_lock(&c->lock);
	there = source_bytes(c, index) > 0 || look_up(c, index);
	spin_unlock(&c->lock);
	page = there ? get_page(c, index, &cuts, NULL) : NULL;
	if (!page)
		return there ? -ENOSPC : 0;
	memset((u8 *)page_address(page) + at % contents_page_bytes(c), 0, bytes);
	page_put(page);
	return 0;
}

int contents_punch(struct contents *c, u64 at, u64 size)
{
	const u64 end = size < CONTENTS_MAX - MIN(at, CONTENTS_MAX) ? at + size : CONTENTS_MAX;
	const u64 bytes = contents_page_bytes(c);
	u64 image;
	int err = 0;

	spin_lock(&c->lock);
	image = c->source_size; /* which only becomes less */
	spin_unlock(&c->lock);
	while (at < end && !err) {
		u64 index = at / bytes;
		const u64 part = MIN(end - at, bytes - at % bytes);

		if (part < bytes || at < image) {
			err = clear_part(c, at, part);
			at += part;
		} else {
			drop_pages(c, &index, end / bytes);
			at = index * bytes;
		}
		if (!err && thread_must_end(thread_current()))
			err = -EINTR;
	}
	return err;
}

void contents_extend(struct contents *c, u64 end)
{
	spin_lock(&c->lock);
	if (end > c->size)
		atomic_store_relaxed(&c->size, end);
	spin_unlock(&c->lock);
}

int contents_reserve(struct contents *c, u64 at, u64 size, enum contents_extend extend)
{
	const u64 bytes = contents_page_bytes(c);

	if (at > CONTENTS_MAX || size > CONTENTS_MAX - at)
		return -EFBIG;
	for (u64 index = at / bytes; index < DIV_ROUND_UP(at + size, bytes); index++) {
		u32 cuts;
		struct page *page = get_page(c, index, &cuts, NULL);

		if (!page)
			return -ENOSPC;
		page_put(page);
		if (thread_must_end(thread_current()))
			return -EINTR;
	}
	if (extend == CONTENTS_EXTEND)
		contents_extend(c, at + size);
	return 0;
}

/* Count the absent pages first, with the nodes above them, so that nothing fails afterwards. */
int contents_promise(struct contents *c, u64 at, u64 size, enum contents_extend extend)
{
	const u64 first = at / contents_page_bytes(c), end = (at + size) / contents_page_bytes(c);
	u64 absent = 0, index = first;
	struct pool_usage usage;
	bool counted = false;
	int err = 0;

	pool_usage(pages_pool(c->level), &usage);
	if (saturating_sub(end - first, usage.pages) > usage.overcommit)
		return -ENOMEM; /* also the pages that are there are the pool's */
	begin_turn(c);
	while (index < end && !err) {
		struct page *spare = NULL, **slot;

		do {
			spin_lock(&c->lock);
			slot = bring_slot(c, index, &spare);
			absent += slot && !*slot;
			if (slot && !*slot && counted)
				*slot = PROMISED;
			spin_unlock(&c->lock);
			spare = slot ? NULL : store_page();
		} while (spare);
		err = slot ? 0 : -ENOMEM;
		if (++index == end && !err && !counted) {
			err = pool_reserve(pages_pool(c->level), absent);
			index = first;
			counted = true;
		}
	}
	if (!err && extend == CONTENTS_EXTEND)
		contents_extend(c, at + size);
	end_turn(c);
	return err;
}

struct page *contents_page(struct contents *c, u64 index, int *err)
{
	bool beyond = false;
	u32 cuts;
	struct page *page =
		get_page(c, (index << PAGE_SHIFT) / contents_page_bytes(c), &cuts, &beyond);

	if (!page)
		*err = beyond ? -ENXIO : -ENOMEM;
	return page;
}

int contents_copy(struct contents *c, u64 at, void *to, u64 bytes)
{
	struct span span = span_of_kernel(to, bytes);
	const s64 done = at < contents_size(c) ? contents_read(c, &span, at) : -ENXIO;

	if (done >= 0)
		memset((u8 *)to + done, 0, bytes - (u64)done);
	return (int)MIN(done, 0);
}
