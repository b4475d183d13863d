/*
 * Boot memory: see memblock.h.
 */
#include "mm/map/memblock.h"

#include <arch/memory.h>

#include "boot/boot_info.h"
#include "kernel/core/panic.h"
#include "kernel/core/printk.h"
#include "kernel/core/verdict.h"
#include "kernel/lib/string.h"

/* disjoint ranges of one list; real maps have tens, the longest known a few hundred */
enum { MEMBLOCK_MAX = 2048 };

static struct memblock_range memory_ranges[MEMBLOCK_MAX], reserved_ranges[MEMBLOCK_MAX];

struct memblock_list memblock_memory = {.range = memory_ranges, .max = MEMBLOCK_MAX};
struct memblock_list memblock_reserved = {.range = reserved_ranges, .max = MEMBLOCK_MAX};

static phys_t alloc_limit = EARLY_PHYS_LIMIT;
static bool frozen;

static bool list_insert(struct memblock_list *list, size_t at, struct memblock_range range)
{
	if (list->count == list->max)
		return false;
	memmove(&list->range[at + 1], &list->range[at], (list->count - at) * sizeof(range));
	list->range[at] = range;
	list->count++;
	return true;
}

static void list_remove(struct memblock_list *list, size_t at)
{
	list->count--;
	memmove(&list->range[at], &list->range[at + 1],
		(list->count - at) * sizeof(list->range[0]));
}

/* Join neighbours that touch and have the same node and owner. The list is sorted and disjoint. */
static void list_join(struct memblock_list *list)
{
	for (size_t i = 1; i < list->count;) {
		struct memblock_range *a = &list->range[i - 1], *b = &list->range[i];

		if (a->end == b->start && a->node == b->node && a->owner == b->owner) {
			a->end = b->end;
			list_remove(list, i);
		} else {
			i++;
		}
	}
}

bool memblock_list_add(struct memblock_list *list, struct memblock_range range)
{
	phys_t at = range.start;
	size_t i = 0;

	while (at < range.end) {
		while (i < list->count && list->range[i].end <= at)
			i++;
		if (i < list->count && list->range[i].start <= at) {
			at = list->range[i].end;
			continue;
		}
		struct memblock_range part = range;

		part.start = at;
		part.end = i < list->count ? MIN(range.end, list->range[i].start) : range.end;
		if (!list_insert(list, i, part))
			return false;
		at = part.end;
	}
	list_join(list);
	return true;
}

bool memblock_list_subtract(struct memblock_list *list, phys_t start, phys_t end)
{
	for (size_t i = 0; i < list->count;) {
		struct memblock_range *range = &list->range[i];
		struct memblock_range tail = *range;

		if (range->end <= start || range->start >= end) {
			i++;
			continue;
		}
		tail.start = end;
		range->end = MIN(range->end, start);
		if (range->start >= range->end)
			list_remove(list, i);
		else
			i++;
		if (tail.start < tail.end && !list_insert(list, i, tail))
			return false;
	}
	return true;
}

u64 memblock_list_bytes(const struct memblock_list *list, phys_t start, phys_t end)
{
	u64 bytes = 0;

	for (size_t i = 0; i < list->count; i++) {
		const phys_t from = MAX(list->range[i].start, start),
			     to = MIN(list->range[i].end, end);

		bytes += to > from ? to - from : 0;
	}
	return bytes;
}

static void add_ram(struct memblock_list *memory, const struct mem_range *range)
{
	/*
	 * The limit is applied first, because rounding up the last bytes of the address space would
	 * give 0.
	 */
	phys_t start = ALIGN_UP(MIN(range->start, PHYS_LIMIT), PAGE_SIZE),
	       end = ALIGN_DOWN(range->end, PAGE_SIZE);

	if (range->end > PHYS_LIMIT) {
		pr_warn("memory: RAM %llx-%llx reaches above %llu TiB, the part above is not used",
			range->start, range->end, PHYS_LIMIT >> 40);
		end = MIN(end, PHYS_LIMIT);
	}
	if (start < end &&
	    !memblock_list_add(memory, (struct memblock_range){.start = start, .end = end}))
		pr_err("memory: the firmware's map is too fragmented, RAM %llx-%llx is not used",
		       start, end);
}

static void reserve(struct memblock_list *reserved, phys_t start, phys_t end,
		    enum memblock_owner owner)
{
	struct memblock_range range = {.start = ALIGN_DOWN(start, PAGE_SIZE),
				       .end = ALIGN_UP(end, PAGE_SIZE),
				       .owner = owner};

