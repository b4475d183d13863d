/*
 * mm start-up: see init.h.
 *
 *   ranges, nodes -> zones -> each node's first metadata block -> shared tail pages
 *                 -> sections with boot memory -> all sections, unless memmap=lazy -> pools
 *
 * With hvo=preinit, pools of 1 GiB pages come before the memmap.
 */
#include "mm/init.h"

#include <arch/boot.h>
#include <arch/pgtable.h>

#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "mm/contig/bad_frames.h"
#include "mm/contig/contig_search.h"
#include "mm/contig/evacuate.h"
#include "mm/hugetlb/pool_boot.h"
#include "mm/hugetlb/pool_move.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/hvo/hvo_restore.h"
#include "mm/hvo/hvo_unshare.h"
#include "mm/map/vmap.h"
#include "mm/mapping/huge_map.h"
#include "mm/mapping/map.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/upward.h"
#include "mm/page/page_alloc.h"
#include "mm/page/page_check.h"
#include "mm/page/pcp.h"
#include "mm/page/pcp_drain.h"
#include "mm/page/pcp_types.h"
#include "mm/zone/gigablock.h"
#include "mm/zone/memmap_open.h"
#include "mm/zone/meta_grow.h"
#include "mm/zone/section.h"
#include "mm/zone/section_memmap.h"
#include "mm/zone/watermark.h"

const struct mm_upward mm_upward = {
	.meta_grow = meta_grow,
	.meta_trim = meta_trim,
	.drain_asked = pcp_leave_slow,
	.drain_all = pcp_drain_all,
	.bare_free_huge = hvo_bare_free_huge,
	.huge_free_full = hvo_huge_free_full,
	.bare_in = hvo_bare_in,
	.bring_home = hvo_bring_home,
	.take_giga = contig_take_giga,
	.evacuate = evacuate,
	.mark_bad = mm_mark_bad,
	.take_reported = bad_frames_take_reported,
	.freed_near_bad = bad_frames_freed,
	.pool_put_last = pool_put_last,
	.pool_move_page = pool_move_page,
	.pool_dissolve_page = pool_dissolve_page,
	.map_find = map_find,
};

/* ---- zones and nodes ---- */

static void zone_init(struct mm *mm, node_t node, enum zone_kind kind)
{
	struct zone *zone = &mm->zone[mm->zones];

	memset(zone, 0, sizeof(*zone));
	zone->mm = mm;
	zone->node = node;
	zone->index = (u8)mm->zones;
	zone->split_batch = SPLIT_BATCH_MIN;
	zone->kind = kind;
	zone->lock = SPINLOCK_INIT(LOCK_ZONE);
	zone->max_order = GIGA_ORDER;
	zone->start_pfn = PFN_NONE;
	memset(zone->block_list, 0xff, sizeof(zone->block_list)); /* BLOCK_NONE */
	mm->node[node].zone[kind] = zone->index;
	mm->zones++;
}

/* Add the part of a memory range that lies in a zone of this kind. */
static void zone_add_range(struct mm *mm, const struct memblock_range *range, enum zone_kind kind)
{
	const phys_t start = kind == ZONE_DMA32 ? range->start : MAX(range->start, GIB(4));
	const phys_t end = kind == ZONE_DMA32 ? MIN(range->end, GIB(4)) : range->end;
	u64 reserved, boot, bad;
	struct zone *zone;

	if (start >= end)
		return;
	if (mm->node[range->node].zone[kind] == ZONE_NONE)
		zone_init(mm, range->node, kind);
	zone = &mm->zone[mm->node[range->node].zone[kind]];
	zone->start_pfn = MIN(zone->start_pfn, start >> PAGE_SHIFT);
	zone->end_pfn = MAX(zone->end_pfn, end >> PAGE_SHIFT);
	zone->ram += (end - start) >> PAGE_SHIFT;
	zone->unopened += (end - start) >> PAGE_SHIFT;
	reserved = memblock_list_bytes(mm->reserved, start, end, OWNER_ANY) >> PAGE_SHIFT;
	boot = memblock_list_bytes(mm->reserved, start, end, OWNER_BOOT) >> PAGE_SHIFT;
	bad = memblock_list_bytes(mm->reserved, start, end, OWNER_BAD) >> PAGE_SHIFT;
	zone->unopened -= reserved;
	zone->boot += boot;
	zone->bad += bad;
	zone->reserved += reserved - boot - bad;
}

