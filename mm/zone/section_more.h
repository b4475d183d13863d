/*
 * Opening sections because memory is wanted: one, the eight of a GiB, or many by idle CPUs.
 * section.h opens a section that is named by its number.
 */
#pragma once

#include "mm/zone/section.h"

/*
 * Open the next unopened section with RAM of this zone for runs of `order`. For GIGA_ORDER, open
 * all sections of a GiB none of which was open. Returns as section_open_next() does.
 */
int section_open_more(struct zone *zone, unsigned order, enum section_style style);

/*
 * Open sections of this zone for up to `runs` runs of `order` (9 or 18), on up to `threads` CPUs
 * including this one. If a section cannot be opened, fewer are; a later section_open_more() returns
 * the reason. No lock held.
 */
void sections_open_ahead(struct zone *zone, unsigned order, enum section_style style, u64 runs,
			 unsigned threads);
