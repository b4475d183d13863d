/*
 * Mapped sections: where their struct pages lie, and making them.
 *
 * The struct pages of every section have a home: one block of the section's zone, found by
 * arithmetic. Homes are counted from the end of the zone that boot memory has broken up (usually
 * the upper one), one block for each section.
 *
 *   section   0 ...                    n-3     n-2    n-1 (the zone's last)
 *   rank      n-1                       2       1     0
 *   home                                     [... 3 2 1 0][boot memory]
 *                                                       ^ zone->first_home
 *
 *   homes_from_below would mirror it; skip moves it inwards.
 *
 * So a section that is closed and opened again gets the same frames, whichever CPU opens it and in
 * whatever order. The memory that the host backs, that the caches hold and that a benchmark
 * compares is the same each time. And struct pages break up one GiB in 64, the one that boot memory
 * has broken up anyway; a home in each section would break up all of them.
 *
 * If a section's home lies in another section, that section is opened first. This is a chain of at
 * most log64 of the number of sections: rank r has its home near rank r / 64, so the chain ends at
 * the one section that has its home in itself. A home that is in use, or belongs to firmware or
 * another zone, is replaced by any free block.
 */
#include "mm/zone/section_memmap.h"

#include <arch/barrier.h>

#include "kernel/core/panic.h"
#include "kernel/core/wait.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/vmemmap.h"
#include "mm/zone/meta_grow.h"
#include "mm/zone/transit.h"

static u32 *memmap_slot(const struct mm *mm, u64 section)
{
	return &mm->gib[section / GIB_SECTIONS - mm->first_gib].memmap[section % GIB_SECTIONS];
}

u32 section_memmap(const struct mm *mm, u64 section)
{
	return *memmap_slot(mm, section);
}

/* ---- where ---- */

static bool free_in_zone(const struct zone *zone, u32 index)
{
	u8 owner;

	return memmap_block_plan(zone->mm, index, &owner) == PLAN_FREE && owner == zone->index;
}

bool section_has_free(const struct zone *zone, u64 section)
{
	const u32 first = (u32)(section * SECTION_BLOCKS);

	for (u32 i = 0; i < SECTION_BLOCKS; i++)
		if (free_in_zone(zone, first + i))
			return true;
	return false;
}

void section_place_memmaps(struct zone *zone, u32 skip)
{
	const u32 first = (u32)(zone->start_pfn / BLOCK_FRAMES),
		  end = (u32)DIV_ROUND_UP(zone->end_pfn, BLOCK_FRAMES);

	zone->homes_from_below = free_in_zone(zone, end - 1) && !free_in_zone(zone, first);
	zone->first_home = BLOCK_NONE;
	for (u32 i = 0; i < end - first && zone->first_home == BLOCK_NONE; i++) {
		const u32 index = zone->homes_from_below ? first + i : end - 1 - i;

		if (free_in_zone(zone, index) && skip-- == 0)
			zone->first_home = index;
	}
}

u32 section_home(const struct zone *zone, u64 section)
{
	const u64 first = zone->start_pfn / SECTION_FRAMES,
		  last = (zone->end_pfn - 1) / SECTION_FRAMES;
	const u32 home = (u32)(zone->homes_from_below ? zone->first_home + (section - first)
						      : zone->first_home - (last - section));

	if (zone->first_home == BLOCK_NONE || section < first || section > last ||
	    !free_in_zone(zone, home))
		return BLOCK_NONE;
	return home;
}

struct zone *section_zone(const struct opening *o)
{
	for (unsigned i = 0; i < SECTION_BLOCKS; i++)
		if (o->plan[i] == PLAN_FREE)
			return &o->mm->zone[o->zone[i]];
	return NULL;
}

/*
 * The recursion always uses the arithmetic of this one zone, which makes the chain end. A CPU that
 * has claimed the section of a home holds no other claim and waits for no other section, so the
 * wait below ends.
 */