static void zones_init(struct mm *mm)
{
	for (size_t i = 0; i < mm->memory->count; i++) {
		zone_add_range(mm, &mm->memory->range[i], ZONE_DMA32);
		zone_add_range(mm, &mm->memory->range[i], ZONE_NORMAL);
	}
	for (unsigned z = 0; z < mm->zones; z++)
		mm->zone[z].open_cursor = mm->zone[z].start_pfn / SECTION_FRAMES;
}

/* Sections that have RAM in [start, end) are unopened. */
static void sections_init(struct mm *mm, phys_t start, phys_t end)
{
	for (u64 section = start / SECTION_BYTES; section * SECTION_BYTES < end; section++)
		*section_slot(mm, section) = SECTION_UNOPENED;
}

/*
 * GiB that are RAM of one node from end to end: all sections are unopened, and the GiB can become a
 * 1 GiB page. These two stores, clearing the 64 bytes of struct gib, and one entry of the direct
 * map are all that start-up does for a GiB (tests/qemu/test_ready.py counts the instructions).
 */
static void whole_gibs_init(struct gib *gib, u64 count)
{
	for (const struct gib *end = gib + count; gib < end; gib++) {
		__builtin_memset(gib->section, SECTION_UNOPENED, sizeof(gib->section));
		gib->whole = true;
	}
}

/* Sections that have RAM are unopened; the others do not exist. */
static void gibs_init(struct mm *mm)
{
	for (size_t i = 0; i < mm->memory->count; i++) {
		const struct memblock_range *range = &mm->memory->range[i];
		const u64 first = DIV_ROUND_UP(range->start, GIB(1)), end = range->end / GIB(1);

		if (first >= end) {
			sections_init(mm, range->start, range->end);
			continue;
		}
		sections_init(mm, range->start, first * GIB(1));
		sections_init(mm, end * GIB(1), range->end);
		whole_gibs_init(&mm->gib[first - mm->first_gib], end - first);
	}
}

/*
 * Order all nodes by distance, nearest first. Equally distant nodes are ordered by number, counted
 * from the node itself, so that they share the load.
 */
static void node_order_fallback(struct node *node, node_distance_fn *distance)
{
	const node_t nodes = node->mm->nodes;

	for (node_t i = 0; i < nodes; i++) {
		const node_t next = (node->id + i) % nodes;
		node_t at = i;

		while (at > 0 && distance &&
		       distance(node->id, node->fallback[at - 1]) > distance(node->id, next)) {
			node->fallback[at] = node->fallback[at - 1];
			at--;
		}
		node->fallback[at] = next;
	}
}

static void nodes_init(struct mm *mm, const struct mm_plan *plan)
{
	for (node_t n = 0; n < mm->nodes; n++) {
		struct node *node = &mm->node[n];

		node->mm = mm;
		node->id = n;
		node->meta.lock = SPINLOCK_INIT(LOCK_META);
		node->meta_node = n;
		memset(node->zone, ZONE_NONE, sizeof(node->zone));
		node_order_fallback(node, plan->distance);
	}
}

/* ---- metadata memory and shared tails ---- */

/* Returns false if no node has a metadata block because there is too little memory. */
static bool meta_init(struct mm *mm, const phys_t *first_meta, const u64 *lasting)
{
	bool any = false;

	for (node_t n = 0; n < mm->nodes; n++) {
		const u64 frames = lasting ? lasting[n] : 0;

		if (first_meta[n] && meta_init_node(&mm->node[n], first_meta[n], frames)) {
			struct zone *zone =
				&mm->zone[block_look(block_of(mm, first_meta[n] >> PAGE_SHIFT))
						  .zone];

			/* counted as metadata memory, no longer as in use */
			zone->boot -= meta_blocks_at_boot(frames) * BLOCK_FRAMES;
			any = true;
		}
	}
	/* small and memoryless nodes are served by the nearest node with metadata memory */
	for (node_t n = 0; n < mm->nodes && any; n++) {
		node_t i = 0;

		while (!first_meta[node_near(&mm->node[n], i)->id])
			i++;
		mm->node[n].meta_node = node_near(&mm->node[n], i)->id;
	}
	return any;
}

static int shared_tails_init(struct mm *mm)
{
	for (unsigned z = 0; z < mm->zones; z++) {
		struct node *node = zone_meta_node(&mm->zone[z]);

		if (meta_reserve_emergency(node, TAIL_ORDERS) < 0)
			return -ENOMEM;
		for (unsigned i = 0; i < TAIL_ORDERS; i++) {
			const pfn_t pfn = meta_take(node, META_LASTING);

			memmap_init_tail_frame(phys_to_virt(pfn << PAGE_SHIFT),
					       i ? GIGA_ORDER : BLOCK_ORDER, (u8)z);
			mm->shared_tail[z * TAIL_ORDERS + i] = pfn;
		}
	}
	return 0;
}

