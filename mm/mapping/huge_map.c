/* Huge mappings: the calls of mm.h over mm/vm. See huge_map.h. */
#include "mm/mapping/huge_map.h"

#include <arch/cpu.h>

#include "kernel/core/context.h"
#include "kernel/core/padata.h"
#include "kernel/core/panic.h"
#include "kernel/core/printk.h"
#include "kernel/core/reason_set.h"
#include "kernel/core/verdict.h"
#include "kernel/core/wait.h"
#include "mm/clear/clear.h"
#include "mm/map/memblock.h"
#include "mm/memmap/zone.h"
#include "mm/pools.h"
#include "mm/vm/entry.h"
#include "mm/vm/mapping.h"
#include "mm/vm/pages.h"
#include "mm/vm/touch.h"

/* The first slot stays empty: a guard below the first mapping. */
struct space huge_space = {
	.range = {.start = HUGE_MAP_BASE + HUGE_SLOT, .end = HUGE_MAP_BASE + HUGE_MAP_SIZE},
	.align = HUGE_SLOT};
static u64 exhausted_touches; /* atomic */

void huge_map_init(void)
{
	space_init(&huge_space, memblock_alloc_or_die(space_boot_bytes(), NODE_NONE,
						      "the first areas of huge mappings"));
}

void huge_usage(struct huge_usage *usage)
{
	*usage = (struct huge_usage){.waited = atomic_load_relaxed(&entries_waited),
				     .exhausted = atomic_load_relaxed(&exhausted_touches),
				     .tables_kept = atomic_load_relaxed(&entry_tables_kept)};
	for (cpu_t cpu = 0; cpu < cpu_count; cpu++) {
		const struct space_cpu *of = &huge_space.cpu[cpu];

		for (unsigned level = 0; level < ARRAY_LEN(usage->mapped); level++) {
			usage->mapped[level] += atomic_load_relaxed(&of->leaves[level]);
			usage->faults[level] += atomic_load_relaxed(&of->brought[level]);
		}
	}
}

/* ---- looking ---- */

static struct huge_map *map_of(const struct area *area)
{
	return (struct huge_map *)area->object;
}

struct huge_map *huge_map_at(virt_t addr)
{
	struct area area;

	if (!huge_map_covers(addr) || !space_look(&huge_space, addr, &area))
		return NULL;
	return map_of(&area);
}

/*
 * The mapping that has all of [addr, addr + size), in whole pages of `bytes` (0: of its own), with
 * a reference; else NULL, and the reason is set.
 */
static struct huge_map *get_range(const void *addr, u64 size, u64 bytes)
{
	const virt_t start = (virt_t)addr;
	struct huge_map *map;
	struct area area;

	if (size == 0)
		return reason_null(REASON_BAD_SIZE);
	if (!huge_map_covers(start) || !space_pin(&huge_space, start, PT_PAGE, &area))
		return reason_null(REASON_BAD_ADDRESS);
	map = map_of(&area);
	vm_object_get(&map->object);
	space_unpin(&huge_space);
	if (bytes == 0)
		bytes = pt_level_size(map->level);
	if (IS_ALIGNED(start | size, bytes) && size <= map->object.bytes &&
	    start - map->start <= map->object.bytes - size)
		return map;
	vm_object_put(&map->object);
	return reason_null(REASON_BAD_ADDRESS);
}

/* ---- making and ending ---- */

static void release(struct vm_object *object)
{
	page_free(pfn_to_page(virt_to_phys(object) >> PAGE_SHIFT));
}

static const struct vm_object_ops ops = {.release = release};

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

static int check_request(const struct huge_request *request)
{
	const unsigned flags = request->flags;

	if (request->size == 0 || request->size > HUGE_MAP_SIZE)
		return reason_error(REASON_BAD_SIZE, -EINVAL);
	if ((flags & (HUGE_NODE | HUGE_BIND)) &&
	    request->node >= MIN(mm_kernel.nodes, (node_t)POLICY_NODES))
		return reason_error(REASON_BAD_NODE, -EINVAL);
	if ((flags & HUGE_BIND) && (flags & HUGE_RESERVE))
		return reason_error(REASON_BAD_FLAGS, -EINVAL);
	return level_of(request);
}

static struct memory_policy policy_of(const struct huge_request *request)
{
	if (request->flags & HUGE_BIND)
		return (struct memory_policy){POLICY_BIND, 1ULL << request->node};
	if (request->flags & HUGE_NODE)
		return (struct memory_policy){POLICY_PREFER, 1ULL << request->node};
	return (struct memory_policy){.how = POLICY_NEAR};
}

