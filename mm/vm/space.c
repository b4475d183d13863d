/* Spaces and their areas: see space.h. */
#include "mm/vm/space.h"

#include <arch/atomic.h>
#include <arch/barrier.h>

#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/reason_set.h"
#include "kernel/core/wait.h"
#include "kernel/lib/cpumask.h"
#include "mm/memmap/page.h"
#include "mm/memmap/zone.h"
#include "mm/mm.h"
#include "mm/page/page_alloc.h"

static struct page *page_of(const void *address)
{
	return pfn_to_page(virt_to_phys(address) >> PAGE_SHIFT);
}

/* The root table's entries that the space has. */
static u64 root_start(const struct space *space)
{
	return ALIGN_DOWN(space->range.start, GIB(512));
}

static u64 root_end(const struct space *space)
{
	return ALIGN_UP(space->range.end, GIB(512));
}

/* As many as the first area of a space of the kernel needs (ready_to_insert()). */
enum { NODES_AT_BOOT = 8 };

static u64 cpus_bytes(void)
{
	return ALIGN_UP(cpu_count * sizeof(struct space_cpu), PAGE_SIZE);
}

u64 space_boot_bytes(void)
{
	return cpus_bytes() + NODES_AT_BOOT * PAGE_SIZE;
}

static void *alloc_cpus(void)
{
	struct page *page =
		page_alloc(page_order_for(cpus_bytes()), USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);

	return page ? page_address(page) : NULL;
}

static void give_boot_nodes(struct space *space)
{
	for (unsigned i = 0; i < NODES_AT_BOOT; i++)
		area_tree_give_node(&space->tree, space->boot_nodes + i * PAGE_SIZE);
}

static bool is_boot_node(const struct space *space, const void *node)
{
	return (u64)((const char *)node - space->boot_nodes) < NODES_AT_BOOT * PAGE_SIZE;
}

int space_init(struct space *space, void *memory)
{
	space->cpu = memory ? memory : alloc_cpus();
	if (!space->cpu)
		return -ENOMEM;
	space->root = phys_to_virt(pgtable_root() << PAGE_SHIFT);
	space->lock = SPINLOCK_INIT(LOCK_LEAF);
	space->tree = (struct area_tree){.root = NULL};
	space->bytes = space->resident_most = 0;
	space->next = space->range.start;
	space->full_top = space->user ? space->range.top : ~0ULL;
	space->full_size = ~0ULL;
	space->boot_nodes = memory ? (char *)memory + cpus_bytes() : NULL;
	if (memory)
		give_boot_nodes(space);
	return 0;
}

u64 area_page_bytes(const struct area *area)
{
	return area->flags & AREA_WHOLE ? pt_level_size(area->level) : PAGE_SIZE;
}

u64 area_promised(const struct area *area)
{
	const u64 size = pt_level_size(area->level);
	u64 bytes = area->end - area->start;

	if (!area_is_promised(area))
		return 0;
	if (area->object && !area_has_contents(area)) { /* none for addresses beyond its end */
		const u64 all = atomic_load_relaxed(&area->object->bytes);

		bytes = MIN(bytes, all - MIN(all, area->offset));
	}
	return (ALIGN_UP(area->start + bytes, size) - ALIGN_UP(area->start, size)) / size;
}

static void count_promises(struct hull *hull, const struct area *area)
{
	hull->promised[area->level] += area_promised(area);
}

void space_forget(struct space *space, struct hull *hull)
{
	struct area area;

	*hull = (struct hull){.start = root_start(space), .end = root_end(space)};
	while (area_tree_own_from(&space->tree, 0, &area)) {
		area_tree_change(&space->tree);
		area_tree_remove(&space->tree, area.start);
		area_tree_changed(&space->tree);
		count_promises(hull, &area);
		vm_object_put(area.object);
	}
}

void space_free(struct space *space)
{
	void *node;

	ASSERT(space->tree.count == 0, "%llu areas are left in a space", space->tree.count);
	for (node = area_tree_take_node(&space->tree); node;
	     node = area_tree_take_node(&space->tree))
		page_free(page_of(node));
	page_free(page_of(space->cpu));
	space->cpu = NULL;
}

/* ---- pins ---- */

static bool pin_overlaps(u64 pin, u64 start, u64 end)
{
	const u64 at = ALIGN_DOWN(pin, PAGE_SIZE);

	return pin != 0 && at < end && at + pt_level_size(pin % PAGE_SIZE - 1) > start;
}