/*
 * Boot allocations and firmware ranges can be described, and boot memory freed, only in open
 * sections. They are opened from the top down. The first section opened on a node makes metadata
 * memory grow, into memory that it finds open or opens for the purpose, and boot memory lies at the
 * top, in a GiB that is broken up anyway.
 */
static void open_boot_sections(struct mm *mm)
{
	for (size_t i = mm->reserved->count; i-- > 0;) {
		const struct memblock_range *range = &mm->reserved->range[i];
		const u64 first = range->start / SECTION_BYTES;

		for (u64 section = DIV_ROUND_UP(range->end, SECTION_BYTES); section-- > first;)
			if (section_state(mm, section) == SECTION_UNOPENED &&
			    section_open(mm, section, mm->style) == -ENOMEM)
				pr_warn("memory: section %llu cannot be opened yet", section);
	}
}

/* ---- building a struct mm ---- */

/* Count the zones that the ranges will make; the per-CPU lists need that number. */
static unsigned count_zones(const struct mm_plan *plan)
{
	unsigned zones = 0;

	for (node_t n = 0; n < plan->nodes; n++) {
		bool dma32 = false, normal = false;

		for (size_t i = 0; i < plan->memory->count; i++) {
			const struct memblock_range *range = &plan->memory->range[i];

			dma32 |= range->node == n && range->start < GIB(4);
			normal |= range->node == n && range->end > GIB(4);
		}
		zones += dma32 + normal;
	}
	return zones;
}

/* Allocate each CPU's lists on its own node. */
static bool allocate_pcp(struct mm *mm, const struct mm_plan *plan, unsigned zones)
{
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): a table of pointers */
	mm->pcp = plan->zalloc(cpu_count * sizeof(*mm->pcp), NODE_NONE, plan->ctx);
	for (cpu_t cpu = 0; cpu < cpu_count && mm->pcp; cpu++) {
		mm->pcp[cpu] =
			plan->zalloc(pcp_bytes(zones, mm->nodes), cpu_data(cpu)->node, plan->ctx);
		if (!mm->pcp[cpu])
			return false;
	}
	return mm->pcp;
}

static bool mm_allocate(struct mm *mm, const struct mm_plan *plan)
{
	const unsigned zones = count_zones(plan);
	node_t *fallback;

	ASSERT(zones < ZONES_MAX, "there are %u zones, but the records have room for %u", zones,
	       ZONES_MAX - 1);
	mm->gib = plan->zalloc(mm->gibs * sizeof(*mm->gib), NODE_NONE, plan->ctx);
	mm->node = plan->zalloc(mm->nodes * sizeof(*mm->node), NODE_NONE, plan->ctx);
	mm->zone = plan->zalloc(zones * sizeof(*mm->zone), NODE_NONE, plan->ctx);
	mm->shared_tail = plan->zalloc(zones * TAIL_ORDERS * sizeof(pfn_t), NODE_NONE, plan->ctx);
	mm->table_lock = plan->zalloc(TABLE_LOCKS * sizeof(*mm->table_lock), NODE_NONE, plan->ctx);
	fallback = plan->zalloc((u64)mm->nodes * mm->nodes * sizeof(node_t), NODE_NONE, plan->ctx);
	if (!mm->gib || !mm->node || !mm->zone || !mm->shared_tail || !mm->table_lock || !fallback)
		return false;
	for (node_t n = 0; n < mm->nodes; n++)
		mm->node[n].fallback = fallback + n * mm->nodes;
	for (unsigned i = 0; i < TABLE_LOCKS; i++)
		mm->table_lock[i] = SPINLOCK_INIT(LOCK_TABLE);
	return allocate_pcp(mm, plan, zones);
}