static u16 area_flags_of(unsigned flags)
{
	return (flags & (HUGE_POOL | HUGE_RESERVE) ? AREA_POOL : 0) |
	       (flags & HUGE_RESERVE ? 0 : AREA_NO_RESERVE) |
	       (flags & HUGE_FALLBACK ? AREA_FALLBACK : 0);
}

/* Choose addresses for the mapping and insert its area. Returns 0 or -ENOMEM. */
static int place(struct huge_map *map, const struct huge_request *request)
{
	const u64 room = ALIGN_UP(map->object.bytes, HUGE_SLOT) + HUGE_SLOT;
	struct area area = {.end = room,
			    .object = &map->object,
			    .flags = area_flags_of(request->flags),
			    .rights = USER_RIGHT_READ | USER_RIGHT_WRITE,
			    .level = (u8)map->level,
			    .policy = policy_of(request)};
	s64 start;

	start = mapping_make(&huge_space, &area, MAPPING_ANYWHERE);
	if (space_failed(start))
		return (int)start;
	map->start = (virt_t)start;
	map->end = map->start + room;
	return 0;
}

/* Takes over the reference to map->object in every case. */
void *huge_map_with(const struct huge_request *request)
{
	struct page *frame;
	struct huge_map *map;
	int level;

	context_assert(CONTEXT_ORDINARY);
	level = check_request(request);
	frame = level < 0 ? NULL : page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	if (!frame)
		return NULL;
	map = page_address(frame);
	*map = (struct huge_map){.object = {.ops = &ops, .refs = 1},
				 .level = level,
				 .exhausted = request->exhausted,
				 .ctx = request->ctx};
	map->object.bytes = ALIGN_UP(request->size, pt_level_size(map->level));
	if (place(map, request) < 0)
		return NULL;
	if ((request->flags & HUGE_POPULATE) &&
	    huge_populate((void *)map->start, map->object.bytes) < 0) {
		huge_unmap((void *)map->start);
		return NULL;
	}
	return (void *)map->start;
}

void *huge_map(u64 size, u64 page, unsigned flags)
{
	context_assert(CONTEXT_ORDINARY);
	return huge_map_with(&(struct huge_request){.size = size, .page = page, .flags = flags});
}

void huge_unmap(void *addr)
{
	const virt_t start = (virt_t)addr;
	struct wait wait = wait_begin(WAIT_TOUCH, "memory for unmapping, which others give back");
	struct huge_map *map;
	virt_t end;

	context_assert(CONTEXT_ORDINARY);
	ASSERT(huge_map_covers(start), "unmapping of %llx, which is no huge mapping", start);
	map = huge_map_at(start);
	ASSERT(map && map->start == start, "unmapping of %llx, where no huge mapping begins",
	       start);
	end = map->end;
	/* nodes are ready for one claim after the other */
	while (mapping_remove(&huge_space, start, end) < 0)
		wait_spin(&wait, CPU_NONE);
}

/* ---- touches ---- */

/*
 * The mapping is no longer pinned, so the callback may do anything, including touching and
 * unmapping mappings.
 */
static void exhausted(virt_t addr)
{
	struct huge_map *map = get_range((void *)ALIGN_DOWN(addr, PAGE_SIZE), PAGE_SIZE, PAGE_SIZE);
	bool again = true;

	atomic_add_relaxed(&exhausted_touches, 1);
	if (map) {
		again = map->exhausted && map->exhausted(map->ctx, (void *)addr);
		vm_object_put(&map->object);
	}
	if (again)
		return;
	pr_err("no page for the touch of %llx in a huge mapping: the run ends", addr);
	verdict_end_with(VERDICT_FAIL);
}

/* Why a touch is refused: `why`, unless nothing is mapped there. */
static enum fault_result refuse(virt_t addr, bool exec, enum fault_result why)
{
	const struct huge_map *map = huge_map_at(addr);

	if (!map)
		return FAULT_HUGE_NOWHERE;
	if (addr - map->start >= map->object.bytes)
		return FAULT_HUGE_BEYOND;
	return exec ? FAULT_HUGE_EXEC : why;
}

static enum fault_result refuse_rights(virt_t addr)
{
	struct area area;
	const bool readable = space_look(&huge_space, addr, &area) && area.rights;

	return refuse(addr, false, readable ? FAULT_HUGE_READ_ONLY : FAULT_HUGE_NO_ACCESS);
}

