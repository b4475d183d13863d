/* Finds the first frame that keeps a GiB from becoming a page: see contig_why.h. */
#include "mm/contig/contig_why.h"

#include "mm/contig/bad_frames.h"
#include "mm/contig/contig_search.h"
#include "mm/memmap/enter.h"
#include "mm/memmap/memmap.h"
#include "mm/page/page_alloc.h"
#include "mm/zone/isolate.h"
#include "mm/zone/section.h"

/* Name the kind of the frame in the way. The letter in front tells kinds apart. */
static const char *name_frame(struct mm *mm, pfn_t pfn)
{
	const struct block_word word = block_look_any(mm, (u32)(pfn >> BLOCK_ORDER));
	u8 zone = ZONE_NONE;
	const enum frame_kind kind = memmap_frame_kind(mm, pfn, &zone);
	struct page page = {.flags = 0};

	mm_page_peek(mm, pfn, &page);
	if (word.state == BLOCK_META)
		return "M: metadata memory";
	if (kind == FRAME_RESERVED)
		return "f: memory of the firmware or the kernel's image";
	if (kind == FRAME_BAD || (page.flags & PAGE_BAD) || bad_frames_pending(mm, pfn, 1))
		return "x: a bad frame";
	if (block_word_type(word) == MIGRATE_CMA)
		return "c: a block set aside for movable pages (CMA)";
	if (block_word_is_isolated(word))
		return "i: a block that is isolated";
	if (word.order == GIGA_ORDER)
		return "G: a page of 1 GiB";
	if (word.flags & BLOCK_POOL)
		return "p: a page of the 2 MiB pool in use";
	if ((page.flags & PAGE_BOOT) || (kind == FRAME_BOOT && page.refcount == 0))
		return "b: memory given out at boot";
	return page.flags & PAGE_MAPPINGS ? "m: a page that page_map() has mapped"
					  : "u: a page in use that cannot move";
}

/* The first frame of a block never opened that is not free, because of boot, or PFN_NONE. */
static pfn_t boot_obstacle(const struct mm *mm, u32 index)
{
	const pfn_t end = block_pfn(index + 1);
	pfn_t pfn = block_pfn(index);
	u8 zone;

	if (memmap_frame_kind(mm, pfn, &zone) == FRAME_FREE)
		pfn = memmap_frames_alike(mm, pfn, end);
	return pfn < end ? pfn : PFN_NONE;
}

/*
 * The first frame of a block that keeps it from being emptied now, or PFN_NONE. Pages of pools can
 * be isolated; those of 1 GiB stay nevertheless, and so do those in use that have no mover.
 */
static pfn_t block_obstacle(struct zone *zone, u32 index)
{
	struct mm *mm = zone->mm;
	struct block_word head;
	struct page page;
	pfn_t pfn;
	u32 at;

	if (section_state(mm, index / SECTION_BLOCKS) != SECTION_OPEN)
		return boot_obstacle(mm, index);
	zone_lock(zone);
	at = block_run_head(mm, index, &head);
	pfn = isolate_obstacle(zone, index);
	zone_unlock(zone);
	if (pfn == PFN_NONE && (head.flags & BLOCK_POOL) && !(head.flags & BLOCK_POOL_FREE) &&
	    mm_page_peek(mm, block_pfn(at), &page) && !page_flags_can_move(page.flags))
		pfn = block_pfn(at);
	if (head.state == BLOCK_RESERVED)
		return boot_obstacle(mm, index);
	if (block_type(block_at(mm, index)) == MIGRATE_CMA ||
	    (head.order == GIGA_ORDER && !(head.flags & (BLOCK_FREE | BLOCK_TRANSIT))))
		return block_pfn(index);
	return pfn;
}

struct contig_why contig_why(struct mm *mm, u64 number)
{
	const struct gib *gib = &mm->gib[number - mm->first_gib];
	const u32 first = (u32)number * GIB_BLOCKS, refused = atomic_load_relaxed(&gib->refused);
	const bool mapped = hvo_mode_selected()->mapped || contig_search_selected()->reads;
	struct contig_scan scan = {.mapped = false};
	struct contig_why why = {.node = NODE_NONE, .frame = PFN_NONE};
	u8 zone = ZONE_NONE;

	for (u32 i = 0; i < GIB_BLOCKS && zone == ZONE_NONE; i++)
		memmap_block_plan(mm, first + i, &zone);
	if (zone == ZONE_NONE)
		return why;
	scan.zone = &mm->zone[zone];
	why.node = scan.zone->node;
	why.movable = atomic_load_relaxed(&gib->movable);
	/* sections that are not open will be opened in the style that is needed */
	for (u64 s = number * GIB_SECTIONS; s < (number + 1) * GIB_SECTIONS; s++)
		scan.mapped |= mapped && section_state(mm, s) == SECTION_OPEN;
	why.text = contig_judge(&scan, number);
	for (u32 i = 0; gib->whole && i < GIB_BLOCKS && why.frame == PFN_NONE; i++)
		why.frame = block_obstacle(scan.zone, first + i);
	if (why.frame != PFN_NONE) {
		why.text = name_frame(mm, why.frame);
	} else if (!why.text && refused && why.movable > 0) {
		why.text = "r: its block has a page that the holder refused to move";
		why.frame = block_pfn(first + refused - 1);
	}
	return why;
}