	if (!memblock_list_add(reserved, range))
		panic("too many reserved ranges: cannot keep %llx-%llx out of use", start, end);
}

/*
 * A range that is not plain RAM wins over RAM that overlaps it. The range is rounded outwards, and
 * then cut away from memory (or, if the loader left it, kept reserved).
 */
static void take_away(struct memblock_list *memory, struct memblock_list *reserved,
		      const struct mem_range *range)
{
	phys_t start = ALIGN_DOWN(range->start, PAGE_SIZE);
	phys_t end = range->end > PHYS_LIMIT ? PHYS_LIMIT : ALIGN_UP(range->end, PAGE_SIZE);

	if (start >= end)
		return;
	if (range->kind == MEM_LOADER)
		reserve(reserved, start, end, OWNER_LOADER);
	else if (!memblock_list_subtract(memory, start, end))
		panic("memory map too fragmented to keep %llx-%llx out of use", start, end);
}

int memblock_sort_out(const struct boot_info *info, struct memblock_list *memory,
		      struct memblock_list *reserved)
{
	for (size_t i = 0; i < info->ranges; i++)
		if (info->range[i].kind == MEM_RAM || info->range[i].kind == MEM_LOADER)
			add_ram(memory, &info->range[i]);
	for (size_t i = 0; i < info->ranges; i++)
		if (info->range[i].kind != MEM_RAM)
			take_away(memory, reserved, &info->range[i]);
	if (info->ranges_lost)
		pr_warn("memory: %zu ranges of the firmware's map beyond the first %d are not used",
			info->ranges_lost, BOOT_RANGES_MAX);
	if (memory->count == 0)
		return -ENOMEM;
	reserve(reserved, 0, PAGE_SIZE,
		OWNER_FIRMWARE); /* frame 0 belongs to the BIOS, and 0 means "none" below */
	return 0;
}

void memblock_freeze(void)
{
	frozen = true;
}

void memblock_reserve(phys_t start, phys_t end, enum memblock_owner owner)
{
	ASSERT(!frozen, "boot memory %llx-%llx is taken after the buddy allocator took it over",
	       start, end);
	reserve(&memblock_reserved, start, end, owner);
}

/*
 * Highest free `size` bytes in [low, high), or 0. Walks the reserved list from the top:
 *
 *   low |......####......##....| high      candidates are the dots, highest first
 */
static phys_t find_top_down(const struct memblock_list *reserved, phys_t low, phys_t high, u64 size,
			    u64 align)
{
	for (size_t i = reserved->count; high >= low + size;) {
		phys_t start = ALIGN_DOWN(high - size, align);

		if (start < low)
			return 0;
		while (i > 0 && reserved->range[i - 1].start >= start + size)
			i--;
		if (i == 0 || reserved->range[i - 1].end <= start)
			return start;
		high = reserved->range[i - 1].start;
	}
	return 0;
}

phys_t memblock_find(const struct memblock_list *memory, const struct memblock_list *reserved,
		     u64 size, u64 align, phys_t limit, node_t node)
{
	for (size_t i = memory->count; i-- > 0;) {
		const struct memblock_range *range = &memory->range[i];
		phys_t start;

		if (node != NODE_NONE && range->node != node)
			continue;
		start = find_top_down(reserved, range->start, MIN(range->end, limit), size, align);
		if (start)
			return start;
	}
	return 0;
}

phys_t memblock_alloc_raw(u64 size, u64 align, phys_t limit, node_t node)
{
	phys_t start;

	size = ALIGN_UP(size, PAGE_SIZE);
	limit = limit ? MIN(limit, alloc_limit) : alloc_limit;
	ASSERT(align >= PAGE_SIZE && (align & (align - 1)) == 0,
	       "boot memory is asked for with the impossible alignment %llx", align);
	start = memblock_find(&memblock_memory, &memblock_reserved, size, align, limit, node);
	if (!start && node != NODE_NONE)
		start = memblock_find(&memblock_memory, &memblock_reserved, size, align, limit,
				      NODE_NONE);
	if (!start)
		return 0;
	memblock_reserve(start, start + size, OWNER_BOOT);
	return start;
}

phys_t memblock_alloc(u64 size, u64 align, phys_t limit, node_t node)
{
	const phys_t start = memblock_alloc_raw(size, align, limit, node);

	if (start)
		memset(phys_to_virt(start), 0, ALIGN_UP(size, PAGE_SIZE));
	return start;
}

