/*
 * Sections: 128 MiB of RAM are opened when the allocator needs them, in one of two styles, and can
 * be closed again.
 *
 *   UNOPENED --CAS--> OPENING --> OPEN --> CLOSING --> UNOPENED
 *
 *   on demand   table of PTEs; whole free blocks become BARE: no struct page is written
 *   mapped      a metadata block holds all 32768 struct pages, written now, under one 2 MiB leaf;
 *               blocks are FULL
 *
 * In either style, blocks with holes, firmware ranges or boot allocations get private struct pages
 * at once.
 */
#pragma once

#include "mm/memmap/zone.h"

enum { SECTION_FRAMES = SECTION_BLOCKS * BLOCK_FRAMES };

#define SECTION_BYTES ((u64)SECTION_BLOCKS << BLOCK_SHIFT)

/*
 * Open one section. 0; -EEXIST if it is open; -EAGAIN if another CPU is opening or closing it;
 * -ENODEV if it has no RAM; -ENOMEM if there are no frames for its tables (it is unopened again).
 * The caller holds no lock.
 */
int section_open(struct mm *mm, u64 section, enum section_style style);

/*
 * section_open() with `make`, a baseline's way to write the struct pages of a mapped section
 * (memmap.h). section_open() itself uses MAKE_STREAM.
 */
struct memmap_make;
int section_open_by(struct mm *mm, u64 section, enum section_style style,
		    const struct memmap_make *make);

/*
 * Open the next unopened section with RAM of this zone. 0; -ENOENT if none is left; -ENOMEM. No
 * lock held.
 */
int section_open_next(struct zone *zone, enum section_style style);

/*
 * Open every section that `count` blocks from `first` on lie in, waiting for other CPUs that open
 * or close one. A section that is open already keeps its style. 0; -EINVAL: no RAM in one; -ENOMEM;
 * -EAGAIN: another CPU has been opening or closing one for longer than a deadline. After an error,
 * sections opened so far stay open. No lock held.
 */
int section_open_range(struct mm *mm, u32 first, u32 count, enum section_style style);

u8 section_state(const struct mm *mm, u64 section); /* enum section_state */
enum section_style section_style(const struct mm *mm, u64 section);
/*
 * The block that holds the struct pages of a mapped section. The section is open, or the caller is
 * closing it.
 */
u32 section_memmap(const struct mm *mm, u64 section);

/* Number of sections that are being opened or closed now, found by a look at each. Any context. */
u64 sections_moving(const struct mm *mm);

/* The GiB that overlap the span of the zone: the first one, and the end of the range. */
static inline u64 zone_first_gib(const struct zone *zone)
{
	return zone->start_pfn >> GIGA_ORDER;
}

static inline u64 zone_end_gib(const struct zone *zone)
{
	return DIV_ROUND_UP(zone->end_pfn, order_pages(GIGA_ORDER));
}

/*
 * The highest key of the zone's GiB. A key has the rank of a GiB above its number; 0: it is not
 * wanted. Returns 0 if none is. Looks at all of them.
 */
typedef u64 gib_key_fn(const void *ctx, u64 number);
u64 gib_best(const struct zone *zone, gib_key_fn *key, const void *ctx);

u64 section_first(const struct mm *mm);
u64 section_end(const struct mm *mm);

/* The section's state byte, for section.c and section_close.c only; NULL outside the span. */
u8 *section_slot(const struct mm *mm, u64 section);
