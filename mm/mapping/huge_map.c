/*
 * Huge mappings: their addresses, and the calls that make, grow and end them. See huge_map.h.
 *
 * Slots change under slots_lock. A touch reads them without the lock, through a pin: the touching
 * CPU notes the mapping in its own struct percpu, executes a fence, and reads the slot again. The
 * CPU that unmaps takes the slots away, executes a fence, and reads all notes. This is the
 * store-buffering pattern of kernel/core/shootdown.c: one of the two sees the other.
 */
#include "mm/mapping/huge_map.h"

#include <arch/barrier.h>
#include <arch/cpu.h>

#include "kernel/core/context.h"
#include "kernel/core/lock.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/reason_set.h"
#include "kernel/core/wait.h"
#include "mm/hugetlb/pool.h"
#include "mm/memmap/zone.h"

enum {
	LOW_SLOTS = HUGE_LOW_SIZE / HUGE_SLOT,
	SLOTS = LOW_SLOTS + HUGE_MAP_SIZE / HUGE_SLOT,
};

/*
 * Two windows of addresses, and their slots [first, end). The first slot of each stays empty: a
 * guard below the first mapping. `next` is under slots_lock; addresses are reused as late as
 * possible.
 */
static struct window {
	virt_t base;
	u64 first, end, next;
} low = {.base = HUGE_LOW_BASE, .first = 0, .end = LOW_SLOTS, .next = 1},
  high = {.base = HUGE_MAP_BASE, .first = LOW_SLOTS, .end = SLOTS, .next = LOW_SLOTS + 1};

static struct huge_map *slot[SLOTS]; /* in the order of addresses */
/* stands in the slots of a mapping that is gone and may still be in some TLB */
static struct huge_map leaving;
static struct spinlock slots_lock = {.rank = LOCK_LEAF, .holder = CPU_NONE};

struct huge_usage huge_counts;

void huge_usage(struct huge_usage *usage)
{
	for (unsigned i = 0; i < ARRAY_LEN(usage->mapped); i++) {
		usage->mapped[i] = atomic_load_relaxed(&huge_counts.mapped[i]);
		usage->faults[i] = atomic_load_relaxed(&huge_counts.faults[i]);
	}
	usage->waited = atomic_load_relaxed(&huge_counts.waited);
	usage->exhausted = atomic_load_relaxed(&huge_counts.exhausted);
	usage->tables_kept = atomic_load_relaxed(&huge_counts.tables_kept);
}

/* ---- windows ---- */

static struct window *window_at(virt_t addr)
{
	return addr - HUGE_LOW_BASE < HUGE_LOW_SIZE ? &low : &high;
}

static struct window *window_for(unsigned flags)
{
	return flags & HUGE_LOW ? &low : &high;
}

static u64 window_bytes(const struct window *window)
{
	return (window->end - window->first) * HUGE_SLOT;
}

static u64 slot_of(virt_t addr)
{
	const struct window *window = window_at(addr);

	return window->first + (addr - window->base) / HUGE_SLOT;
}

/* ---- pins ---- */

struct huge_pin huge_pin(virt_t addr)
{
	struct percpu *self = this_cpu();
	struct huge_pin pin = {.before = self->pinned};
	struct huge_map *map;

	do {
		map = atomic_load_acquire(&slot[slot_of(addr)]);
		if (!map || map == &leaving)
			break;
		atomic_store_relaxed(&self->pinned, map);
		fence_full(); /* pairs with wait_unpinned() */
	} while (atomic_load_acquire(&slot[slot_of(addr)]) != map);
	if (map && map != &leaving && huge_map_has(map, addr, 1))
		pin.map = map;
	else
		atomic_store_relaxed(&self->pinned, pin.before);
	return pin;
}

enum fault_result huge_map_missing(virt_t addr)
{
	const u64 at = slot_of(addr);
	const struct huge_map *here = atomic_load_relaxed(&slot[at]);
	const struct huge_map *below =
		at > window_at(addr)->first ? atomic_load_relaxed(&slot[at - 1]) : NULL;

	if (here == &leaving)
		return FAULT_HUGE_GIVEN_BACK;
	if (here || (below && below != &leaving))
		return FAULT_HUGE_BEYOND;
	return FAULT_HUGE_NOWHERE;
}

struct huge_pin huge_pin_range(const void *addr, u64 size)
{
	const virt_t start = (virt_t)addr;
	struct huge_pin pin = {.before = this_cpu()->pinned};

	if (!huge_map_covers(start))
		return pin;
	pin = huge_pin(start);
	if (pin.map && size > 0 &&
	    (!IS_ALIGNED(start | size, huge_page_bytes(pin.map)) ||
	     !huge_map_has(pin.map, start, size))) {
		huge_unpin(pin);
		pin.map = NULL;
	}
	return pin;
}

