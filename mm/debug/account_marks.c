/*
 * Accounting, memory that is kept back: see account.h. Each term of the watermarks (watermark.h) is
 * counted again: frames that were never opened are counted from the boot ranges, free blocks from
 * their records. From these counts the answers of the zone are computed again, by the formulas in
 * watermark.h.
 */
#include "mm/debug/account_marks.h"

#include "kernel/core/printk.h"
#include "mm/debug/account_lists.h"
#include "mm/memmap/memmap.h"
#include "mm/zone/buddy.h"
#include "mm/zone/section.h"
#include "mm/zone/watermark.h"

enum {
	READY_MOST = 256,
	RECORDS_OF_A_GIB = 4,
	TABLE = 1,
	STRUCTS_OF_A_BLOCK = 8,
	STRUCTS_OF_A_SECTION = 512
};

struct terms {
	u64 unopened, free[FREE_CLASSES];
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

static void count_free(const struct mm *mm, u64 section, struct terms *terms)
{
	for (u32 i = 0; i < SECTION_BLOCKS; i++) {
		const struct block_word word =
			block_look_at(mm, (u32)(section * SECTION_BLOCKS) + i);

		if (word.flags & BLOCK_FREE)
			terms[word.zone].free[block_free_class(word)] += order_pages(word.order);
	}
}

static u64 less(u64 frames, u64 others)
{
	return frames > others ? frames - others : 0;
}

/*
 * The formula of watermark.h: everything free or unopened, less the cost of opening it and of
 * describing it as pages of `order`.
 */
static u64 net(const struct zone *zone, const struct terms *t, u64 ready, unsigned order)
{
	const bool small = order < BLOCK_ORDER, mapped = zone->mm->style == SECTION_MAPPED;
	const u64 structs = small ? STRUCTS_OF_A_BLOCK : 1,
		  sections = DIV_ROUND_UP(t->unopened, SECTION_FRAMES);
	u64 cost = RECORDS_OF_A_GIB * DIV_ROUND_UP(t->unopened, order_pages(GIGA_ORDER));

	if (mapped)
		cost += STRUCTS_OF_A_SECTION * sections;
	else
		cost += TABLE * sections + structs * (t->unopened / BLOCK_FRAMES);
	cost += structs * (t->free[FREE_BARE] / BLOCK_FRAMES);
	cost += small ? structs * (t->free[FREE_HUGE] / BLOCK_FRAMES) : 0;
	return less(ready + t->unopened + t->free[FREE_BARE] + t->free[FREE_HUGE], cost);
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

static bool account_zone_marks(const struct zone *zone, const struct terms *t)
{
	/* checked by account_lists() */
	const u64 aside = zone->free_type[MIGRATE_CMA] + zone->free_type[MIGRATE_ISOLATE];
	const u64 ready = less(zone->free_small + t->free[FREE_FULL] + t->free[FREE_MAPPED], aside);
	bool ok = account_reserve(zone);

	ok &= account_agree("unopened", zone, zone->unopened, t->unopened);
	ok &= account_agree("ready", zone, zone_ready(zone), ready);
	ok &= account_agree("net of opening, as small pages,", zone, zone_net(zone, 0),
			    net(zone, t, ready, 0));
	ok &= account_agree("net of opening, as 2 MiB pages,", zone, zone_net(zone, BLOCK_ORDER),
			    net(zone, t, ready, BLOCK_ORDER));
	return ok;
}

bool account_watermarks(const struct mm *mm)
{
	static struct terms terms[ZONES_MAX];
	bool ok = true;

	for (unsigned z = 0; z < mm->zones; z++)
		terms[z] = (struct terms){0};
	for (u64 section = section_first(mm); section < section_end(mm); section++) {
		if (section_state(mm, section) == SECTION_UNOPENED)
			count_unopened(mm, section, terms);
		else if (section_state(mm, section) == SECTION_OPEN)
			count_free(mm, section, terms);
	}
	for (unsigned z = 0; z < mm->zones; z++)
		ok &= account_zone_marks(&mm->zone[z], &terms[z]);
	return ok;
}