enum fault_result huge_fault(virt_t addr, bool write, bool exec, bool interruptible)
{
	enum touch touch;

	if (exec || !context_may(CONTEXT_ORDINARY))
		return refuse(addr, exec, FAULT_HUGE_CONTEXT);
	if (interruptible)
		irq_enable();
	touch = space_touch(&huge_space, addr, write ? USER_WRITE : USER_READ);
	if (touch == TOUCH_NO_MEMORY)
		exhausted(addr);
	if (interruptible)
		irq_disable();
	if (touch == TOUCH_DONE || touch == TOUCH_NO_MEMORY)
		return FAULT_RETRY;
	return touch == TOUCH_NO_RIGHT ? refuse_rights(addr) : refuse(addr, false, FAULT_RETRY);
}

/* ---- populating ---- */

struct populate {
	virt_t start;
	u64 bytes;  /* of a page */
	u32 failed; /* enum reason of the CPU that found no page; atomic */
};

static void populate_pages(u64 first, u64 last, void *arg)
{
	struct populate *p = arg;

	if (atomic_load_relaxed(&p->failed) ||
	    space_bring(&huge_space, p->start + first * p->bytes, p->start + last * p->bytes,
			p->bytes) == 0)
		return;
	atomic_add_relaxed(&exhausted_touches, 1);
	atomic_store_relaxed(&p->failed, last_reason());
}

static int populate(void *addr, u64 size, u64 bytes)
{
	struct populate p = {.start = (virt_t)addr, .bytes = bytes};
	struct padata_mt_job job = {.thread_fn = populate_pages,
				    .arg = &p,
				    .size = size / bytes,
				    .min_chunk = MAX(CLEAR_EXTENT / bytes, 1),
				    .max_threads = cpumask_weight(&cpus_online),
				    .node = NODE_NONE};

	padata_run(&job);
	if (!p.failed)
		return 0;
	return reason_error((enum reason)p.failed, -ENOMEM);
}

int huge_populate(void *addr, u64 size)
{
	struct huge_map *map;
	int err;

	context_assert(CONTEXT_ORDINARY);
	map = get_range(addr, size, 0);
	if (!map)
		return -EINVAL;
	err = populate(addr, size, pt_level_size(map->level));
	vm_object_put(&map->object);
	return err;
}

/* ---- changes ---- */

int huge_release(void *addr, u64 size)
{
	const virt_t start = (virt_t)addr;
	struct huge_map *map;
	int err;

	context_assert(CONTEXT_ORDINARY);
	map = get_range(addr, size, 0);
	if (!map)
		return -EINVAL;
	err = (int)mapping_change(&huge_space, start, start + size,
				  &(struct area_change){.pages = CHANGE_CONTENTS, .whole = true});
	vm_object_put(&map->object);
	return err;
}

static u8 rights_of(enum huge_access access)
{
	return access == HUGE_READ_WRITE  ? USER_RIGHT_READ | USER_RIGHT_WRITE
	       : access == HUGE_READ_ONLY ? USER_RIGHT_READ
					  : 0;
}

/* Only the two ends of the range need tables for pieces, at most two each. */
enum { SPARE_TABLES = 4 };

static int get_spare(struct page **spare)
{
	for (unsigned i = 0; i < SPARE_TABLES; i++) {
		struct page *frame = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);

		if (!frame)
			return -ENOMEM;
		page_chain_push(spare, frame);
	}
	return 0;
}

int huge_protect(void *addr, u64 size, enum huge_access access)
{
	const virt_t start = (virt_t)addr;
	virt_t end = start + size;
	struct page *spare = NULL;
	struct huge_map *map;
	int err = 0;

	context_assert(CONTEXT_ORDINARY);
	if (access > HUGE_NONE)
		return reason_error(REASON_BAD_ADDRESS, -EINVAL);
	map = get_range(addr, size, PAGE_SIZE);
	if (!map)
		return -EINVAL;
	if (end == map->start + map->object.bytes)
		end = map->end; /* the guard goes with it: a whole mapping stays one area */
	if (!IS_ALIGNED(start | size, pt_level_size(map->level)))
		err = get_spare(&spare);
	if (err == 0)
		err = (int)mapping_change(&huge_space, start, end,
					  &(struct area_change){.pages = CHANGE_RIGHTS,
								.rights = rights_of(access),
								.whole = true,
								.spare = &spare});
	while (spare)
		page_free(page_chain_pop(&spare));
	vm_object_put(&map->object);
	return err;
}
