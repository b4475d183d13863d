/*
 * The ways to know the type of a page's block while the page lies on a per-CPU list: those of Linux
 * before the per-CPU list series (Weiner 2023), after its first patch and after all of it, and
 * ours.
 *
 *              a page is fetched   freed                      drained
 *   on         its type stored     looked up, stored          the stored type believed, unless the
 *                                                             block was isolated meanwhile
 *   first      looked up           looked up; in bulk twice   looked up
 *   each                           looked up                  looked up
 *   off, ours                      looked up                  its block looked up, once for all
 *                                                             of its pages
 *
 * The first three give each page back by itself. They differ from ours in that, and in the notes
 * they keep, and in nothing else; the lists are the same bitmaps. None of this is done inline, so
 * on, first and each pay the same price to get here, and ours pays nothing.
 *
 * Source: Weiner, "mm: page_alloc: remove pcppage migratetype caching", 2023-09, and the thread:
 * Babka on the second look-up in bulk, Huang's measurement of it, Weiner's "mm: page_alloc:
 * optimize free_unref_page_list()".
 */
#include "mm/page/pcp_types.h"

#include "kernel/core/cmdline.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/buddy_small.h"

const struct pcp_types pcp_types[] = {
	[PCP_TYPES_ON] = {.name = "on", .by_page = true, .stored = true},
	[PCP_TYPES_FIRST] = {.name = "first", .by_page = true, .twice = true},
	[PCP_TYPES_EACH] = {.name = "each", .by_page = true},
	[PCP_TYPES_OFF] = {.name = "off"},
	{.name = NULL},
};

static unsigned chosen = PCP_TYPES_OFF;

/*
 * Once the machine runs, its lists are emptied first, because the notes on the pages that lie there
 * follow the old rule.
 */
static int choose(const struct option *opt, const char *value)
{
	const int err = option_parse_choice(opt, value);

	if (!err && mm_kernel.ready)
		pcp_set_types(&mm_kernel, &pcp_types[chosen]);
	return err;
}

OPTION(pcp.type_cache, .rows = pcp_types, .row_bytes = sizeof(pcp_types[0]), .parse = choose,
       .target = &chosen,
       .help = "on: each page on a list carries its block's type (before Weiner 2023-09); else the "
	       "type is looked up for each page, or once for each block");

const struct pcp_types *pcp_types_selected(void)
{
	return &pcp_types[chosen];
}

const struct pcp_types *pcp_set_types(struct mm *mm, const struct pcp_types *types)
{
	const struct pcp_types *was = mm->pcp_types;

	for (unsigned z = 0; z < mm->zones; z++)
		pcp_disable(&mm->zone[z]);
	atomic_store_release(&mm->pcp_types, types);
	for (unsigned z = 0; z < mm->zones; z++)
		pcp_enable(&mm->zone[z]);
	return was;
}

/* ---- page by page ---- */

static u8 look_up(const struct mm *mm, const struct page *page)
{
	return block_look(block_of_used(mm, page_to_pfn(page))).type;
}

void pcp_note_freed(struct zone *zone, struct pcp_zone *mine, struct page *page, unsigned order,
		    u8 type)
{
	mine->recent.pages = PCP_NO_PAGES; /* the next free also comes here */
	if (zone->mm->pcp_types->stored)
		for (u64 i = 0; i < order_pages(order); i++)
			page[i].private[0] = type;
}

void pcp_note_fetched(struct zone *zone, struct pcp_zone *mine, u32 index, const u64 map[PCP_WORDS],
		      u8 type)
{
	const struct pcp_types *types = zone->mm->pcp_types;
	struct page *pages = block_page(zone->mm, index);

	mine->recent.pages = PCP_NO_PAGES;
	for (unsigned w = 0; w < PCP_WORDS && (types->stored || types->twice); w++) {
		for (u64 bits = map[w]; bits; bits &= bits - 1) {
			struct page *page = &pages[w * 64 + (unsigned)__builtin_ctzll(bits)];

			if (types->stored) {
				page->private[0] = type;
				continue;
			}
			/* whether the page is CMA, for a count that is kept with the lists here */
			look_up(zone->mm, page);
			counter_add(&mine->fetch_lookups, 1);
		}
	}
}

void pcp_prefetch_slot(struct zone *zone, const struct pcp_zone *mine, u32 slot)
{
	const struct page *pages = pfn_page(zone->mm, block_pfn(mine->tag[slot] - 1));

	for (unsigned w = 0; w < PCP_WORDS; w++)
		for (u64 bits = mine->map[slot][w]; bits; bits &= bits - 1)
			page_prefetch(&pages[w * 64 + (unsigned)__builtin_ctzll(bits)]);
}

u64 pcp_free_by_page(struct zone *zone, struct pcp_zone *mine, u32 slot)
{
	struct page *pages = pfn_page(zone->mm, block_pfn(mine->tag[slot] - 1));
	const u8 now = block_look_at(zone->mm, mine->tag[slot] - 1).type;
	const bool believed = zone->mm->pcp_types->stored && !(now & BLOCK_ISOLATED);
	u64 frames = 0, stale = 0;

	for (unsigned w = 0; w < PCP_WORDS; w++) {
		for (u64 bits = mine->map[slot][w]; bits; bits &= bits - 1) {
			struct page *page = &pages[w * 64 + (unsigned)__builtin_ctzll(bits)];
			const u8 type = believed ? (u8)page->private[0] : look_up(zone->mm, page);

			stale += type_list(type) != type_list(now);
			page_set_kind(page, 0, 0);
			buddy_free_pages_as(zone, page, 0, type);
			frames++;
		}
	}
	counter_add(&mine->drain_lookups, believed ? 0 : frames);
	counter_add(&mine->stale, stale);
	return frames;
}
