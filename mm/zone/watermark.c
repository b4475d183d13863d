/* How much of a zone is left, net, and which requests may have it: see watermark.h. */
#include "mm/zone/watermark.h"

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"

enum {
	/* divisor: this share of the memory above 4 GiB, as Linux's lowmem_reserve_ratio */
	LOWMEM_SHARE = 256,
	RESERVE_SHARE = 64, /* divisor: no default is more than this share of its zone */
	READY_MAX = BLOCK_FRAMES / 2,
};

static u64 reserve_bytes = ~0ULL;
OPTION_U64(reserve, reserve_bytes, 0, TIB(1),
	   "bytes of each zone kept for requests that cannot wait [by size]", .boot_only = true);

s64 reserve_at_boot(void)
{
	return reserve_bytes == ~0ULL ? RESERVE_DEFAULT : (s64)(reserve_bytes >> PAGE_SHIFT);
}

/* Newton's method from above; the result is rounded down. */
static u64 square_root(u64 n)
{
	u64 root = n, next = (n + 1) / 2;

	while (next < root) {
		root = next;
		next = (root + n / root) / 2;
	}
	return root;
}

void zones_set_reserve(struct mm *mm, s64 frames)
{
	for (unsigned z = 0; z < mm->zones; z++) {
		struct zone *zone = &mm->zone[z];
		const u8 above = mm->node[zone->node].zone[ZONE_NORMAL];

		zone->reserve = frames == RESERVE_DEFAULT
					? MIN(square_root(zone->ram), zone->ram / RESERVE_SHARE)
					: MIN((u64)frames, zone->ram);
		zone->ready = MIN(zone->reserve, (u64)READY_MAX);
		zone->lowmem = 0;
		if (zone->kind == ZONE_DMA32 && above != ZONE_NONE && frames != 0)
			zone->lowmem =
				MIN(mm->zone[above].ram / LOWMEM_SHARE, zone->ram / RESERVE_SHARE);
	}
}

u64 zone_ready(const struct zone *zone)
{
	return saturating_sub(
		atomic_load_relaxed(&zone->free_small) +
			atomic_load_relaxed(&zone->free_class[FREE_FULL]) +
			atomic_load_relaxed(&zone->free_class[FREE_MAPPED]),
		/* not every request may have those kept for CMA ranges, or isolated */
		atomic_load_relaxed(&zone->free_type[MIGRATE_CMA]) +
			atomic_load_relaxed(&zone->free_type[MIGRATE_ISOLATE]));
}

/*
 * Cost of struct pages for memory that has none: all of them for small pages, one frame for the
 * head of a huge page.
 */
static u64 struct_page_cost(u64 frames, unsigned order)
{
	return frames / BLOCK_FRAMES * (order < BLOCK_ORDER ? MEMMAP_FRAMES_PER_BLOCK : 1);
}

/*
 * Cost of struct pages for unopened memory, plus the tables of its sections and the records of its
 * GiBs. In the mapped style, all struct pages and the records.
 */
static u64 opening_cost(const struct mm *mm, u64 frames, unsigned order)
{
	const u64 sections = DIV_ROUND_UP(frames, SECTION_BLOCKS * BLOCK_FRAMES);
	const u64 records = DIV_ROUND_UP(frames, GIB_BLOCKS * BLOCK_FRAMES) * GIB_RECORD_FRAMES;

	if (mm->style == SECTION_MAPPED)
		return records + sections * BLOCK_FRAMES;
	return records + sections + struct_page_cost(frames, order);
}

u64 zone_net(const struct zone *zone, unsigned order)
{
	const u64 unopened = atomic_load_relaxed(&zone->unopened),
		  bare = atomic_load_relaxed(&zone->free_class[FREE_BARE]);
	const u64 huge = atomic_load_relaxed(&zone->free_class[FREE_HUGE]);
	const u64 cost = (unopened > 0 ? opening_cost(zone->mm, unopened, order) : 0) +
			 struct_page_cost(bare, order) +
			 (order < BLOCK_ORDER ? struct_page_cost(huge, order) : 0);

	return saturating_sub(zone_ready(zone) + unopened + bare + huge, cost);
}

u64 zone_spare(const struct zone *zone)
{
	return saturating_sub(zone_net(zone, 0), zone->reserve + zone->lowmem);
}

bool zone_admits(const struct zone *zone, unsigned order, unsigned request)
{
	u64 kept = zone->reserve + (request & PAGE_DMA32 ? 0 : zone->lowmem);

	if (kept == 0 || request & PAGE_NOFLUSH)
		return true;
	/*
	 * Memory that must be opened makes metadata memory grow, and metadata memory grows by whole
	 * blocks. A huge page is given out as it is.
	 */
	if (zone_ready(zone) >= kept + order_pages(order) ||
	    zone_net(zone, 0) >= kept + order_pages(order) + BLOCK_FRAMES)
		return true;
	return order == BLOCK_ORDER && zone_ready(zone) >= kept &&
	       atomic_load_relaxed(&zone->free_class[FREE_HUGE]) >= BLOCK_FRAMES;
}

/* ---- for people ---- */

static unsigned long long mib(u64 frames)
{
	return frames >> (20 - PAGE_SHIFT);
}

static void print_zone(const struct zone *zone)
{
	print("  node %-3u %-6s %8llu %8llu %8llu %8llu %8llu %8llu %8llu %8llu %7llu %7llu\n",
	      zone->node, zone->kind == ZONE_DMA32 ? "DMA32" : "NORMAL", mib(zone->ram),
	      mib(atomic_load_relaxed(&zone->free_type[MIGRATE_UNMOVABLE])),
	      mib(atomic_load_relaxed(&zone->free_type[MIGRATE_MOVABLE])),
	      mib(atomic_load_relaxed(&zone->free_type[MIGRATE_RECLAIMABLE])),
	      mib(atomic_load_relaxed(&zone->free_type[MIGRATE_CMA])),
	      mib(atomic_load_relaxed(&zone->unopened)), mib(zone_net(zone, 0)),
	      mib(zone_net(zone, BLOCK_ORDER)), zone_ready(zone), zone->reserve);
}

void zones_print(const struct mm *mm, unsigned most)
{
	print("  zones in MiB      RAM    unmov      mov    recla      cma unopened net 4KiB net "
	      "2MiB   ready reserve (frames)\n");
	for (unsigned z = 0; z < MIN(mm->zones, most); z++)
		print_zone(&mm->zone[z]);
	if (mm->zones > most)
		print("  and %u more\n", mm->zones - most);
}
