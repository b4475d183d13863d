/*
 * Accounting by walking: see account.h.
 *
 * Two independent counts are made. One is by lists: what the free lists hold, entry by entry
 * (account_lists.c). The other is by blocks: every record of every open section and, within FULL
 * and RESERVED blocks, the owner of every struct page. Both must agree with the counters, and their
 * sum with the RAM of the zone.
 */
#include "mm/debug/account.h"

#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "mm/debug/account_lists.h"
#include "mm/debug/account_marks.h"
#include "mm/debug/account_meta.h"
#include "mm/debug/account_pools.h"
#include "mm/debug/account_refs.h"
#include "mm/hugetlb/pool.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/vmemmap.h"
#include "mm/page/pcp.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/buddy.h"
#include "mm/zone/report.h"
#include "mm/zone/section.h"

/* Frames of one zone, by owner, as the walk found them. */
struct walk {
	u64 free, small, per_cpu, pool_free, in_use, meta, reserved, boot, bad, transit;
	u64 movable; /* of the frames in use or free in pools */
};

/* Running sums over all zones; the difference over a GiB is checked against its summary. */
struct sums {
	u64 free, movable, meta_blocks;
};

/* ---- blocks and struct pages ---- */

/*
 * Is the page referenced? A frame that is in use without a reference belongs to nobody and is lost.
 */
static bool has_references(const struct page *page)
{
	const struct page *head = page_head(page);

	if (head->refcount > 0)
		return true;
	pr_err("accounting: frame %llx is neither free nor held, and has no references",
	       page_to_pfn(page));
	return false;
}

/* Walk the 512 frames of a block that has all its struct pages, in chunks as their heads say. */
static bool walk_pages(struct mm *mm, u32 index, struct walk *walks)
{
	const struct page *pages = block_page(mm, index);
	const u16 counted = block_look_at(mm, index).free_pages;
	u64 held[PCP_WORDS] = {0}, small = 0;
	bool ok = true;

	pcp_held(mm, index, held);
	for (u64 i = 0; i < BLOCK_FRAMES;) {
		const struct page *page = &pages[i];
		struct walk *walk = &walks[page->zone];
		const bool is_held = held[i / 64] >> i % 64 & 1;
		u8 zone = ZONE_NONE;
		u64 count = 1;

		if (!is_held && (page->flags & (PAGE_BUDDY | PAGE_COMPOUND)))
			count = order_pages(page->order);
		if (!is_held && (page->flags & PAGE_BUDDY))
			small += count;
		if (is_held)
			walk->per_cpu++; /* its struct page describes its previous state */
		else if (page->flags & PAGE_BUDDY)
			walk->small += count;
		else if (page->flags & PAGE_BOOT)
			walk->boot += count;
		else if (page->flags & PAGE_BAD)
			walk->bad += count;
		else if (!(page->flags & PAGE_RESERVED)) {
			walk->in_use += count;
			ok &= has_references(page);
		}
		if (page->flags & PAGE_MOVABLE)
			walk->movable += count;
		if (memmap_frame_kind(mm, block_pfn(index) + i, &zone) == FRAME_RESERVED)
			/* whatever its struct page says; holes are not RAM */
			walk->reserved += count;
		i += count;
	}
	if (small == counted)
		return ok;
	pr_err("accounting: block %u: counted %u free small pages, walked %llu", index, counted,
	       small);
	return false;
}

/*
 * Walk a block without struct pages. As a rule it holds no RAM; any RAM in it is reserved or bad.
 */
static void walk_given_up(struct mm *mm, u32 index, struct walk *walks)
{
	u8 zone;

	if (memmap_block_plan(mm, index, &zone) == PLAN_ABSENT)
		return;
	for (unsigned i = 0; i < BLOCK_FRAMES; i++)
		switch (memmap_frame_kind(mm, block_pfn(index) + i, &zone)) {
		case FRAME_HOLE:
			break;
		case FRAME_BAD:
			walks[zone].bad++;
			break;
		default:
			walks[zone].reserved++;
		}
}

/* Is the block part of a run that is being changed? Only the record of the run's head says so. */
static bool is_in_transit(const struct mm *mm, u32 index)
{
	struct block_word head;

	block_run_head(mm, index, &head);
	return head.flags & BLOCK_TRANSIT;
}

