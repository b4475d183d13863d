/* The areas of a program: see areas.h. */
#include "kernel/program/areas.h"

#include <arch/atomic.h>
#include <arch/barrier.h>

#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/wait.h"
#include "kernel/lib/cpumask.h"
#include "kernel/program/file.h"
#include "kernel/program/thread.h"
#include "mm/mm.h"

void areas_init(struct areas *areas, u64 top)
{
	*areas = (struct areas){
		.lock = SPINLOCK_INIT(LOCK_LEAF), .top = top, .full_top = top, .full_size = ~0ULL};
}

u64 area_page_bytes(const struct area *area)
{
	return area->flags & AREA_POOL_1G   ? GIB(1)
	       : area->flags & AREA_POOL_2M ? MIB(2)
					    : PAGE_SIZE;
}

static void count_promises(struct hull *hull, const struct area *area)
{
	const u64 pages = (area->end - area->start) / area_page_bytes(area);

	if (area->flags & AREA_NO_RESERVE)
		return;
	hull->promised[PT_PMD] += area->flags & AREA_POOL_2M ? pages : 0;
	hull->promised[PT_PUD] += area->flags & AREA_POOL_1G ? pages : 0;
}

void areas_forget(struct areas *areas, struct hull *hull)
{
	struct area area;

	*hull = (struct hull){.end = ALIGN_UP(USER_END, GIB(512))};
	while (area_tree_own_from(&areas->tree, 0, &area)) {
		area_tree_change(&areas->tree);
		area_tree_remove(&areas->tree, area.start);
		area_tree_changed(&areas->tree);
		count_promises(hull, &area);
		if (area.file)
			file_put(area.file);
	}
}

void areas_free(struct areas *areas)
{
	void *node;

	ASSERT(areas->tree.count == 0, "%llu areas of a program that has ended", areas->tree.count);
	for (node = area_tree_take_node(&areas->tree); node;
	     node = area_tree_take_node(&areas->tree))
		page_free(pfn_to_page(virt_to_phys(node) >> PAGE_SHIFT));
}

u8 area_rights_for(enum user_access access)
{
	switch (access) {
	case USER_WRITE:
		return USER_RIGHT_WRITE;
	case USER_EXEC:
		return USER_RIGHT_EXEC;
	case USER_READ:
		break;
	}
	/* x86 has no entry that can be written or executed and not read */
	return USER_RIGHT_READ | USER_RIGHT_WRITE | USER_RIGHT_EXEC;
}

/* ---- pins ---- */

static u64 pin_of(u64 addr, enum pt_level level)
{
	return ALIGN_DOWN(addr, pt_level_size(level)) | (level + 1);
}

static bool pin_overlaps(u64 pin, u64 start, u64 end)
{
	const u64 at = ALIGN_DOWN(pin, PAGE_SIZE);

	return pin != 0 && at < end && at + pt_level_size(pin % PAGE_SIZE - 1) > start;
}

void pin_page(struct thread *self, u64 addr, enum pt_level level)
{
	atomic_store_relaxed(&self->pin, pin_of(addr, level));
	fence_full(); /* pairs with wait_unpinned() */
}

void pin_drop(struct thread *self)
{
	atomic_store_release(&self->pin, 0);
}

static void wait_for_pin(const struct thread *thread, u64 start, u64 end)
{
	struct wait wait = wait_begin(WAIT_TOUCH, "the end of a touch in memory being changed");

	while (pin_overlaps(atomic_load_acquire(&thread->pin), start, end))
		wait_spin(&wait, thread->cpu);
}

/* BUSY stands in the tree. Wait until no thread works in the range. */
static void wait_unpinned(u64 start, u64 end)
{
	cpu_t cpu;

	fence_full();
	cpumask_foreach(cpu, &cpus_online) {
		const struct thread *thread = thread_on(cpu);

		if (thread && pin_overlaps(atomic_load_acquire(&thread->pin), start, end))
			wait_for_pin(thread, start, end);
	}
}

/* Wait, holding nothing, until no busy area lies at `addr`. */
static void wait_settled(struct areas *areas, u64 addr)
{
	struct wait wait = wait_begin(WAIT_TOUCH, "a call that changes memory of the program");
	struct area area;

	while (area_tree_from(&areas->tree, addr, &area) && area.start <= addr &&
	       (area.flags & AREA_BUSY))
		wait_spin(&wait, CPU_NONE);
}

