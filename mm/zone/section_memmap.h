/*
 * Opening a section, in parts: declarations that section.c and section_memmap.c share. Other code
 * uses only section_has_free(), section_home() and section_place_memmaps() from here.
 */
#pragma once

#include "mm/memmap/memmap.h"
#include "mm/zone/section.h"

struct opening {
	struct mm *mm;
	u64 section;
	/*
	 * the style asked for; a section without a whole free block is opened on demand in any case
	 */
	enum section_style style;
	/* mapped: how the section's struct pages are written and its blocks freed */
	const struct memmap_make *make;
	struct node *node; /* its metadata memory supplies the frames */
	u32 first;         /* the section's first block */
	u8 plan[SECTION_BLOCKS], zone[SECTION_BLOCKS];
	bool mapped;
	u32 memmap; /* mapped: the block that holds the struct pages; else BLOCK_NONE */
};

/* Set the records of `count` > 0 neighbours, all UNOPENED until now, as opening leaves them. */
void section_publish_records(struct opening *o, u32 first, u32 count, enum block_state state);

/* These frames are unopened no longer. Takes the zone's lock. */
void section_count_opened(struct zone *zone, u64 frames);

/*
 * Write one block's 512 struct pages, each in its final state. Free frames of mixed blocks are
 * freed later, under the lock.
 */
void section_init_special(struct mm *mm, u32 index, struct page *pages, u8 block_zone);

/* Claim and open one section without opening its home first. Returns as section_open() does. */
int section_open_alone(struct mm *mm, u64 section, enum section_style style,
		       const struct memmap_make *make);

/* Will the section, which is not open, have a whole free block of this zone? Any context. */
bool section_has_free(const struct zone *zone, u64 section);

/*
 * Zone of the first whole free block of the section. NULL: there is none, so it cannot be mapped.
 */
struct zone *section_zone(const struct opening *o);

/*
 * Open, in mapped style, the section where the struct pages of `section` will lie, before `section`
 * itself. No lock held; may wait for another CPU that opens it.
 */
void section_open_home(struct zone *zone, u64 section, const struct memmap_make *make);

/*
 * Choose and take the block for the struct pages of a section that is OPENING. False if the section
 * has no whole free block.
 */
bool section_choose_memmap(struct opening *o);

/*
 * Write all struct pages to the chosen block and map them. 0, or -ENOMEM with the block given back.
 */
int section_open_mapped(struct opening *o);

/*
 * The block meant to hold the struct pages of a section of this zone when it is mapped, by
 * arithmetic alone (section_memmap.c). BLOCK_NONE if that block is not whole free RAM of the zone.
 * Any context.
 */
u32 section_home(const struct zone *zone, u64 section);

/*
 * Choose the homes of a zone's sections. The first home is the free block nearest to its end of the
 * zone, or with `skip` that many free blocks further inside. Start-up calls this with 0, once all
 * boot memory is reserved. A benchmark moves the homes while no section of the zone is open mapped,
 * to have struct pages made in memory that held none before, and moves them back afterwards.
 */
void section_place_memmaps(struct zone *zone, u32 skip);
