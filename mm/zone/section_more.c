/*
 * Opening sections because memory is wanted: one, the eight of a GiB, or many by idle CPUs. See
 * section_more.h.
 */
#include "mm/zone/section_more.h"

#include "kernel/core/padata.h"
#include "mm/zone/section_close.h"

enum { UNITS_PER_CHUNK = 4 };

/*
 * Open all eight sections of an unused GiB, or none. A GiB that is open in part would be found only
 * by contig=index, which opens the rest.
 */
static bool open_gib(struct mm *mm, u64 first, enum section_style style)
{
	unsigned opened = 0;

	while (opened < GIB_SECTIONS && section_open(mm, first + opened, style) == 0)
		opened++;
	if (opened == GIB_SECTIONS)
		return true;
	while (opened-- > 0)
		section_close(mm, first + opened);
	return false;
}

/* True if the GiB can be a page, and none of its memory was ever used. */
static bool gib_is_unopened(const struct mm *mm, u64 gib)
{
	unsigned unopened = 0;

	while (unopened < GIB_SECTIONS &&
	       section_state(mm, gib * GIB_SECTIONS + unopened) == SECTION_UNOPENED)
		unopened++;
	return unopened == GIB_SECTIONS && mm->gib[gib - mm->first_gib].whole;
}

static u64 first_unopened_gib(const struct zone *zone)
{
	u64 gib = zone_first_gib(zone);

	while (gib < zone_end_gib(zone) && !gib_is_unopened(zone->mm, gib))
		gib++;
	return gib;
}

/* Open an unused GiB, whose blocks then merge into one run. */
static int open_unopened_gib(struct zone *zone, enum section_style style)
{
	for (u64 gib = zone_first_gib(zone); gib < zone_end_gib(zone); gib++)
		if (gib_is_unopened(zone->mm, gib) && open_gib(zone->mm, gib * GIB_SECTIONS, style))
			return 0;
	return -ENOENT;
}

int section_open_more(struct zone *zone, unsigned order, enum section_style style)
{
	return order == GIGA_ORDER ? open_unopened_gib(zone, style)
				   : section_open_next(zone, style);
}

/* ---- many ---- */

struct ahead {
	struct zone *zone;
	enum section_style style;
};

static void open_sections(u64 start, u64 end, void *arg)
{
	const struct ahead *ahead = arg;

	for (u64 section = start; section < end && atomic_load_relaxed(&ahead->zone->unopened) > 0;
	     section++)
		/* sections that are open already, or cannot be opened, stay as they are */
		section_open(ahead->zone->mm, section, ahead->style);
}

static void open_gibs(u64 start, u64 end, void *arg)
{
	const struct ahead *ahead = arg;

	for (u64 gib = start; gib < end; gib++)
		if (gib_is_unopened(ahead->zone->mm, gib))
			open_gib(ahead->zone->mm, gib * GIB_SECTIONS, ahead->style);
}

/* The next sections that section_open_next() would open, in its order, or the next unused GiB. */
void sections_open_ahead(struct zone *zone, unsigned order, enum section_style style, u64 runs,
			 unsigned threads)
{
	const bool giga = order == GIGA_ORDER;
	const u64 end = giga ? zone_end_gib(zone) : zone->end_pfn / SECTION_FRAMES;
	const u64 first = giga ? first_unopened_gib(zone)
			       : MAX(atomic_load_relaxed(&zone->open_cursor),
				     DIV_ROUND_UP(zone->start_pfn, SECTION_FRAMES));
	const u64 wanted = giga ? runs : runs / (SECTION_FRAMES / order_pages(order));
	struct ahead ahead = {.zone = zone, .style = style};
	struct padata_mt_job job = {.thread_fn = giga ? open_gibs : open_sections,
				    .arg = &ahead,
				    .start = first,
				    .size = MIN(wanted, end - MIN(first, end)),
				    .min_chunk = UNITS_PER_CHUNK,
				    .max_threads = threads,
				    .node = NODE_NONE};

	padata_run(&job);
	if (!giga && job.size > 0)
		atomic_store_relaxed(&zone->open_cursor, first + job.size);
}