bool areas_pin(struct areas *areas, struct thread *self, u64 addr, enum pt_level level,
	       struct area *area)
{
	for (;;) {
		pin_page(self, addr, level);
		if (!area_tree_from_again(&areas->tree, addr, &self->found, area) ||
		    area->start > addr) {
			pin_drop(self);
			return false;
		}
		if (!(area->flags & AREA_BUSY))
			return true;
		pin_drop(self);
		wait_settled(areas, addr);
	}
}

bool areas_try_pin(struct areas *areas, struct thread *self, u64 addr, struct area *area)
{
	pin_page(self, addr, PT_PAGE);
	if (area_tree_from_again(&areas->tree, addr, &self->found, area) && area->start <= addr &&
	    !(area->flags & AREA_BUSY))
		return true;
	pin_drop(self);
	return false;
}

/* ---- steps under the lock ---- */

/* Take the lock, with nodes for that many insertions. False, without the lock: no memory. */
static bool take_lock_ready(struct areas *areas, unsigned insertions)
{
	for (;;) {
		struct page *page;

		spin_lock(&areas->lock);
		if (area_tree_short(&areas->tree, insertions) == 0) {
			__counts_as(&areas->lock, -1); /* lock_ready() counts it */
			return true;
		}
		spin_unlock(&areas->lock);
		page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
		if (!page)
			return false;
		spin_lock(&areas->lock);
		area_tree_give_node(&areas->tree, page_address(page));
		spin_unlock(&areas->lock);
	}
}
#define lock_ready(areas, insertions)                                                              \
	__acquires_if(&(areas)->lock, take_lock_ready(areas, insertions))

/* May the two be one area? */
static bool alike(const struct area *low, const struct area *high)
{
	return low->end == high->start && low->flags == high->flags && !(low->flags & AREA_BUSY) &&
	       low->rights == high->rights && low->policy.how == high->policy.how &&
	       low->policy.nodes == high->policy.nodes && low->file == high->file &&
	       (!low->file || low->offset + (low->end - low->start) == high->offset);
}

/* Two areas have become one, which needs one reference to their file. */
static void drop_reference(const struct area *joined)
{
	if (joined->file)
		file_put(joined->file); /* not the last */
}

/* Take the neighbour above out of the tree, if `area` can have its range, too. */
static void take_above(struct areas *areas, struct area *area)
{
	struct area above;

	if (!area_tree_own_from(&areas->tree, area->end, &above) || !alike(area, &above))
		return;
	area_tree_remove(&areas->tree, above.start);
	area->end = above.end;
	drop_reference(&above);
}

static bool find_alike_below(const struct areas *areas, const struct area *area, struct area *below)
{
	return area_tree_own_below(&areas->tree, area->start, below) && alike(below, area);
}

/* The neighbour below gets the range of `area`, which is not in the tree. */
static void extend_below(struct areas *areas, struct area *below, const struct area *area)
{
	below->end = area->end;
	area_tree_replace(&areas->tree, below->start, below);
	drop_reference(area);
}

/* Put an area into the tree, joined with its neighbours where they are alike. */
static void insert_joined(struct areas *areas, const struct area *area)
{
	struct area whole = *area, below;

	take_above(areas, &whole);
	if (find_alike_below(areas, &whole, &below))
		extend_below(areas, &below, &whole);
	else
		area_tree_insert(&areas->tree, &whole);
}

/*
 * Give an area of the tree other attributes and join it with its neighbours where they are alike.
 * Takes no node.
 */
static void replace_joined(struct areas *areas, const struct area *area)
{
	struct area whole = *area, below;

	take_above(areas, &whole);
	if (find_alike_below(areas, &whole, &below)) {
		area_tree_remove(&areas->tree, whole.start);
		extend_below(areas, &below, &whole);
	} else {
		area_tree_replace(&areas->tree, whole.start, &whole);
	}
}

/* The part of an area that begins at `at`; it needs a reference of its own. */
static struct area part_from(const struct area *area, u64 at)
{
	struct area part = *area;

	part.offset += at - area->start;
	part.start = at;
	return part;
}

/* Cut the area in two at `at`, which lies inside it. */
static void cut(struct areas *areas, const struct area *area, u64 at)
{
	struct area low = *area;
	const struct area high = part_from(area, at);

	low.end = at;
	if (high.file)
		file_get(high.file);
	area_tree_replace(&areas->tree, area->start, &low);
	area_tree_insert(&areas->tree, &high);
}

/* Would a cut of the area at the borders of [start, end) cut one of its pages? */
static bool cuts_page(const struct area *area, u64 start, u64 end)
{
	const u64 bytes = area_page_bytes(area);

	return (area->start < start && !IS_ALIGNED(start, bytes)) ||
	       (area->end > end && !IS_ALIGNED(end, bytes));
}