void huge_unpin(struct huge_pin pin)
{
	atomic_store_release(&this_cpu()->pinned, pin.before);
}

static void wait_unpinned(const struct huge_map *map)
{
	struct wait wait = wait_begin(WAIT_TOUCH, "the end of a touch in a mapping being unmapped");
	cpu_t cpu;

	fence_full();
	cpumask_foreach(cpu, &cpus_online)
		while (atomic_load_acquire(&cpu_data(cpu)->pinned) == map)
			wait_spin(&wait, cpu);
}

struct huge_map *huge_map_at(virt_t addr)
{
	struct huge_map *map = atomic_load_acquire(&slot[slot_of(addr)]);

	return map == &leaving ? NULL : map;
}

struct huge_map *huge_map_next(const struct huge_map *after)
{
	for (u64 i = after ? slot_of(after->start) + after->slots : 0; i < SLOTS; i++)
		if (slot[i] && slot[i] != &leaving)
			return slot[i];
	return NULL;
}

/* ---- addresses ---- */

static bool slots_are_free(const struct window *window, u64 first, u64 count)
{
	if (first + count > window->end)
		return false;
	for (u64 i = first; i < first + count; i++)
		if (slot[i])
			return false;
	return true;
}

/*
 * slots_lock held. The first of `count` free slots with a guard on both sides, from `from` on; 0 if
 * there are none.
 */
static u64 find_slots(const struct window *window, u64 from, u64 count)
{
	for (u64 first = from; first + count <= window->end; first++)
		if (slots_are_free(window, first - 1, count + 2) ||
		    (first + count == window->end && slots_are_free(window, first - 1, count + 1)))
			return first;
	return 0;
}

static void set_slots(u64 first, u64 count, struct huge_map *map)
{
	for (u64 i = first; i < first + count; i++)
		atomic_store_release(&slot[i], map);
}

static bool take_addresses(struct huge_map *map)
{
	struct window *window = window_for(map->flags);
	u64 first;

	spin_lock(&slots_lock);
	first = find_slots(window, window->next, map->slots);
	if (!first)
		first = find_slots(window, window->first + 1, map->slots);
	if (first) {
		map->start = window->base + (first - window->first) * HUGE_SLOT;
		set_slots(first, map->slots, map);
		window->next = first + map->slots + 1;
	}
	spin_unlock(&slots_lock);
	if (!first)
		reason_set(REASON_NO_ADDRESSES);
	return first != 0;
}

/* Release the addresses. Only from now on may other mappings have them. */
static void free_addresses(virt_t start, u64 slots)
{
	spin_lock(&slots_lock);
	set_slots(slot_of(start), slots, NULL);
	spin_unlock(&slots_lock);
}

/* ---- promises ---- */

struct pool *huge_pool(enum pt_level level)
{
	return level == PT_PUD ? &pool_1g : &pool_2m;
}

static u64 to_promise(const struct huge_map *map, u64 pages)
{
	return map->flags & HUGE_RESERVE ? pages : 0;
}

int huge_promise(struct huge_map *map, u64 pages)
{
	pages = to_promise(map, pages);
	if (pages > 0 && pool_reserve(huge_pool(map->level), pages) < 0)
		return -ENOMEM;
	atomic_fetch_add(&map->promised, pages);
	return 0;
}

/* ---- the calls ---- */

/* -1: no such page size; the reason is set. */
static int level_of(const struct huge_request *request)
{
	enum reason why = REASON_BAD_PAGE_SIZE;

	if (request->page == GIB(1)) {
		if (cpu_has_1g_mappings())
			return PT_PUD;
		if (request->flags & HUGE_FALLBACK)
			return PT_PMD;
		why = REASON_CPU_LACKS;
	} else if (request->page == MIB(2)) {
		return PT_PMD;
	} else if (request->page == PAGE_SIZE) {
		if (!(request->flags & HUGE_RESERVE))
			return PT_PAGE;
		why = REASON_BAD_FLAGS;
	}
	return reason_error(why, -1);
}