/* The word of the 1 GiB page in use that covers this block, or of the block itself. */
static struct block_word look_at_page(const struct mm *mm, u32 index)
{
	const struct block_word giga = block_look_at(mm, ALIGN_DOWN(index, GIB_BLOCKS));

	return giga.order == GIGA_ORDER && !(giga.flags & BLOCK_FREE) ? giga
								      : block_look_at(mm, index);
}

/*
 * Is this block all of a 2 MiB page that is free in a pool, or in use and movable? 1 GiB pages are
 * not counted, because moving one makes no other room.
 */
static bool block_is_movable(const struct mm *mm, struct block_word word, u32 index)
{
	if (word.order != BLOCK_ORDER || (word.flags & (BLOCK_FREE | BLOCK_TRANSIT)))
		return false;
	if (word.flags & BLOCK_POOL_FREE)
		return true;
	return (word.state == BLOCK_HUGE || (word.flags & BLOCK_POOL)) &&
	       (block_page(mm, index)->flags & PAGE_MOVABLE);
}

/* The head of the page that covers this block, if `word` describes such a page. */
static const struct page *head_of(const struct mm *mm, struct block_word word, u32 index)
{
	return pfn_page(mm, ALIGN_DOWN(block_pfn(index), order_pages(word.order)));
}

/*
 * Is this block part of a single page in use, whichever struct pages that page has? For a 2 MiB
 * page with all its struct pages walk_pages() finds out.
 */
static bool is_one_page(const struct mm *mm, struct block_word word, u32 index)
{
	if (word.state == BLOCK_FULL && word.order == GIGA_ORDER)
		return page_kind(head_of(mm, word, index)).order == GIGA_ORDER;
	return word.state == BLOCK_HUGE;
}

/* Was the block reported to the host though somebody may have written to it since? */
static bool check_reported(struct mm *mm, u32 index)
{
	const struct block_word word = block_look_at(mm, index);

	if (!block_word_is_reported(word) || is_in_transit(mm, index) ||
	    ((word.state == BLOCK_BARE || word.state == BLOCK_HUGE) &&
	     buddy_find_run(mm, index) != BLOCK_NONE))
		return true;
	pr_err("accounting: block %u is %s with flags %x, and is said to be the host's", index,
	       block_state_name(word.state), word.flags);
	return false;
}

static bool walk_block(struct mm *mm, u32 index, struct walk *walks)
{
	const struct block_word word = look_at_page(mm, index);
	struct walk *walk = &walks[word.zone];

	if (word.state == BLOCK_ABSENT)
		walk_given_up(mm, index, walks);
	if (word.state == BLOCK_UNOPENED || word.state == BLOCK_ABSENT)
		return true;
	walk->movable += block_is_movable(mm, word, index) ? BLOCK_FRAMES : 0;
	if (is_in_transit(mm, index))
		walk->transit += BLOCK_FRAMES;
	else if (word.state == BLOCK_META)
		walk->meta += BLOCK_FRAMES;
	else if (word.flags & BLOCK_POOL_FREE)
		walk->pool_free += BLOCK_FRAMES;
	else if (buddy_find_run(mm, index) != BLOCK_NONE)
		walk->free += BLOCK_FRAMES;
	else if (word.state == BLOCK_HUGE && pcp_held(mm, index, (u64[PCP_WORDS]){0}))
		walk->per_cpu += BLOCK_FRAMES;
	else if (word.flags & BLOCK_POOL)
		walk->in_use += BLOCK_FRAMES; /* without references while it is moved */
	else if (is_one_page(mm, word, index)) {
		walk->in_use += BLOCK_FRAMES;
		return has_references(head_of(mm, word, index));
	} else
		return walk_pages(mm, index, walks);
	return true;
}

/*
 * Check that every tail PTE of every huge block is read-only, clean, and on the shared page, and
 * that every other line is as its state requires.
 */