/* ---- making areas ---- */

static bool is_free(const struct areas *areas, u64 start, u64 end)
{
	struct area area;

	return !area_tree_own_from(&areas->tree, start, &area) || area.start >= end;
}

/* The highest area that begins below `top`. The hole is in the way of other areas as an area is. */
static bool find_below(const struct areas *areas, u64 top, struct area *below)
{
	const bool any = area_tree_own_below(&areas->tree, top, below);

	if (top <= USER_HOLE_START || (any && below->start > USER_HOLE_START))
		return any;
	*below = (struct area){.start = USER_HOLE_START, .end = USER_HOLE_END};
	return true;
}

/* The highest free range of that size below areas->top; 0: there is none. */
static u64 find_room(struct areas *areas, u64 size, u64 align)
{
	const u64 enough = size + align - PAGE_SIZE; /* has room wherever it begins */
	const bool known = size >= areas->full_size;
	u64 top = known ? areas->full_top : areas->top;

	for (;;) {
		struct area below = {.end = USER_START};
		const bool any = find_below(areas, top, &below);
		const u64 bottom = MAX(below.end, USER_START);

		if (top >= size && top > bottom) {
			const u64 start = ALIGN_DOWN(top - size, align);

			if (start >= bottom && start + size <= top) {
				if (!known || enough <= areas->full_size) {
					areas->full_top = top;
					areas->full_size = enough;
				}
				return start;
			}
		}
		if (!any || below.start <= USER_START)
			return 0;
		top = MIN(top, below.start);
	}
}

/* Space up to `end` has become free, and joins what is free above it. */
static void note_free(struct areas *areas, u64 end)
{
	struct area above = {.start = areas->top};

	if (end <= areas->full_top)
		return;
	area_tree_own_from(&areas->tree, end, &above);
	areas->full_top = MIN(MAX(above.start, end), areas->top);
}

/* Insert an area into a free range, lock held. */
static void insert(struct areas *areas, const struct area *area)
{
	area_tree_change(&areas->tree);
	insert_joined(areas, area);
	area_tree_changed(&areas->tree);
	atomic_store_relaxed(&areas->bytes, areas->bytes + (area->end - area->start));
}

/*
 * One insertion, and what claims take: a program without memory can still unmap some 2,000 parts in
 * a row. Each makes an area more, and a node has room for 101.
 */
enum { READY_TO_INSERT = 12 };

s64 areas_place(struct areas *areas, const struct area *area, u64 align)
{
	const u64 size = area->end - area->start;
	struct area placed = *area;

	if (!lock_ready(areas, READY_TO_INSERT))
		return -ENOMEM;
	if (areas->tree.count >= AREA_TREE_COUNT_MAX)
		placed.start = 0;
	else if (!area_is_possible(area->start, area->end) ||
		 !is_free(areas, area->start, area->end))
		placed.start = find_room(areas, size, align);
	if (placed.start != 0) {
		placed.end = placed.start + size;
		insert(areas, &placed);
	}
	spin_unlock(&areas->lock);
	return placed.start != 0 ? (s64)placed.start : -ENOMEM;
}

int areas_add(struct areas *areas, const struct area *area)
{
	int err = 0;

	if (!area_is_possible(area->start, area->end) || !lock_ready(areas, READY_TO_INSERT))
		return -ENOMEM;
	if (areas->tree.count >= AREA_TREE_COUNT_MAX || !is_free(areas, area->start, area->end))
		err = -EEXIST;
	else
		insert(areas, area);
	spin_unlock(&areas->lock);
	return err;
}

/* ---- claims ---- */

/*
 * The lowest address down to which a page table that serves `start` serves nobody else. `bottom` is
 * the end of the area below.
 */
static u64 hull_start(u64 start, u64 bottom)
{
	for (enum pt_level level = PT_PGD; level > PT_PAGE; level--) {
		const u64 low = ALIGN_DOWN(start, pt_level_size(level));

		if (low >= bottom)
			return low;
	}
	return start;
}

static u64 hull_end(u64 end, u64 top)
{
	for (enum pt_level level = PT_PGD; level > PT_PAGE; level--) {
		const u64 high = ALIGN_UP(end, pt_level_size(level));

		if (high <= top)
			return high;
	}
	return end;
}

/* The free space around [start, end). */
static struct hull space_around(const struct areas *areas, u64 start, u64 end)
{
	struct area below = {.end = 0}, above = {.start = ALIGN_UP(USER_END, GIB(512))};

