/*
 * Opening a section, in parts: what section.c and section_memmap.c share. Nobody else includes this.
 */
#pragma once

#include "mm/memmap.h"
#include "mm/section.h"

struct opening {
	struct mm *mm;
	u64 section;
	enum section_style style; /* asked for; without a whole block it is opened on demand */
	const struct memmap_make *make; /* mapped: how its struct pages are written and its blocks freed */
	struct node *node;        /* whose META pays */
	u32 first;                /* block */
	u8 plan[SECTION_BLOCKS], zone[SECTION_BLOCKS];
	bool mapped;
	u32 memmap; /* mapped: block that holds the struct pages; else BLOCK_NONE */
};

/* Records of `count` > 0 neighbours as opening leaves them; all were UNOPENED. */
void section_publish_records(struct opening *o, u32 first, u32 count, enum block_state state);

/* One block's 512 struct pages, each in its final state. Free frames of mixed blocks are freed later, under the lock. */
void section_init_special(struct mm *mm, u32 index, struct page *pages, u8 block_zone);

/* Open one section, claiming it, without regard to its home. As section_open(). */
int section_open_alone(struct mm *mm, u64 section, enum section_style style, const struct memmap_make *make);

/* Zone of the first whole free block of the section; NULL: there is none, so it cannot be mapped. */
struct zone *section_zone(const struct opening *o);

/* The section where the struct pages of `section` will lie is opened first, mapped as well. No lock held; may wait for another opener. */
void section_open_home(struct zone *zone, u64 section, const struct memmap_make *make);

/* Choose the block for the struct pages of a section that is OPENING, and take it. False if it has no whole block. */
bool section_choose_memmap(struct opening *o);

/* Write all struct pages there and map them. 0, or -ENOMEM with the block given back. */
int section_open_mapped(struct opening *o);