static bool check_line(struct mm *mm, u32 index)
{
	const struct block_word word = block_look_at(mm, index);
	const pte_t *line = vmemmap_line(mm, index);
	const unsigned order =
		word.state == BLOCK_NOHEAD || word.order == GIGA_ORDER ? GIGA_ORDER : BLOCK_ORDER;
	const pfn_t tail =
		word.zone < mm->zones ? vmemmap_shared_tail(mm, &mm->zone[word.zone], order) : 0;
	bool ok = true;

	if (!line && word.state != BLOCK_HUGE && word.state != BLOCK_NOHEAD)
		return true; /* under a leaf: all struct pages are there and writable */
	if (!line)
		ok = false;
	for (unsigned i = 0; i < PTES_PER_LINE && ok; i++) {
		const pte_t pte = pte_load(&line[i]);

		switch (word.state) {
		case BLOCK_HUGE:
		case BLOCK_NOHEAD:
			ok = i == 0 && word.state == BLOCK_HUGE
				     ? pte_writable(pte)
				     : pte_present(pte) && !pte_writable(pte) && !pte_dirty(pte) &&
					       pte_pfn(pte) == tail;
			break;
		case BLOCK_BARE:
		case BLOCK_UNOPENED:
			ok = !pte_present(pte);
			break;
		case BLOCK_FULL:
		case BLOCK_RESERVED:
			ok = pte_writable(pte);
			break;
		default:
			break;
		}
	}
	if (!ok)
		pr_err("accounting: the vmemmap line of block %u does not fit its state %s", index,
		       block_state_name(word.state));
	return ok;
}

/* Sums over all zones so far. */
static struct sums walked(const struct mm *mm, const struct walk *walks)
{
	struct sums sums = {0};

	for (unsigned z = 0; z < mm->zones; z++) {
		sums.free += walks[z].free + walks[z].small;
		sums.movable += walks[z].movable;
		sums.meta_blocks += walks[z].meta / BLOCK_FRAMES;
	}
	return sums;
}

/*
 * Check that the summary of a GiB, from which ranges are chosen, equals what the walk of its eight
 * sections found. `free` is checked only for whole GiB.
 */
static bool account_gib(const struct mm *mm, u64 number, struct sums before, struct sums after)
{
	const struct gib *gib = &mm->gib[number];
	const u64 free = after.free - before.free, movable = after.movable - before.movable,
		  meta = after.meta_blocks - before.meta_blocks;

	if ((!gib->whole || gib->free == free) && gib->movable == movable && gib->meta == meta)
		return true;
	pr_err("accounting: GiB %llu: counted %u frames free, %u movable, %u metadata blocks; "
	       "walked "
	       "%llu, %llu, %llu",
	       mm->first_gib + number, gib->free, gib->movable, gib->meta, free, movable, meta);
	return false;
}

static bool walk_section(struct mm *mm, u64 section, struct walk *walks)
{
	bool ok = true;

	for (u32 i = 0; i < SECTION_BLOCKS; i++) {
		const u32 index = (u32)(section * SECTION_BLOCKS) + i;

		if (!block_at(mm, index))
			break;
		if (section_state(mm, section) != SECTION_OPEN &&
		    block_look_at(mm, index).state != BLOCK_META)
			continue;
		ok &= walk_block(mm, index, walks);
		ok &= check_line(mm, index);
		ok &= check_reported(mm, index);
	}
	return ok;
}

static bool walk_sections(struct mm *mm, struct walk *walks)
{
	bool ok = true;

	for (u64 gib = 0; gib < mm->gibs; gib++) {
		const u64 first = (mm->first_gib + gib) * GIB_SECTIONS;
		const struct sums before = walked(mm, walks);

		for (u64 section = first; section < first + GIB_SECTIONS; section++)
			ok &= walk_section(mm, section, walks);
		ok &= account_gib(mm, gib, before, walked(mm, walks));
	}
	return ok;
}

/* ---- sums ---- */

