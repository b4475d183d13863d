/*
 * Sections: 128 MiB of RAM are opened when the allocator needs them, in one of two styles, and can be closed again.
 *
 *   UNOPENED --CAS--> OPENING --> OPEN --> CLOSING --> UNOPENED
 *
 *   on demand   table of PTEs; whole free blocks become BARE: no struct page is written
 *   mapped      a META block holds all 32768 struct pages, written now, under one 2 MiB leaf; blocks are FULL
 *
 * In either style, blocks with holes, firmware ranges or boot allocations get private struct pages at once.
 */
#pragma once

#include "mm/zone.h"

enum { SECTION_FRAMES = SECTION_BLOCKS * BLOCK_FRAMES };

#define SECTION_BYTES ((u64)SECTION_BLOCKS << BLOCK_SHIFT)

/*
 * Open one section. 0; -EEXIST if it is open; -EAGAIN if another CPU is opening or closing it; -ENODEV if it has no
 * RAM; -ENOMEM if its tables could not be had (it is unopened again). Caller holds no lock.
 */
int section_open(struct mm *mm, u64 section, enum section_style style);

/* The same with a baseline's way to make the struct pages of a mapped one (memmap.h); section_open() takes MAKE_STREAM. */
struct memmap_make;
int section_open_by(struct mm *mm, u64 section, enum section_style style, const struct memmap_make *make);

/* Open the next unopened section with RAM of this zone. 0; -ENOENT if none is left; -ENOMEM. No lock held. */
int section_open_next(struct zone *zone, enum section_style style);

/*
 * Open every section that `count` blocks from `first` on lie in, in that style where it is not open, waiting for CPUs that open or close one.
 * 0; -EINVAL: no RAM in one; -ENOMEM; -EAGAIN: another CPU has one for longer than a deadline. What was opened stays open. No lock held.
 */
int section_open_range(struct mm *mm, u32 first, u32 count, enum section_style style);

/*
 * Close a section all of whose blocks are free (and hold no META but its own struct pages): one full round of all CPUs, idle ones too.
 * 0; -EBUSY if something is in use or isolated (isolate.h), nothing changed; -ENODEV, -EAGAIN as above. No lock held.
 */
int section_close(struct mm *mm, u64 section);

/* Close whatever can be closed; returns how many. */
u64 sections_close_all(struct mm *mm);

u8 section_state(const struct mm *mm, u64 section); /* enum section_state */
enum section_style section_style(const struct mm *mm, u64 section);
/* Block that holds the struct pages of a mapped section that is open, or being closed by the caller. */
u32 section_memmap(const struct mm *mm, u64 section);

/*
 * The block meant to hold the struct pages of a section of this zone when it is mapped, by arithmetic alone (section_memmap.c);
 * BLOCK_NONE if that block is no whole RAM of the zone. Any context.
 */
u32 section_home(const struct zone *zone, u64 section);

/* Sections that are being opened or closed just now, by a look at each. Any context. */
u64 sections_moving(const struct mm *mm);

/*
 * Choose the homes of a zone's sections, `skip` free blocks away from where its last one would be. Start-up, once all boot memory is
 * reserved, with 0. A benchmark moves them while no section of the zone is open mapped, to have struct pages made in
 * memory that held none before; it moves them back.
 */
void section_place_memmaps(struct zone *zone, u32 skip);

u64 section_first(const struct mm *mm);
u64 section_end(const struct mm *mm);

/* The section's state byte, for section.c and section_close.c only; NULL outside the span. */
u8 *section_slot(const struct mm *mm, u64 section);