	area_tree_own_below(&areas->tree, start, &below);
	area_tree_own_from(&areas->tree, end, &above);
	return (struct hull){.start = hull_start(start, MIN(below.end, start)),
			     .end = hull_end(end, MAX(above.start, end))};
}

/* The claim's own area. It may be settled, which takes one insertion that must not fail. */
static void begin_claim(struct areas *areas, const struct area *own)
{
	area_tree_insert(&areas->tree, own);
	areas->tree.promised++;
}

/*
 * One step of a claim, lock held: what `area` has of [own->end, end) is taken from it. own->end, to
 * which the claim has come, becomes the end of that. Returns the file of an area of which nothing
 * is left, or NULL.
 */
static struct file *claim_area(struct areas *areas, const struct area *area, struct area *own,
			       u64 end, struct hull *hull)
{
	struct area low = *area, taken = part_from(area, MAX(area->start, own->end));
	const bool has_low = area->start < taken.start;
	const bool has_high = area->end > end;

	taken.end = MIN(area->end, end);
	low.end = taken.start;
	if (has_low)
		area_tree_replace(&areas->tree, low.start, &low);
	else
		area_tree_remove(&areas->tree, area->start);
	if (has_high) {
		const struct area high = part_from(area, end);

		area_tree_insert(&areas->tree, &high);
	}
	if (has_low && has_high && area->file)
		file_get(area->file);
	atomic_store_relaxed(&areas->bytes, areas->bytes - (taken.end - taken.start));
	count_promises(hull, &taken);
	own->end = taken.end;
	return has_low || has_high ? NULL : area->file;
}

/* Between steps, the claim stands in the tree as far as it has come. */
static void claim_part(struct areas *areas, const struct area *own, bool placed)
{
	if (placed)
		area_tree_replace(&areas->tree, own->start, own);
	else if (own->end > own->start)
		begin_claim(areas, own);
}

/* The last step: the claim extends over the whole range and the space around it. */
static void claim_space(struct areas *areas, struct area *own, u64 end, bool placed)
{
	const struct hull hull = space_around(areas, own->start, end);

	if (placed) {
		area_tree_remove(&areas->tree, own->start);
		areas->tree.promised--;
	}
	own->start = hull.start;
	own->end = hull.end;
	begin_claim(areas, own);
}

/*
 * Area after area is removed, and the busy one grows over them, so that the addresses are never
 * free in between.
 */
int areas_claim(struct areas *areas, u64 start, u64 end, enum areas_claim how, struct hull *hull)
{
	struct area own = {.start = start, .end = start, .flags = AREA_BUSY};
	int err = 0;

	*hull = (struct hull){.start = start, .end = start};
	if (!area_is_possible(start, end))
		return -ENOMEM;
	for (;;) {
		struct area area;
		struct file *file = NULL;
		const bool placed = own.end > own.start;
		bool more, last;

		if (!lock_ready(areas, 3)) { /* two, and the one to settle */
			err = -ENOMEM;
			break;
		}
		more = area_tree_own_from(&areas->tree, own.end, &area) && area.start < end;
		if (more && (area.flags & AREA_BUSY)) {
			spin_unlock(&areas->lock);
			wait_settled(areas, MAX(area.start, own.end));
			continue;
		}
		if (more && how == AREAS_MUST_BE_FREE) {
			spin_unlock(&areas->lock);
			err = -EEXIST;
			break;
		}
		if (more && cuts_page(&area, own.end, end)) {
			spin_unlock(&areas->lock);
			err = -EINVAL;
			break;
		}
		area_tree_change(&areas->tree);
		if (more)
			file = claim_area(areas, &area, &own, end, hull);
		last = !more || own.end >= end;
		if (last)
			claim_space(areas, &own, end, placed);
		else
			claim_part(areas, &own, placed);
		area_tree_changed(&areas->tree);
		spin_unlock(&areas->lock);
		if (file) {
			wait_unpinned(own.start, own.end); /* a touch may be reading it */
			file_put(file);
		}
		if (last)
			break;
	}
	hull->start = own.start;
	hull->end = own.end;
	wait_unpinned(own.start, own.end);
	return err;
}

void areas_release(struct areas *areas, const struct hull *hull)
{
	spin_lock(&areas->lock);
	area_tree_change(&areas->tree);
	area_tree_remove(&areas->tree, hull->start);
	area_tree_changed(&areas->tree);
	areas->tree.promised--;
	note_free(areas, hull->end);
	spin_unlock(&areas->lock);
}