void memblock_free(phys_t start, u64 size)
{
	if (!memblock_list_subtract(&memblock_reserved, start, start + ALIGN_UP(size, PAGE_SIZE)))
		pr_warn("memory: the list of reserved ranges is full, %llx-%llx is not given back",
			start, start + size);
}

void *memblock_alloc_or_die(u64 size, node_t node, const char *what)
{
	phys_t phys = memblock_alloc(size, PAGE_SIZE, 0, node);

	if (!phys)
		memblock_too_little(what);
	return phys_to_virt(phys);
}

/* Bytes of RAM that are reserved by `owner`, or by any owner. */
enum { ANY_OWNER = -1 };
static u64 reserved_ram(int owner)
{
	u64 bytes = 0;

	for (size_t i = 0; i < memblock_memory.count; i++) {
		const struct memblock_range *ram = &memblock_memory.range[i];

		for (size_t j = 0; j < memblock_reserved.count; j++) {
			const struct memblock_range *reserved = &memblock_reserved.range[j];
			const phys_t start = MAX(ram->start, reserved->start),
				     end = MIN(ram->end, reserved->end);

			if (start < end && (owner == ANY_OWNER || (int)reserved->owner == owner))
				bytes += end - start;
		}
	}
	return bytes;
}

void memblock_too_little(const char *what)
{
	const u64 ram = memblock_totals().ram_bytes, bad = reserved_ram(OWNER_BAD);

	if (reserved_ram(ANY_OWNER) == ram)
		pr_err("no usable RAM: all %llu MiB are taken", ram >> 20);
	pr_err("memory: %llu MiB of RAM are too few, there is no room for %s: a node needs 16 MiB, "
	       "and each CPU some more",
	       ram >> 20, what);
	if (bad)
		pr_err("memory: badram= keeps %llu MiB of them out of use", bad >> 20);
	verdict_end_with(VERDICT_FAIL);
}

void memblock_list_set_node(struct memblock_list *memory, phys_t start, phys_t end, node_t node)
{
	for (size_t i = 0; i < memory->count;) {
		struct memblock_range part = memory->range[i];

		part.start = MAX(part.start, start);
		part.end = MIN(part.end, end);
		if (part.start >= part.end || part.node == node) {
			i++;
			continue;
		}
		part.node = node;
		if (!memblock_list_subtract(memory, part.start, part.end) ||
		    !memblock_list_add(memory, part))
			panic("memory map too fragmented for its nodes");
		i = 0; /* ranges have moved */
	}
}

void memblock_direct_map_ready(void)
{
	alloc_limit = PHYS_LIMIT;
}

struct memblock_totals memblock_totals(void)
{
	struct memblock_totals totals = {0};

	for (size_t i = 0; i < memblock_memory.count; i++)
		totals.ram_bytes += memblock_memory.range[i].end - memblock_memory.range[i].start;
	for (size_t i = 0; i < memblock_reserved.count; i++)
		totals.reserved_bytes +=
			memblock_reserved.range[i].end - memblock_reserved.range[i].start;
	if (memblock_memory.count) {
		totals.span_bytes = memblock_memory.range[memblock_memory.count - 1].end;
		totals.hole_bytes = totals.span_bytes - totals.ram_bytes;
	}
	return totals;
}

/* The reserved range that contains `at`, if its owner is firmware or badram=; else NULL. */
static const struct memblock_range *withheld_at(const struct memblock_list *reserved, phys_t at)
{
	for (size_t i = 0; i < reserved->count; i++) {
		const struct memblock_range *range = &reserved->range[i];

		if (range->start <= at && at < range->end &&
		    (range->owner == OWNER_FIRMWARE || range->owner == OWNER_BAD))
			return range;
	}
	return NULL;
}

pfn_t memblock_find_own(const struct memblock_list *memory, const struct memblock_list *reserved,
			phys_t start, phys_t end)
{
	for (size_t i = 0; i < memory->count; i++) {
		const phys_t high = MIN(end, memory->range[i].end);
		const struct memblock_range *withheld;

		for (phys_t at = MAX(start, memory->range[i].start); at < high;
		     at = withheld->end) {
			withheld = withheld_at(reserved, at);
			if (!withheld)
				return at >> PAGE_SHIFT;
		}
	}
	return PFN_NONE;
}

u64 memblock_node_bytes(node_t node)
{
	u64 bytes = 0;

	for (size_t i = 0; i < memblock_memory.count; i++)
		if (memblock_memory.range[i].node == node)
			bytes += memblock_memory.range[i].end - memblock_memory.range[i].start;
	return bytes;
}