static int map_init(struct huge_map *map, const struct huge_request *request, enum pt_level level)
{
	if (request->size == 0 ||
	    MAX(request->size, request->room) > window_bytes(window_for(request->flags)))
		return reason_error(REASON_BAD_SIZE, -EINVAL);
	if ((request->flags & (HUGE_NODE | HUGE_BIND)) && request->node >= mm_kernel.nodes)
		return reason_error(REASON_BAD_NODE, -EINVAL);
	if ((request->flags & HUGE_BIND) && (request->flags & HUGE_RESERVE))
		return reason_error(REASON_BAD_FLAGS, -EINVAL);
	*map = (struct huge_map){.level = level,
				 .node = request->node,
				 .flags = request->flags |
					  (request->flags & HUGE_RESERVE ? HUGE_POOL : 0),
				 .exhausted = request->exhausted,
				 .ctx = request->ctx};
	map->size = ALIGN_UP(request->size, pt_level_size(level));
	map->slots = DIV_ROUND_UP(MAX(map->size, request->room), HUGE_SLOT);
	return 0;
}

/* Free everything that belongs to a mapping except its addresses and pages. */
static void free_mapping(struct huge_map *map)
{
	if (map->promised)
		pool_unreserve(huge_pool(map->level), map->promised);
	page_free(pfn_to_page(virt_to_phys(map) >> PAGE_SHIFT));
}

void *huge_map_with(const struct huge_request *request)
{
	const int level = level_of(request);
	struct page *frame;
	struct huge_map *map;
	void *addr;

	context_assert(CONTEXT_ORDINARY);
	if (level < 0)
		return NULL;
	frame = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	if (!frame)
		return NULL;
	map = page_address(frame);
	if (map_init(map, request, level) < 0) {
		page_free(frame);
		return NULL;
	}
	if (huge_promise(map, map->size / huge_page_bytes(map)) < 0 || !take_addresses(map)) {
		free_mapping(map);
		return NULL;
	}
	addr = (void *)map->start;
	if ((map->flags & HUGE_POPULATE) && huge_populate(addr, map->size) < 0) {
		huge_unmap(addr);
		return NULL;
	}
	return addr;
}

void *huge_map(u64 size, u64 page, unsigned flags)
{
	context_assert(CONTEXT_ORDINARY);
	return huge_map_with(&(struct huge_request){.size = size, .page = page, .flags = flags});
}

void huge_unmap(void *addr)
{
	const virt_t start = (virt_t)addr;
	struct huge_taken taken = {.pages = NULL};
	struct huge_map *map;
	u64 slots;

	context_assert(CONTEXT_ORDINARY);
	ASSERT(huge_map_covers(start), "unmapping of %llx, which is no huge mapping", start);
	spin_lock(&slots_lock);
	map = slot[slot_of(start)];
	ASSERT(map && map->start == start, "unmapping of %llx, where no huge mapping begins",
	       start);
	slots = map->slots;
	set_slots(slot_of(start), slots, &leaving);
	spin_unlock(&slots_lock);
	wait_unpinned(map);

	huge_take_range(start, ALIGN_UP(map->size, HUGE_SLOT), HUGE_TAKE_TABLES, &taken);
	huge_flush_and_give(&taken);
	free_addresses(start, slots);
	free_mapping(map);
}

/*
 * Pages promised for the new part become the mapping's only once there is room, because a touch in
 * between must not use up the promise.
 */
static int grow(struct huge_map *map, u64 size)
{
	const struct window *window = window_for(map->flags);
	const u64 slots = MAX(DIV_ROUND_UP(size, HUGE_SLOT), map->slots),
		  first = slot_of(map->start);
	const u64 more = slots - map->slots,
		  pages = to_promise(map, (size - map->size) / huge_page_bytes(map));
	bool room;

	if (pages > 0 && pool_reserve(huge_pool(map->level), pages) < 0)
		return -ENOMEM;
	/* the slot behind the mapping is a guard already; the new slots need another behind them */
	spin_lock(&slots_lock);
	room = more == 0 ||
	       slots_are_free(window, first + map->slots, more + (first + slots < window->end));
	if (room) {
		atomic_fetch_add(&map->promised, pages);
		set_slots(first + map->slots, more, map);
		map->slots = slots;
		atomic_store_release(&map->size, size);
	}
	spin_unlock(&slots_lock);
	if (!room && pages > 0)
		pool_unreserve(huge_pool(map->level), pages);
	if (!room)
		reason_set(REASON_NO_ADDRESSES);
	return room ? 0 : -ENOMEM;
}

int huge_grow(void *addr, u64 size)
{
	const struct huge_pin pin = huge_pin_range(addr, 0);
	int err = -EINVAL;

	context_assert(CONTEXT_ORDINARY);
	if (!pin.map || pin.map->start != (virt_t)addr)
		reason_set(REASON_BAD_ADDRESS);
	else if (size < pin.map->size || size > window_bytes(window_for(pin.map->flags)))
		reason_set(REASON_BAD_SIZE);
	else
		err = grow(pin.map, ALIGN_UP(size, huge_page_bytes(pin.map)));
	huge_unpin(pin);
	return err;
}