static bool account_zone(struct zone *zone, const struct walk *walk)
{
	const struct mm *mm = zone->mm;
	u64 sum;
	bool ok = account_lists(zone);

	ok &= account_isolations(zone);
	ok &= account_agree("free blocks", zone, zone_free(zone) - zone->free_small, walk->free);
	ok &= account_agree("free small pages, by struct page,", zone, zone->free_small,
			    walk->small);
	ok &= account_agree("per-CPU lists", zone, pcp_count(mm, zone), walk->per_cpu);
	ok &= account_agree("boot allocations", zone, zone->boot, walk->boot);
	ok &= account_agree("reserved", zone, zone->reserved, walk->reserved);
	ok &= account_agree("bad frames", zone, zone->bad, walk->bad);
	ok &= account_agree("in transit", zone, zone->transit, walk->transit);
	sum = walk->free + walk->small + walk->per_cpu + walk->pool_free + walk->in_use +
	      walk->meta + walk->reserved + walk->boot + walk->transit + walk->bad + zone->unopened;
	ok &= account_agree("all owners together", zone, zone->ram, sum);
	return ok;
}

static bool account_totals(struct mm *mm, const struct pool *const pools[],
			   const struct walk *walks)
{
	struct mm_usage usage;
	u64 in_use = 0, pool_free = 0, meta = 0;

	mm_usage_read(mm, pools, &usage);
	for (unsigned z = 0; z < mm->zones; z++) {
		in_use += walks[z].in_use + mm->zone[z].boot;
		pool_free += walks[z].pool_free;
		meta += walks[z].meta;
	}
	if (usage.in_use == in_use && usage.pool_free == pool_free &&
	    usage.meta + usage.gated == meta)
		return true;
	pr_err("accounting: counters say %llu in use, %llu free in pools, %llu metadata memory; "
	       "the walk "
	       "%llu, %llu, %llu",
	       usage.in_use, usage.pool_free, usage.meta + usage.gated, in_use, pool_free, meta);
	return false;
}

bool mm_account(struct mm *mm, const struct pool *const pools[])
{
	static struct walk walks[ZONES_MAX];
	bool ok = true;

	for (unsigned z = 0; z < mm->zones; z++)
		walks[z] = (struct walk){0};
	ok &= walk_sections(mm, walks);
	for (unsigned z = 0; z < mm->zones; z++)
		ok &= account_zone(&mm->zone[z], &walks[z]);
	ok &= account_totals(mm, pools, walks);
	ok &= account_meta(mm);
	ok &= account_pools(mm, pools);
	ok &= account_idle(mm);
	ok &= account_refs(mm);
	ok &= account_watermarks(mm);
	return ok;
}

bool account_machine(void)
{
	bool ok;

	report_pause();
	ok = mm_account(&mm_kernel, machine_pools);
	report_resume();
	return ok;
}

void mm_usage_read(struct mm *mm, const struct pool *const pools[], struct mm_usage *usage)
{
	u64 blocks = 0;

	*usage = (struct mm_usage){0};
	for (unsigned z = 0; z < mm->zones; z++) {
		const struct zone *zone = &mm->zone[z];

		usage->ram += zone->ram;
		usage->free += zone_free(zone);
		usage->unopened += atomic_load_relaxed(&zone->unopened);
		usage->per_cpu += pcp_count(mm, zone);
		usage->in_use += (u64)pcp_in_use(mm, zone) + atomic_load_relaxed(&zone->boot);
		usage->transit += atomic_load_relaxed(&zone->transit);
		usage->bad += atomic_load_relaxed(&zone->bad);
		usage->reserved += atomic_load_relaxed(&zone->reserved);
	}
	for (node_t n = 0; n < mm->nodes; n++) {
		const struct meta *meta = &mm->node[n].meta;
		const u64 gated = atomic_load_relaxed(&meta->gated);

		blocks += atomic_load_relaxed(&meta->blocks);
		usage->gated += gated;
		usage->memmap_bytes += (atomic_load_relaxed(&meta->used) - gated) * PAGE_SIZE;
	}
	usage->meta = blocks * BLOCK_FRAMES - usage->gated;
	for (; pools && *pools; pools++) {
		usage->pool_free +=
			atomic_load_relaxed(&(*pools)->free) * order_pages((*pools)->order);
		usage->in_use +=
			atomic_load_relaxed(&(*pools)->in_use) * order_pages((*pools)->order);
	}
}

const struct pool *const machine_pools[] = {&pool_2m, &pool_1g, NULL};

void mm_usage(struct mm_usage *usage)
{
	mm_usage_read(&mm_kernel, machine_pools, usage);
}