static void wait_for_pin(const struct space *space, cpu_t cpu, u64 start, u64 end)
{
	struct wait wait = wait_begin(WAIT_TOUCH, "the end of a touch in memory being changed");

	while (pin_overlaps(atomic_load_acquire(&space->cpu[cpu].pin), start, end))
		wait_spin(&wait, cpu);
}

/* BUSY stands in the tree. Wait until no CPU works in the range. */
static void wait_unpinned(const struct space *space, u64 start, u64 end)
{
	cpu_t cpu;

	fence_full();
	cpumask_foreach(cpu, &cpus_online)
		if (pin_overlaps(atomic_load_acquire(&space->cpu[cpu].pin), start, end))
			wait_for_pin(space, cpu, start, end);
}

/* No area has address 0: this pin keeps nodes (take_extra_nodes()) and makes no call wait. */
bool space_next(struct space *space, u64 addr, struct area *area)
{
	u64 *pin = &space_here(space)->pin;
	const u64 before = *pin;
	bool found;

	space_pin_only(space, 0, PT_PAGE);
	found = area_tree_from(&space->tree, addr, area);
	atomic_store_release(pin, before);
	return found;
}

bool space_look(struct space *space, u64 addr, struct area *area)
{
	return space_next(space, addr, area) && area->start <= addr;
}

void space_wait_settled(struct space *space, u64 addr)
{
	struct wait wait = wait_begin(WAIT_TOUCH, "a call that changes memory of a space");
	struct area area;

	while (space_look(space, addr, &area) && (area.flags & AREA_BUSY))
		wait_spin(&wait, CPU_NONE);
}

/* 1: the area of the page is pinned; without a pin, 0: there is none, -EBUSY: it is busy. */
static int try_pin(struct space *space, u64 addr, enum pt_level level, struct area *area)
{
	int result = 0;

	space_pin_only(space, addr, level);
	if (area_tree_from_again(&space->tree, addr, &space_here(space)->found, area) &&
	    area->start <= addr)
		result = area->flags & AREA_BUSY ? -EBUSY : 1;
	if (result <= 0)
		space_unpin(space);
	return result;
}

bool space_pin(struct space *space, u64 addr, enum pt_level level, struct area *area)
{
	int result;

	for (result = try_pin(space, addr, level, area); result < 0;
	     result = try_pin(space, addr, level, area))
		space_wait_settled(space, addr);
	return result > 0;
}

bool space_try_pin(struct space *space, u64 addr, struct area *area)
{
	return try_pin(space, addr, PT_PAGE, area) > 0;
}

/*
 * Insertions for which nodes are kept ready, so that what releases memory needs none. A program
 * without memory can unmap some 2,000 parts in a row: each makes an area more, and a node has room
 * for 85. The kernel's mappings are removed whole, in which case a claim is one insertion, and
 * once it stands it takes no more: it grows in the place of the areas that it removes.
 */
static unsigned ready_to_insert(const struct space *space)
{
	return space->user ? 30 : 3;
}

static unsigned ready_to_claim(const struct space *space, bool placed)
{
	return space->user ? 3 : !placed; /* two, and the one to settle */
}

/* ---- steps under the lock ---- */

/*
 * Take the lock, with nodes for that many insertions. False, without the lock: no memory.
 */
static bool take_lock_ready(struct space *space, unsigned insertions)
{
	for (;;) {
		struct page *page;

		spin_lock(&space->lock);
		if (insertions == 0 || area_tree_short(&space->tree, insertions) == 0) {
			__counts_as(&space->lock, -1); /* lock_ready() counts it */
			return true;
		}
		spin_unlock(&space->lock);
		page = mm_page_alloc(&mm_kernel, 0, USE_UNMOVABLE, 0, NODE_NONE);
		if (!page)
			return false;
		spin_lock(&space->lock);
		area_tree_give_node(&space->tree, page_address(page));
		spin_unlock(&space->lock);
	}
}
#define lock_ready(space, insertions)                                                              \
	__acquires_if(&(space)->lock, take_lock_ready(space, insertions))

/* May the two be one area? */
static bool alike(const struct area *low, const struct area *high)
{
	return low->end == high->start && low->flags == high->flags && !(low->flags & AREA_BUSY) &&
	       low->rights == high->rights && low->level == high->level &&
	       low->policy.how == high->policy.how && low->policy.nodes == high->policy.nodes &&
	       low->object == high->object &&
	       (!low->object || low->offset + (low->end - low->start) == high->offset);
}

