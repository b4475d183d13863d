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

/* BUSY stands in the tree. Wait until no thread works in the range. */
static void wait_unpinned(u64 start, u64 end)
{
	struct wait wait = wait_begin(WAIT_TOUCH, "the end of a touch in memory being changed");
	cpu_t cpu;

	wait.soft = true; /* a touch lasts as long as clearing a huge page takes */
	fence_full();
	cpumask_foreach(cpu, &cpus_online) {
		const struct thread *thread = thread_on(cpu);

		while (thread && pin_overlaps(atomic_load_acquire(&thread->pin), start, end))
			wait_spin(&wait, cpu);
	}
}

/* Wait, holding nothing, until no busy area lies at `addr`. */
static void wait_settled(struct areas *areas, u64 addr)
{
	struct wait wait = wait_begin(WAIT_TOUCH, "a call that changes memory of the program");
	struct area area;

	wait.soft = true;
	while (area_tree_from(&areas->tree, addr, &area) && area.start <= addr &&
	       (area.flags & AREA_BUSY))
		wait_spin(&wait, CPU_NONE);
}

bool areas_pin(struct areas *areas, struct thread *self, u64 addr, enum pt_level level,
	       struct area *area)
{
	for (;;) {
		pin_page(self, addr, level);
		if (!area_tree_from(&areas->tree, addr, area) || area->start > addr) {
			pin_drop(self);
			return false;
		}
		if (!(area->flags & AREA_BUSY))
			return true;
		pin_drop(self);
		wait_settled(areas, addr);
	}
}

/* ---- steps under the lock ---- */

/* Take the lock, with nodes for that many insertions. Returns 0, or -ENOMEM without the lock. */
static int lock_ready(struct areas *areas, unsigned insertions)
{
	for (;;) {
		struct page *page;

		spin_lock(&areas->lock);
		if (area_tree_short(&areas->tree, insertions) == 0)
			return 0;
		spin_unlock(&areas->lock);
		page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
		if (!page)
			return -ENOMEM;
		spin_lock(&areas->lock);
		area_tree_give_node(&areas->tree, page_address(page));
		spin_unlock(&areas->lock);
	}
}

/* May the two be one area? */
static bool alike(const struct area *low, const struct area *high)
{
	return low->end == high->start && !low->file && !high->file && low->flags == high->flags &&
	       !(low->flags & AREA_BUSY) && low->rights == high->rights &&
	       low->policy.how == high->policy.how && low->policy.nodes == high->policy.nodes;
}

/* Join the area that begins at `start` with its neighbours where they are alike. */
static void join(struct areas *areas, u64 start)
{
	struct area area, other;

	if (!area_tree_own_from(&areas->tree, start, &area))
		return;
	if (area_tree_own_from(&areas->tree, area.end, &other) && alike(&area, &other)) {
		area_tree_remove(&areas->tree, other.start);
		area.end = other.end;
		area_tree_replace(&areas->tree, area.start, &area);
	}
	if (area_tree_own_below(&areas->tree, area.start, &other) && alike(&other, &area)) {
		area_tree_remove(&areas->tree, area.start);
		other.end = area.end;
		area_tree_replace(&areas->tree, other.start, &other);
	}
}

/* Cut the area in two at `at`, which lies inside it. */
static void cut(struct areas *areas, const struct area *area, u64 at)
{
	struct area low = *area, high = *area;

	low.end = high.start = at;
	high.offset += at - area->start;
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

/* The highest free range of that size below areas->top; 0: there is none. */
static u64 find_room(struct areas *areas, u64 size, u64 align)
{
	const u64 enough = size + align - PAGE_SIZE; /* has room wherever it begins */
	const bool known = size >= areas->full_size;
	u64 top = known ? areas->full_top : areas->top;

	for (;;) {
		struct area below = {.end = USER_START};
		const bool any = area_tree_own_below(&areas->tree, top, &below);
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
	area_tree_insert(&areas->tree, area);
	join(areas, area->start);
	area_tree_changed(&areas->tree);
	atomic_store_relaxed(&areas->bytes, areas->bytes + (area->end - area->start));
}

/* One insertion, and what a claim takes: a program without memory can still unmap. */
enum { READY_TO_INSERT = 4 };

s64 areas_place(struct areas *areas, const struct area *area, u64 align)
{
	const u64 size = area->end - area->start;
	struct area placed = *area;
	const int err = lock_ready(areas, READY_TO_INSERT);

	if (err < 0)
		return err;
	if (areas->tree.count >= AREA_TREE_COUNT_MAX)
		placed.start = 0;
	else if (area->start < USER_START || area->end > USER_END || area->end <= area->start ||
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
	int err = lock_ready(areas, READY_TO_INSERT);

	if (err < 0)
		return err;
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
 * One step of a claim, lock held: `area` is removed, and own->end, to which the claim has come, is
 * its end; or it is cut at a border of the range. Returns the file of a removed area, or NULL.
 */
static struct file *claim_area(struct areas *areas, const struct area *area, struct area *own,
			       u64 end, struct hull *hull)
{
	if (area->start < own->end) {
		cut(areas, area, own->end);
		return NULL;
	}
	if (area->end > end) {
		cut(areas, area, end);
		return NULL;
	}
	area_tree_remove(&areas->tree, area->start);
	atomic_store_relaxed(&areas->bytes, areas->bytes - (area->end - area->start));
	count_promises(hull, area);
	own->end = area->end;
	return area->file;
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
	int err;

	*hull = (struct hull){.start = start};
	for (;;) {
		struct area area;
		struct file *file = NULL;
		const bool placed = own.end > own.start;
		bool more, last;

		err = lock_ready(areas, 3); /* two, and the one to settle */
		if (err < 0)
			break;
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
		if (file)
			file_put(file);
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
	area_tree_insert(&areas->tree, area);
	join(areas, area->start);
	area_tree_changed(&areas->tree);
	note_free(areas, hull->end);
	atomic_store_relaxed(&areas->bytes, areas->bytes + (area->end - area->start));
	spin_unlock(&areas->lock);
}

/* ---- changing areas ---- */

int areas_take(struct areas *areas, u64 *at, u64 end, struct area *area)
{
	/* an area that was put back may have grown beyond `end`, by joining its neighbour */
	while (*at < end) {
		const int err = lock_ready(areas, 2);
		struct area busy;

		if (err < 0)
			return err;
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
		busy = *area;
		busy.flags |= AREA_BUSY;
		area_tree_replace(&areas->tree, area->start, &busy);
		area_tree_changed(&areas->tree);
		spin_unlock(&areas->lock);
		*at = area->end;
		wait_unpinned(area->start, area->end);
		return 1;
	}
	return 0;
}

void areas_put_back(struct areas *areas, const struct area *area)
{
	spin_lock(&areas->lock);
	area_tree_change(&areas->tree);
	area_tree_replace(&areas->tree, area->start, area);
	join(areas, area->start);
	area_tree_changed(&areas->tree);
	spin_unlock(&areas->lock);
}

int areas_claim_taken(struct areas *areas, const struct area *area, struct hull *hull)
{
	struct area own = {.start = area->start, .end = area->start, .flags = AREA_BUSY};
	const int err = lock_ready(areas, 3);

	*hull = (struct hull){.start = area->start, .end = area->start};
	if (err < 0)
		return err;
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
