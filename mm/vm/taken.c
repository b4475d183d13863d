/* Pages that a call has unmapped: see taken.h. */
#include "mm/vm/taken.h"

#include <arch/atomic.h>
#include <arch/check.h>

#include "kernel/lib/string.h"
#include "mm/vm/pages.h"
#include "mm/vm/pages_count.h"
#include "mm/vm/space.h"
#include "mm/memmap/page.h"
#include "mm/memmap/zone.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/mm.h"
#include "mm/page/page_alloc.h"

/* How taken_finish() treats a page; the low bits of its word. */
enum { TAKEN_WHOLE, TAKEN_PIECE, TAKEN_REFERENCE, TAKEN_PROMISED, TAKEN_HOW = 3 };

enum { MORE_WORDS = PAGE_SIZE / sizeof(u64) - 2 };

struct more_taken {
	struct more_taken *next;
	u64 count;
	u64 word[MORE_WORDS];
};

_Static_assert(sizeof(struct more_taken) == PAGE_SIZE, "a frame of words");

/* Room for one more page in `few`: the words move to a frame, or all pages are freed now. */
static void make_room(struct taken *taken)
{
	struct more_taken *more = taken->more;

	if (!more || more->count + PAGES_FEW > MORE_WORDS) {
		struct page *page = mm_page_alloc(&mm_kernel, 0, USE_UNMOVABLE, 0, NODE_NONE);

		if (!page) {
			taken_finish(taken);
			return;
		}
		more = page_address(page);
		more->next = taken->more;
		more->count = 0;
		taken->more = more;
	}
	memcpy(&more->word[more->count], taken->few, sizeof(taken->few));
	more->count += taken->count;
	taken->count = 0;
}

void taken_add_page(struct taken *taken, pte_t pte)
{
	struct page *page = pfn_to_page(pte_pfn(pte));
	unsigned how = TAKEN_WHOLE;

	if (pte & PTE_PIECE) {
		page = page_head(page);
		how = TAKEN_PIECE;
	} else if (pte & PTE_FILE) {
		how = TAKEN_REFERENCE;
	} else if (pte & PTE_PROMISED) {
		how = TAKEN_PROMISED;
	}
	if (taken->count == PAGES_FEW)
		make_room(taken);
	taken->few[taken->count++] = (u64)(virt_t)page | how;
}

void taken_add_table(struct taken *taken, struct page *table)
{
	page_chain_push(&taken->tables, table);
}

/* ---- freeing ---- */

enum { SINGLES_MAX = 64 };

struct singles {
	struct page *page[SINGLES_MAX];
	size_t count;
};

static void free_singles(struct singles *singles)
{
	page_free_bulk(singles->page, singles->count);
	singles->count = 0;
}

enum pt_level taken_level_of(const struct page *page)
{
	return page_order(page) == GIGA_ORDER ? PT_PUD : PT_PMD;
}

/* The kernel counts its pages, also in pieces, and a program its leaves. */
static void free_piece(struct taken *taken, struct page *page)
{
	const u64 was = atomic_fetch_sub(&page->private[PAGE_PIECES], 1);

	if ((was & ~PIECES_PROMISED) != 1)
		return;
	taken->kept_promises[taken_level_of(page)] += (was & PIECES_PROMISED) != 0;
	taken->leaves[taken_level_of(page)] += !taken->space->user;
	check_frames_reused(page_pfn(page), order_pages(page_order(page)));
	page_put(page);
}

static void free_taken(struct taken *taken, u64 word, struct singles *singles)
{
	struct page *page = (struct page *)(virt_t)(word & ~(u64)TAKEN_HOW);

	switch (word & TAKEN_HOW) {
	case TAKEN_PIECE:
		free_piece(taken, page);
		return;
	case TAKEN_PROMISED:
		if (taken->areas_stay) {
			pool_page_give_promised(pages_pool(taken_level_of(page)), page);
			return;
		}
		taken->kept_promises[taken_level_of(page)]++;
		page_put(page);
		return;
	case TAKEN_REFERENCE:
		page_put(page);
		return;
	default:
		break;
	}
	check_frames_reused(page_pfn(page), 1);
	if (page_order(page) > 0) { /* a pool's page goes back to its pool */
		if (taken->space->user && !(page_kind(page).flags & PAGE_HUGETLB))
			page_free((struct page *)page->private[PAGE_TABLE]);
		page_put(page);
		return;
	}
	singles->page[singles->count++] = page;
	if (singles->count == SINGLES_MAX)
		free_singles(singles);
}

void taken_free(struct taken *taken)
{
	enum { MANY = 512 };
	struct singles singles = {.count = 0};

	if (taken->leaves[PT_PAGE] >= MANY || taken->leaves[PT_PMD] + taken->leaves[PT_PUD] > 0)
		pages_resident_note(taken->space);
	for (u32 i = 0; i < taken->count; i++)
		free_taken(taken, taken->few[i], &singles);
	while (taken->more) {
		struct more_taken *more = taken->more;

		for (u64 i = 0; i < more->count; i++)
			free_taken(taken, more->word[i], &singles);
		taken->more = more->next;
		page_free(pfn_to_page(virt_to_phys(more) >> PAGE_SHIFT));
	}
	free_singles(&singles);
	while (taken->tables) {
		struct page *table = page_chain_pop(&taken->tables);

		check_frames_reused(page_pfn(table), 1);
		page_free(table);
	}
	for (unsigned i = 0; i < ARRAY_LEN(taken->leaves); i++) {
		pages_count_leaves(taken->space, i, -taken->leaves[i]);
		taken->total[i] += taken->leaves[i];
		taken->leaves[i] = 0;
	}
	taken->count = 0;
	taken->sizes_changed = false;
}

void taken_finish(struct taken *taken)
{
	if (taken->tables || taken->sizes_changed)
		shootdown_full(SHOOTDOWN_ALL_CPUS);
	else
		shootdown_batch_flush(&taken->batch, SHOOTDOWN_SKIP_IDLE);
	taken_free(taken);
}
