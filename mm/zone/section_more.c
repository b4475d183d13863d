/*
 * Opening sections because memory is wanted: one, the eight of a GiB, or many by idle CPUs. See
 * section_more.h.
 */
#include "mm/zone/section_more.h"

#include "kernel/core/padata.h"
#include "mm/zone/section.h"
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

/* True if none of the GiB's memory was ever used. */
static bool gib_is_unopened(const struct mm *mm, u64 gib)
{
	unsigned unopened = 0;

	while (unopened < GIB_SECTIONS &&
	       section_state(mm, gib * GIB_SECTIONS + unopened) == SECTION_UNOPENED)
		unopened++;
	return unopened == GIB_SECTIONS;
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

/* Plan the next sections that section_open_next() would open, in its order. */
static void plan_sections(const struct zone *zone, struct padata_mt_job *job)
{
	job->thread_fn = open_sections;
	job->start = MAX(atomic_load_relaxed(&zone->open_cursor),
			 DIV_ROUND_UP(zone->start_pfn, SECTION_FRAMES));
	job->size = MIN(job->size, zone->end_pfn / SECTION_FRAMES -
					   MIN(job->start, zone->end_pfn / SECTION_FRAMES));
}

static void plan_gibs(const struct zone *zone, struct padata_mt_job *job)
{
	job->thread_fn = open_gibs;
	job->start = zone_first_gib(zone);
	while (job->start < zone_end_gib(zone) && !gib_is_unopened(zone->mm, job->start))
		job->start++;
	job->size = MIN(job->size, zone_end_gib(zone) - MIN(job->start, zone_end_gib(zone)));
}

void sections_open_ahead(struct zone *zone, unsigned order, enum section_style style, u64 runs,
			 unsigned threads)
{
	struct ahead ahead = {.zone = zone, .style = style};
	struct padata_mt_job job = {.arg = &ahead,
				    .min_chunk = UNITS_PER_CHUNK,
				    .max_threads = threads,
				    .node = NODE_NONE};

	if (order == GIGA_ORDER) {
		job.size = runs;
		plan_gibs(zone, &job);
	} else {
		job.size = runs / (SECTION_FRAMES / order_pages(order));
		plan_sections(zone, &job);
	}
	padata_run(&job);
	if (order != GIGA_ORDER && job.size > 0)
		atomic_store_relaxed(&zone->open_cursor, job.start + job.size);
}
