/*
 * Pages and tables of a space that were unmapped and may still be in some TLB: gathered by a
 * call, and freed after its one round.
 */
#pragma once

#include <arch/pgtable.h>

#include "kernel/core/shootdown.h"
#include "kernel/lib/types.h"

struct page;

/*
 * A huge page of a program that is not a pool's has a frame set aside for the table of its pieces,
 * so that a part of it can be unmapped without memory: the word PAGE_TABLE of its head. The frame
 * goes with the page, or becomes the table.
 *
 * While a page is mapped in pieces, the word PAGE_PIECES of its head has their number. The page is
 * freed with the last.
 */
enum { PAGE_PIECES = 0, PAGE_TABLE = 2 };
#define PIECES_PROMISED (1ULL << 63) /* the page had PTE_PROMISED */

enum { PAGES_FEW = 64 };
struct space;
struct taken {
	struct space *space; /* set by the call */
	struct shootdown_batch batch;
	struct page *tables;  /* chained through private[0] */
	struct page *spare;   /* frames for tables of pieces, chained likewise; the call's */
	void *more;           /* frames full of the words below, chained */
	u64 few[PAGES_FEW];   /* struct page *, with what is to be done in the low bits */
	u32 count;            /* in `few` */
	u64 leaves[3];        /* taken and not freed yet, by level */
	u64 total[3];         /* freed since the beginning */
	u64 kept_promises[3]; /* of those, pages of pools that were promised */
	bool sizes_changed;   /* a large leaf became a table */
	bool areas_stay;      /* and with them the promises of pages that are taken whole */
};

/* The level of an entry that maps all of a large page. */
enum pt_level taken_level_of(const struct page *page);

/* The page of a leaf that was unmapped, and a table that no entry points to any more. */
void taken_add_page(struct taken *taken, pte_t pte);
void taken_add_table(struct taken *taken, struct page *table);

/*
 * taken_finish() makes the one round, then frees everything; `taken` is empty afterwards and may be
 * used again. A range too long for the memory at hand is freed in several rounds. taken_free()
 * frees after a round that the caller has made. Context: ordinary.
 */
void taken_finish(struct taken *taken);
void taken_free(struct taken *taken);