/* The areas on both sides of an address; where there is none, a busy one beyond all of them. */
struct neighbours {
	struct area below, above;
};

static struct neighbours find_neighbours(const struct space *space, u64 addr)
{
	struct neighbours found = {.below = {.end = root_start(space), .flags = AREA_BUSY},
				   .above = {.start = root_end(space), .flags = AREA_BUSY}};

	area_tree_own_around(&space->tree, addr, &found.below, &found.above);
	return found;
}

/*
 * Put an area into the free range between two others, joined with them where they are alike; their
 * references are not the last then.
 */
static void insert_joined(struct space *space, const struct area *area,
			  const struct neighbours *beside)
{
	struct area whole = *area, below = beside->below;

	if (alike(area, &beside->above)) {
		area_tree_remove(&space->tree, beside->above.start);
		whole.end = beside->above.end;
		vm_object_put(area->object);
	}
	if (!alike(&below, area)) {
		area_tree_insert(&space->tree, &whole);
		return;
	}
	below.end = whole.end;
	area_tree_replace(&space->tree, below.start, &below);
	vm_object_put(area->object);
}

/* Give an area of the tree other attributes, likewise joined. Takes no node but what it gave. */
static void replace_joined(struct space *space, const struct area *area)
{
	struct neighbours beside;

	area_tree_remove(&space->tree, area->start);
	beside = find_neighbours(space, area->start);
	insert_joined(space, area, &beside);
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
static void cut(struct space *space, const struct area *area, u64 at)
{
	struct area low = *area;
	const struct area high = part_from(area, at);

	low.end = at;
	vm_object_get(high.object);
	area_tree_replace(&space->tree, area->start, &low);
	area_tree_insert(&space->tree, &high);
}

/* Would a cut of the area at the borders of [start, end) cut one of its pages? */
static bool cuts_page(const struct area *area, u64 start, u64 end)
{
	const u64 bytes = area_page_bytes(area);

	return (area->start < start && !IS_ALIGNED(start, bytes)) ||
	       (area->end > end && !IS_ALIGNED(end, bytes));
}

/*
 * A space of the kernel without areas keeps the nodes that it has had from the start. The others
 * are taken out under the lock, and freed when no CPU searches them any more: a search has a pin.
 */
static struct page *take_extra_nodes(struct space *space)
{
	struct area_tree *tree = &space->tree;
	struct page *extra = NULL;
	void *node;

	if (!space->boot_nodes || tree->count > 0 ||
	    tree->spares + (tree->root != NULL) <= NODES_AT_BOOT)
		return NULL;
	area_tree_change(tree);
	for (node = area_tree_take_node(tree); node; node = area_tree_take_node(tree))
		if (!is_boot_node(space, node))
			page_chain_push(&extra, page_of(node));
	give_boot_nodes(space);
	area_tree_changed(tree);
	return extra;
}

static void free_nodes(const struct space *space, struct page *nodes)
{
	if (nodes)
		wait_unpinned(space, 0, ~0ULL);
	while (nodes)
		page_free(page_chain_pop(&nodes));
}

/* ---- making areas ---- */

static bool is_free(const struct neighbours *beside, u64 start, u64 end)
{
	return beside->below.end <= start && beside->above.start >= end;
}

/* The highest free range of that size below range.top; 0: there is none. */
static u64 find_room(struct space *space, u64 size, u64 align)
{
	const u64 enough = size + align - PAGE_SIZE; /* has room wherever it begins */
	const bool known = size >= space->full_size;
	u64 top = known ? space->full_top : space->range.top;

	for (;;) {
		const struct area below = find_neighbours(space, top).below;
		const u64 bottom = MAX(below.end, space->range.start);

		if (top >= size && top > bottom) {
			const u64 start = ALIGN_DOWN(top - size, align);

			if (start >= bottom && start + size <= top) {
				if (!known || enough <= space->full_size) {
					space->full_top = top;
					space->full_size = enough;
				}
				return start;
			}
		}
		if (below.start <= space->range.start)
			return 0;
		top = MIN(top, below.start);
	}
}

/* Space up to `end` has become free, and joins what is free above it. */
static void note_free(struct space *space, u64 end)
{
	struct area above = {.start = space->range.top};

	if (end <= space->full_top)
		return;
	area_tree_own_from(&space->tree, end, &above);
	space->full_top = MIN(MAX(above.start, end), space->range.top);
}

/* Insert an area into the free range between these, lock held. */
static void insert(struct space *space, const struct area *area, const struct neighbours *beside)
{
	area_tree_change(&space->tree);
	insert_joined(space, area, beside);
	area_tree_changed(&space->tree);
	atomic_store_relaxed(&space->bytes, space->bytes + (area->end - area->start));
}

/*
 * Where a new area begins, and between which others, or 0. The place that is tried first is the one
 * asked for; of the kernel's spaces, those behind the last area, in a circle.
 */
static u64 find_place(struct space *space, const struct area *area, u64 align,
		      struct neighbours *beside)
{
	const u64 size = area->end - area->start;
	u64 at = space->user ? area->start : space->next;

	if (space->tree.count >= AREA_TREE_COUNT_MAX)
		return 0;
	/* a circle begins anew at its end once, and passes each area once */
	for (u64 tries = space->user ? 1 : space->tree.count + 2; tries > 0; tries--) {
		if (!space_has(space, at, at + size)) {
			at = space->range.start;
			continue;
		}
		*beside = find_neighbours(space, at);
		if (is_free(beside, at, at + size))
			return at;
		at = ALIGN_UP(beside->below.end > at ? beside->below.end : beside->above.end,
			      align);
	}
	if (!space->user)
		return 0;
	at = find_room(space, size, align);
	*beside = find_neighbours(space, at);
	return at;
}

s64 space_place(struct space *space, const struct area *area, u64 align)
{
	struct neighbours beside;
	struct page *extra = NULL;
	struct area placed = *area;

	if (!lock_ready(space, ready_to_insert(space)))
		return -ENOMEM;
	placed.start = find_place(space, area, align, &beside);
	if (placed.start != 0) {
		placed.end = placed.start + (area->end - area->start);
		insert(space, &placed, &beside);
		space->next = ALIGN_UP(placed.end, align);
	} else {
		extra = take_extra_nodes(space);
	}
	spin_unlock(&space->lock);
	free_nodes(space, extra);
	if (placed.start != 0)
		return (s64)placed.start;
	return reason_error(REASON_NO_ADDRESSES, -ENOMEM);
}

int space_add(struct space *space, const struct area *area)
{
	struct neighbours beside;
	int err = 0;

	if (!space_has(space, area->start, area->end) || !lock_ready(space, ready_to_insert(space)))
		return -ENOMEM;
	beside = find_neighbours(space, area->start);
	if (space->tree.count >= AREA_TREE_COUNT_MAX)
		err = -ENOMEM;
	else if (!is_free(&beside, area->start, area->end))
		err = -EEXIST;
	else
		insert(space, area, &beside);
	spin_unlock(&space->lock);
	return err;
}

/* ---- claims ---- */

/* The kernel's tables below the root are kept for later mappings. */
static enum pt_level upper_level(const struct space *space)
{
	return space->user ? PT_PGD : PT_PUD;
}

/*
 * The lowest address down to which a page table that serves `start` serves nobody else. `bottom` is
 * the end of the area below.
 */
static u64 hull_start(const struct space *space, u64 start, u64 bottom)
{
	for (enum pt_level level = upper_level(space); level > PT_PAGE; level--) {
		const u64 low = ALIGN_DOWN(start, pt_level_size(level));

		if (low >= bottom)
			return low;
	}
	return start;
}

static u64 hull_end(const struct space *space, u64 end, u64 top)
{
	for (enum pt_level level = upper_level(space); level > PT_PAGE; level--) {
		const u64 high = ALIGN_UP(end, pt_level_size(level));

		if (high <= top)
			return high;
	}
	return end;
}

/* The free space around [start, end), in which no area is left. */
static struct hull space_around(const struct space *space, u64 start, u64 end)
{
	const struct neighbours beside = find_neighbours(space, start);

	return (struct hull){.start = hull_start(space, start, MIN(beside.below.end, start)),
			     .end = hull_end(space, end, MAX(beside.above.start, end))};
}

/* The claim's own area. It may be settled, which takes one insertion that must not fail. */
static void begin_claim(struct space *space, const struct area *own)
{
	area_tree_insert(&space->tree, own);
	space->tree.promised++;
}

/*
 * One step of a claim, lock held: what `area` has of [own->end, end) is taken from it. own->end, to
 * which the claim has come, becomes the end of that. Returns the object of an area of which
 * nothing is left, or NULL.
 */
static struct vm_object *claim_area(struct space *space, const struct area *area, struct area *own,
				    u64 end, struct hull *hull)
{
	struct area low = *area, taken = part_from(area, MAX(area->start, own->end));
	const bool has_low = area->start < taken.start;
	const bool has_high = area->end > end;

	taken.end = MIN(area->end, end);
	low.end = taken.start;
	if (has_low)
		area_tree_replace(&space->tree, low.start, &low);
	else
		area_tree_remove(&space->tree, area->start);
	if (has_high) {
		const struct area high = part_from(area, end);

		area_tree_insert(&space->tree, &high);
	}
	if (has_low && has_high)
		vm_object_get(area->object);
	atomic_store_relaxed(&space->bytes, space->bytes - (taken.end - taken.start));
	count_promises(hull, &taken);
	own->end = taken.end;
	return has_low || has_high ? NULL : area->object;
}

/* Between steps, the claim stands in the tree as far as it has come. */
static void claim_part(struct space *space, const struct area *own, bool placed)
{
	if (placed)
		area_tree_replace(&space->tree, own->start, own);
	else if (own->end > own->start)
		begin_claim(space, own);
}

/* The last step: the claim extends over the whole range and the space around it. */
static void claim_space(struct space *space, struct area *own, u64 end, bool placed)
{
	struct hull hull;

	if (placed) {
		area_tree_remove(&space->tree, own->start);
		space->tree.promised--;
	}
	hull = space_around(space, own->start, end);
	own->start = hull.start;
	own->end = hull.end;
	begin_claim(space, own);
}

/*
 * Area after area is removed, and the busy one grows over them, so that the addresses are never
 * free in between.
 */
int space_claim(struct space *space, u64 start, u64 end, enum space_claim how, struct hull *hull)
{
	struct area own = {.start = start, .end = start, .flags = AREA_BUSY};
	int err = 0;

	*hull = (struct hull){.start = start, .end = start};
	if (!space_has(space, start, end))
		return -ENOMEM;
	for (;;) {
		struct area area;
		struct vm_object *object = NULL;
		const bool placed = own.end > own.start;
		bool more, busy, last;

		if (!lock_ready(space, ready_to_claim(space, placed))) {
			err = -ENOMEM;
			break;
		}
		more = area_tree_own_from(&space->tree, own.end, &area) && area.start < end;
		busy = more && (area.flags & AREA_BUSY);
		if (more && !busy)
			err = how == SPACE_MUST_BE_FREE        ? -EEXIST
			      : cuts_page(&area, own.end, end) ? -EINVAL
							       : 0;
		if (busy || err) {
			spin_unlock(&space->lock);
			if (err)
				break;
			space_wait_settled(space, MAX(area.start, own.end));
			continue;
		}
		area_tree_change(&space->tree);
		if (more)
			object = claim_area(space, &area, &own, end, hull);
		last = !more || own.end >= end;
		if (last)
			claim_space(space, &own, end, placed);
		else
			claim_part(space, &own, placed);
		area_tree_changed(&space->tree);
		spin_unlock(&space->lock);
		if (object) {
			wait_unpinned(space, own.start, own.end); /* a touch may be reading it */
			vm_object_put(object);
		}
		if (last)
			break;
	}
	hull->start = own.start;
	hull->end = own.end;
	wait_unpinned(space, own.start, own.end);
	return err;
}

/* A busy area is removed: a claim, or what the space counts. */
static void remove_busy(struct space *space, u64 start, u64 end, bool claim)
{
	struct page *extra;

	spin_lock(&space->lock);
	area_tree_change(&space->tree);
	area_tree_remove(&space->tree, start);
	area_tree_changed(&space->tree);
	if (claim)
		space->tree.promised--;
	else
		atomic_store_relaxed(&space->bytes, space->bytes - (end - start));
	note_free(space, end);
	extra = take_extra_nodes(space);
	spin_unlock(&space->lock);
	free_nodes(space, extra);
}

void space_release(struct space *space, const struct hull *hull)
{
	remove_busy(space, hull->start, hull->end, true);
}

void space_remove_taken(struct space *space, const struct area *area)
{
	remove_busy(space, area->start, area->end, false);
}

void space_settle(struct space *space, const struct hull *hull, const struct area *area)
{
	struct neighbours beside;

	spin_lock(&space->lock);
	area_tree_change(&space->tree);
	area_tree_remove(&space->tree, hull->start);
	space->tree.promised--;
	beside = find_neighbours(space, area->start);
	insert_joined(space, area, &beside);
	area_tree_changed(&space->tree);
	note_free(space, hull->end);
	atomic_store_relaxed(&space->bytes, space->bytes + (area->end - area->start));
	spin_unlock(&space->lock);
}

/* ---- changing areas ---- */

/* Between area_tree_change() and area_tree_changed(). The copy stays as it is. */
static void set_busy(struct space *space, const struct area *area)
{
	struct area busy = *area;

	busy.flags |= AREA_BUSY;
	area_tree_replace(&space->tree, area->start, &busy);
}

/* A cut leaves as many nodes as `to_cut` insertions may take, and needs less than `most` areas. */
static int take(struct space *space, u64 *at, u64 end, struct area *area, unsigned to_cut, u64 most)
{
	unsigned insertions = 0;

	/* an area that was put back may have grown beyond `end`, by joining its neighbour */
	while (*at < end) {
		bool cuts;

		if (!lock_ready(space, insertions))
			return -ENOMEM;
		if (!area_tree_own_from(&space->tree, *at, area) || area->start >= end) {
			spin_unlock(&space->lock);
			return 0;
		}
		if (area->flags & AREA_BUSY) {
			spin_unlock(&space->lock);
			space_wait_settled(space, MAX(area->start, *at));
			continue;
		}
		if (cuts_page(area, *at, end)) {
			spin_unlock(&space->lock);
			return -EINVAL;
		}
		cuts = area->start < *at || area->end > end;
		if (cuts && insertions == 0) {
			spin_unlock(&space->lock);
			insertions = to_cut;
			continue;
		}
		if (cuts && space->tree.count >= most) {
			spin_unlock(&space->lock);
			return -ENOMEM;
		}
		area_tree_change(&space->tree);
		if (area->start < *at) {
			cut(space, area, *at);
			area_tree_own_from(&space->tree, *at, area);
		}
		if (area->end > end) {
			cut(space, area, end);
			area->end = end;
		}
		set_busy(space, area);
		area_tree_changed(&space->tree);
		spin_unlock(&space->lock);
		*at = area->end;
		wait_unpinned(space, area->start, area->end);
		return 1;
	}
	return 0;
}

int space_take(struct space *space, u64 *at, u64 end, struct area *area)
{
	return take(space, at, end, area, ready_to_insert(space), AREA_TREE_COUNT_MAX);
}

int space_take_to_release(struct space *space, u64 *at, u64 end, struct area *area)
{
	return take(space, at, end, area, space->user ? 2 : ready_to_insert(space), ~0ULL);
}

static bool is_pinned(const struct space *space, u64 start, u64 end)
{
	cpu_t cpu;

	fence_full();
	cpumask_foreach(cpu, &cpus_online)
		if (pin_overlaps(atomic_load_acquire(&space->cpu[cpu].pin), start, end))
			return true;
	return false;
}

bool space_try_take(struct space *space, u64 start, u64 end, struct area *area)
{
	bool found;

	spin_lock(&space->lock);
	found = area_tree_own_from(&space->tree, start, area) && area->start <= start &&
		area->end >= end && !(area->flags & AREA_BUSY);
	if (found) {
		area_tree_change(&space->tree);
		set_busy(space, area);
		area_tree_changed(&space->tree);
	}
	spin_unlock(&space->lock);
	if (found && is_pinned(space, start, end)) {
		space_put_back(space, area);
		return false;
	}
	return found;
}

void space_put_back(struct space *space, const struct area *area)
{
	spin_lock(&space->lock);
	area_tree_change(&space->tree);
	replace_joined(space, area);
	area_tree_changed(&space->tree);
	spin_unlock(&space->lock);
}

int space_claim_taken(struct space *space, const struct area *area, struct hull *hull)
{
	struct area own = {.start = area->start, .end = area->start, .flags = AREA_BUSY};

	*hull = (struct hull){.start = area->start, .end = area->start};
	if (!take_lock_ready(space, 3))
		return -ENOMEM;
	__counts_as(&space->lock, 1); /* sparse does not follow lock_ready() here */
	area_tree_change(&space->tree);
	area_tree_remove(&space->tree, area->start);
	atomic_store_relaxed(&space->bytes, space->bytes - (area->end - area->start));
	claim_space(space, &own, area->end, false);
	area_tree_changed(&space->tree);
	spin_unlock(&space->lock);
	hull->start = own.start;
	hull->end = own.end;
	wait_unpinned(space, own.start, own.end);
	return 0;
}

u64 space_mapped_until(struct space *space, u64 at, u64 end)
{
	struct area area;

	while (at < end && space_look(space, at, &area))
		at = area.end;
	return MIN(at, end);
}
