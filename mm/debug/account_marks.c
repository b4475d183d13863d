/*
 * Accounting, memory that is kept back: see account.h. Frames that were never opened are counted
 * again from the boot ranges, and what a zone keeps back is computed again by the rules in
 * watermark.h. The other terms of the watermarks are the counts that account_lists.c walks.
 */
#include "mm/debug/account_marks.h"

#include "kernel/core/printk.h"
#include "mm/debug/account_lists.h"
#include "mm/memmap/memmap.h"
#include "mm/zone/section.h"
#include "mm/zone/watermark.h"

enum { READY_MOST = 256 };

struct terms {
	u64 unopened;
};

/* Reserved frames of [start, end). */
static u64 reserved_within(const struct mm *mm, phys_t start, phys_t end)
{
	u64 frames = 0;

	for (size_t i = 0; i < mm->reserved->count; i++) {
		const phys_t low = MAX(start, mm->reserved->range[i].start),
			     high = MIN(end, mm->reserved->range[i].end);

		frames += low < high ? (high - low) >> PAGE_SHIFT : 0;
	}
	return frames;
}

static void count_unopened(const struct mm *mm, u64 section, struct terms *terms)
{
	const phys_t first = section * SECTION_BYTES;

	for (size_t i = 0; i < mm->memory->count; i++) {
		const struct memblock_range *ram = &mm->memory->range[i];
		const phys_t start = MAX(ram->start, first),
			     end = MIN(ram->end, first + SECTION_BYTES);

		if (start < end)
			terms[memmap_zone_of(mm, start >> PAGE_SHIFT, ram->node)].unopened +=
				((end - start) >> PAGE_SHIFT) - reserved_within(mm, start, end);
	}
}

/* Is `reserve` the largest number whose square does not exceed `frames`, or a 64th of `frames`? */
static bool is_default_reserve(u64 reserve, u64 frames)
{
	const bool is_root = reserve * reserve <= frames && (reserve + 1) * (reserve + 1) > frames;

	return reserve == frames / 64 || (is_root && reserve < frames / 64);
}

static bool account_reserve(const struct zone *zone)
{
	const u8 above = zone->mm->node[zone->node].zone[ZONE_NORMAL];
	const u64 lowmem = above == ZONE_NONE || zone->kind != ZONE_DMA32
				   ? 0
				   : MIN(zone->mm->zone[above].ram / 256, zone->ram / 64);
	bool ok = zone->reserve <= zone->ram;

	if (zone->mm == &mm_kernel)
		ok = reserve_at_boot() == RESERVE_DEFAULT
			     ? is_default_reserve(zone->reserve, zone->ram)
			     : zone->reserve == MIN((u64)reserve_at_boot(), zone->ram);
	if (ok && zone->ready == MIN(zone->reserve, READY_MOST) &&
	    (zone->lowmem == lowmem || zone->lowmem + zone->reserve == 0))
		return true;
	pr_err("accounting: zone %u (node %u) of %llu frames has wrong reserves: %llu kept back, "
	       "%llu ready, %llu for requests below 4 GiB",
	       zone->index, zone->node, zone->ram, zone->reserve, zone->ready, zone->lowmem);
	return false;
}

bool account_watermarks(const struct mm *mm)
{
	static struct terms terms[ZONES_MAX];
	bool ok = true;

	for (unsigned z = 0; z < mm->zones; z++)
		terms[z] = (struct terms){0};
	for (u64 section = section_first(mm); section < section_end(mm); section++)
		if (section_state(mm, section) == SECTION_UNOPENED)
			count_unopened(mm, section, terms);
	for (unsigned z = 0; z < mm->zones; z++) {
		const struct zone *zone = &mm->zone[z];

		ok &= account_reserve(zone);
		ok &= account_agree("unopened", zone, zone->unopened, terms[z].unopened);
	}
	return ok;
}