int mm_build(struct mm *mm, const struct mm_plan *plan)
{
	const struct memblock_range *first = &plan->memory->range[0];
	const struct memblock_range *last = &plan->memory->range[plan->memory->count - 1];

	*mm = (struct mm){.watch = plan->watch,
			  .bad = mm->bad, /* frames reported until now */
			  .root = plan->root,
			  .vmemmap = plan->vmemmap,
			  .memory = plan->memory,
			  .reserved = plan->reserved,
			  .nodes = plan->nodes,
			  .style = plan->style,
			  .pcp_types = pcp_types_selected()};
	mm->first_gib = first->start / GIB(1);
	mm->gibs = DIV_ROUND_UP(last->end, GIB(1)) - mm->first_gib;
	if (!mm_allocate(mm, plan))
		return -ENOMEM;
	nodes_init(mm, plan);
	zones_init(mm);
	for (cpu_t cpu = 0; cpu < cpu_count; cpu++)
		pcp_init(mm, cpu);
	zones_set_reserve(mm, plan->reserve);
	for (unsigned z = 0; z < mm->zones; z++)
		ASSERT(mm->zone[z].end_pfn - mm->zone[z].start_pfn <= ~0U,
		       "zone %u spans more than 16 TiB", z);
	gibs_init(mm);
	for (unsigned z = 0; z < mm->zones; z++)
		section_place_memmaps(&mm->zone[z], 0);
	if (plan->gigablock)
		gigablock_begin(mm, GIGABLOCK_LEAST);
	if (!meta_init(mm, plan->first_meta, plan->lasting) || shared_tails_init(mm) < 0)
		return -ENOMEM;
	open_boot_sections(mm);
	mm->ready = true;
	return 0;
}

/* ---- the machine's own ---- */

static void *boot_zalloc(u64 bytes, node_t node, void *ctx)
{
	const phys_t phys = memblock_alloc(bytes, PAGE_SIZE, 0, node);

	return phys ? phys_to_virt(phys) : NULL;
}

/* Allocate page tables for stacks and devices that are mapped from now on. */
static pfn_t vmap_table_alloc(void *ctx)
{
	struct page *page = NULL;

	if (!fail_here(&mm_kernel.fail, FAIL_PTE))
		page = mm_page_alloc(&mm_kernel, 0, USE_UNMOVABLE, PAGE_ZERO,
				     NODE_NONE); /* asks nobody: the caller has claimed an entry */
	return page ? page_to_pfn(page) : PFN_NONE;
}

/*
 * Tables above the mappings of mm/mapping are kept for ever. Those that the first mappings need lie
 * in boot memory, not in a GiB that could be a page.
 */
static void make_first_tables(void)
{
	static const virt_t base[] = {HUGE_MAP_BASE, VMAP_PAGES_BASE};

	for (unsigned i = 0; i < ARRAY_LEN(base); i++)
		if (!pgtable_entry(pgtable_root(), base[i], PT_PUD, pgtable_alloc_boot, NULL))
			memblock_too_little("page tables of mappings");
}

void mm_init(void)
{
	phys_t *first_meta = memblock_alloc_or_die(node_count * sizeof(*first_meta), NODE_NONE,
						   "metadata memory");
	u64 *lasting =
		memblock_alloc_or_die(node_count * sizeof(*lasting), NODE_NONE, "metadata memory");
	const u64 align = 1ULL << BLOCK_SHIFT;
	struct mm_plan plan = {.memory = &memblock_memory,
			       .reserved = &memblock_reserved,
			       .nodes = node_count,
			       .root = pgtable_root(),
			       .vmemmap = VMEMMAP_BASE,
			       .first_meta = first_meta,
			       .lasting = lasting,
			       .style = memmap_style(),
			       .watch = page_watch_at_boot(),
			       .reserve = reserve_at_boot(),
			       .gigablock =
				       gigablock_at_boot && memmap_style() == SECTION_ON_DEMAND,
			       .distance = arch_node_distance,
			       .zalloc = boot_zalloc};

	for (node_t n = 0; n < node_count; n++) {
		u64 size;

		if (memblock_node_bytes(n) < MIB(16))
			continue; /* served by the metadata memory of another node */
		lasting[n] = memblock_node_bytes(n) / GIB(1) * META_LASTING_PER_GIB;
		size = meta_blocks_at_boot(lasting[n]) << BLOCK_SHIFT;
		first_meta[n] = memblock_find(&memblock_memory, &memblock_reserved, size, align,
					      PHYS_LIMIT, n);
		if (first_meta[n])
			memblock_reserve(first_meta[n], first_meta[n] + size, OWNER_BOOT);
	}
	make_first_tables();
	huge_map_init();
	map_init();
	if (mm_build(&mm_kernel, &plan) < 0)
		memblock_too_little("the records of memory");
	memblock_freeze();
	vmap_tables_from(vmap_table_alloc);
	pools_init();
	memmap_open_at_boot(&mm_kernel);
	pools_make_at_boot();
	/* frames that machine checks have reported until now */
	bad_frames_take_reported(&mm_kernel);
}