void areas_settle(struct areas *areas, const struct hull *hull, const struct area *area)
{
	spin_lock(&areas->lock);
	area_tree_change(&areas->tree);
	area_tree_remove(&areas->tree, hull->start);
	areas->tree.promised--;
	insert_joined(areas, area);
	area_tree_changed(&areas->tree);
	note_free(areas, hull->end);
	atomic_store_relaxed(&areas->bytes, areas->bytes + (area->end - area->start));
	spin_unlock(&areas->lock);
}

/* ---- changing areas ---- */

/* Between area_tree_change() and area_tree_changed(). The copy stays as it is. */
static void set_busy(struct areas *areas, const struct area *area)
{
	struct area busy = *area;

	busy.flags |= AREA_BUSY;
	area_tree_replace(&areas->tree, area->start, &busy);
}

int areas_take(struct areas *areas, u64 *at, u64 end, struct area *area)
{
	/* an area that was put back may have grown beyond `end`, by joining its neighbour */
	while (*at < end) {
		if (!lock_ready(areas, 2))
			return -ENOMEM;
		if (!area_tree_own_from(&areas->tree, *at, area) || area->start >= end) {
			spin_unlock(&areas->lock);
			return 0;
		}
		if (area->flags & AREA_BUSY) {
			spin_unlock(&areas->lock);
			wait_settled(areas, MAX(area->start, *at));
			continue;
		}
		if (cuts_page(area, *at, end)) {
			spin_unlock(&areas->lock);
			return -EINVAL;
		}
		if ((area->start < *at || area->end > end) &&
		    areas->tree.count >= AREA_TREE_COUNT_MAX) {
			spin_unlock(&areas->lock);
			return -ENOMEM;
		}
		area_tree_change(&areas->tree);
		if (area->start < *at) {
			cut(areas, area, *at);
			area_tree_own_from(&areas->tree, *at, area);
		}
		if (area->end > end) {
			cut(areas, area, end);
			area->end = end;
		}
		set_busy(areas, area);
		area_tree_changed(&areas->tree);
		spin_unlock(&areas->lock);
		*at = area->end;
		wait_unpinned(area->start, area->end);
		return 1;
	}
	return 0;
}

static bool is_pinned(u64 start, u64 end)
{
	cpu_t cpu;

	fence_full();
	cpumask_foreach(cpu, &cpus_online) {
		const struct thread *thread = thread_on(cpu);

		if (thread && pin_overlaps(atomic_load_acquire(&thread->pin), start, end))
			return true;
	}
	return false;
}

bool areas_try_take(struct areas *areas, u64 start, u64 end, struct area *area)
{
	bool found;

	spin_lock(&areas->lock);
	found = area_tree_own_from(&areas->tree, start, area) && area->start <= start &&
		area->end >= end && !(area->flags & AREA_BUSY);
	if (found) {
		area_tree_change(&areas->tree);
		set_busy(areas, area);
		area_tree_changed(&areas->tree);
	}
	spin_unlock(&areas->lock);
	if (found && is_pinned(start, end)) {
		areas_put_back(areas, area);
		return false;
	}
	return found;
}

void areas_put_back(struct areas *areas, const struct area *area)
{
	spin_lock(&areas->lock);
	area_tree_change(&areas->tree);
	replace_joined(areas, area);
	area_tree_changed(&areas->tree);
	spin_unlock(&areas->lock);
}

int areas_claim_taken(struct areas *areas, const struct area *area, struct hull *hull)
{
	struct area own = {.start = area->start, .end = area->start, .flags = AREA_BUSY};

	*hull = (struct hull){.start = area->start, .end = area->start};
	if (!take_lock_ready(areas, 3))
		return -ENOMEM;
	__counts_as(&areas->lock, 1); /* sparse does not follow lock_ready() here */
	area_tree_change(&areas->tree);
	area_tree_remove(&areas->tree, area->start);
	atomic_store_relaxed(&areas->bytes, areas->bytes - (area->end - area->start));
	claim_space(areas, &own, area->end, false);
	area_tree_changed(&areas->tree);
	spin_unlock(&areas->lock);
	hull->start = own.start;
	hull->end = own.end;
	wait_unpinned(own.start, own.end);
	return 0;
}

bool areas_cover(const struct areas *areas, u64 start, u64 end)
{
	struct area area;

	while (start < end) {
		if (!area_tree_from(&areas->tree, start, &area) || area.start > start)
			return false;
		start = area.end;
	}
	return true;
}