void section_open_home(struct zone *zone, u64 section, const struct memmap_make *make)
{
	const u32 home = section_home(zone, section);
	const u64 other = home / SECTION_BLOCKS;
	struct wait wait;

	if (home == BLOCK_NONE || other == section ||
	    section_state(zone->mm, other) == SECTION_OPEN)
		return;
	section_open_home(zone, other, make);
	wait = wait_begin(WAIT_OPENING, "a section to be opened that will hold struct pages");
	while (section_open_alone(zone->mm, other, SECTION_MAPPED, make) == -EAGAIN)
		wait_spin(&wait, CPU_NONE);
}

static bool lies_inside(const struct opening *o, u32 index)
{
	return index >= o->first && index < o->first + SECTION_BLOCKS;
}

/*
 * Choose the home, else any free block of the zone, else the first whole free block of the section
 * itself. Its state becomes metadata memory.
 */
bool section_choose_memmap(struct opening *o)
{
	struct zone *zone = section_zone(o);
	u32 home, own = o->first;

	if (!zone)
		return false; /* no whole block to describe: not worth mapping */
	home = section_home(zone, o->section);
	while (o->plan[own - o->first] != PLAN_FREE)
		own++;
	if (home != BLOCK_NONE && lies_inside(o, home))
		own = home;
	o->memmap = home == BLOCK_NONE || own == home
			    ? BLOCK_NONE
			    : block_take_in(zone, home, 1, TAKE_BARE | TAKE_MAPPED, BLOCK_META);
	if (o->memmap == BLOCK_NONE && own != home)
		o->memmap = block_take_one(zone, FREE_BARE, BLOCK_META);
	if (o->memmap == BLOCK_NONE && own != home)
		o->memmap = block_take_one(zone, FREE_MAPPED, BLOCK_META);
	if (o->memmap == BLOCK_NONE) {
		o->memmap = own;
		section_publish_records(o, own, 1, BLOCK_META);
		return true;
	}
	block_set_state(o->mm, o->memmap, BLOCK_META);
	block_publish_used(zone, o->memmap, BLOCK_ORDER);
	return true;
}

/* ---- making them ---- */

static void forget_memmap(struct opening *o)
{
	if (lies_inside(o, o->memmap)) {
		block_set_state(o->mm, o->memmap, BLOCK_UNOPENED);
	} else {
		meta_leave_block(block_zone(o->mm, o->memmap), o->memmap);
	}
}

/* Write all 32768 struct pages before any translation shows them. */
static void init_memmap(const struct opening *o)
{
	struct page *pages = phys_to_virt(block_pfn(o->memmap) << PAGE_SHIFT);

	for (unsigned i = 0; i < SECTION_BLOCKS; i++) {
		struct page *first = &pages[i * BLOCK_FRAMES];

		if (o->plan[i] == PLAN_FREE)
			o->make->write(first, BLOCK_FRAMES, o->zone[i]);
		else
			section_init_special(o->mm, o->first + i, first,
					     o->zone[i] == ZONE_NONE ? 0 : o->zone[i]);
	}
	/* once, at the end: it waits until all streamed lines have left the CPU's buffers */
	fence_store_nt();
}

int section_open_mapped(struct opening *o)
{
	/* the block is counted by the metadata memory of the node that it lies on */
	struct node *node = block_meta_node(o->mm, o->memmap);

	init_memmap(o);
	if (meta_add_block(node, o->memmap, META_MEMMAP, BLOCK_FRAMES) < 0) {
		forget_memmap(o);
		return -ENOMEM;
	}
	if (vmemmap_install(o->mm, o->node, o->section,
			    pte_make(block_pfn(o->memmap), PT_PMD, PT_RW)) < 0) {
		ASSERT(meta_remove_block(node, o->memmap, BLOCK_FRAMES) == 0,
		       "new metadata block %u is in use", o->memmap);
		forget_memmap(o);
		return -ENOMEM;
	}
	*memmap_slot(o->mm, o->section) = o->memmap;
	if (lies_inside(o, o->memmap))
		section_count_opened(block_zone(o->mm, o->memmap), BLOCK_FRAMES);
	return 0;
}
