/*
 * Accounting by walking: see account.h.
 *
 * Two independent counts are made. One is by lists: what the free lists hold, entry by entry
 * (account_lists.c). The other is by blocks: every record of every open section and, within FULL
 * and RESERVED blocks, the owner of every struct page; of sections that were never opened, the boot
 * ranges. Both must agree with the counters, and their sum with the RAM of the zone.
 */
#include "mm/debug/account.h"

#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "mm/debug/account_lists.h"
#include "mm/debug/account_meta.h"
#include "mm/debug/account_refs.h"
#include "mm/hugetlb/pool.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/vmemmap.h"
#include "mm/page/pcp.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/report.h"
#include "mm/zone/section.h"

/* The owner of a frame. */
enum owner {
	HAS_FREE,  /* the free list of whole blocks */
	HAS_SMALL, /* that of small chunks */
	HAS_PER_CPU,
	HAS_POOL, /* free in a pool */
	HAS_USER,
	HAS_META,
	HAS_RESERVED,
	HAS_BOOT,
	HAS_BAD,
	HAS_TRANSIT,
	HAS_UNOPENED,
	OWNERS /* none: a hole, or a block whose frames have several owners */
};

/* Frames of one zone, or of all zones, as the walk found them. */
struct walk {
	u64 frames[OWNERS + 1]; /* the last counts nothing and is not read */
	u64 movable;            /* of the frames in use or free in pools */
};

u32 account_faults;

void account_wrong(const char *fmt, ...)
{
	char text[256];

	FORMAT_ARGS(text, sizeof(text), fmt);
	pr_err("accounting: %s", text);
	account_faults++;
}

void account_agree(const char *what, const struct zone *zone, u64 counted, u64 walked)
{
	if (counted != walked && zone)
		account_wrong("zone %u (node %u): %s counted %llu frames, walked %llu", zone->index,
			      zone->node, what, counted, walked);
	else if (counted != walked)
		account_wrong("%s: counted %llu, walked %llu", what, counted, walked);
}

/* ---- blocks and struct pages ---- */

/* A frame that is in use without a reference belongs to nobody and is lost. */
static void check_references(const struct page *page)
{
	if (page_head(page)->refcount == 0)
		account_wrong("frame %llx is neither free nor held, and has no references",
			      page_to_pfn(page));
}

/* The owner of a page that no CPU holds. Reserved ones are counted by the boot ranges. */
static enum owner owner_of_page(const struct page *page)
{
	if (page->flags & PAGE_BUDDY)
		return HAS_SMALL;
	if (page->flags & PAGE_BOOT)
		return HAS_BOOT;
	if (page->flags & PAGE_BAD)
		return HAS_BAD;
	return page->flags & PAGE_RESERVED ? OWNERS : HAS_USER;
}

/* Walk the 512 frames of a block that has all its struct pages, in chunks as their heads say. */
static void walk_pages(struct mm *mm, u32 index, struct walk *walks)
{
	const struct page *pages = block_page(mm, index);
	const u16 counted = block_look_at(mm, index).free_pages;
	u64 held[PCP_WORDS] = {0}, small = 0, count;

	pcp_held(mm, index, held);
	for (u64 i = 0; i < BLOCK_FRAMES; i += count) {
		const struct page *page = &pages[i];
		struct walk *walk = &walks[page->zone];
		/* the struct page of a held frame describes its previous state */
		const bool is_held = held[i / 64] >> i % 64 & 1;
		const enum owner owner = is_held ? HAS_PER_CPU : owner_of_page(page);
		u8 zone = ZONE_NONE;

		count = !is_held && (page->flags & (PAGE_BUDDY | PAGE_COMPOUND))
				? order_pages(page->order)
				: 1;
		walk->frames[owner] += count;
		small += owner == HAS_SMALL ? count : 0;
		if (owner == HAS_USER)
			check_references(page);
		if (page->flags & PAGE_MOVABLE)
			walk->movable += count;
		if (memmap_frame_kind(mm, block_pfn(index) + i, &zone) == FRAME_RESERVED)
			/* whatever its struct page says; holes are not RAM */
			walk->frames[HAS_RESERVED] += count;
	}
	if (small != counted)
		account_wrong("block %u: counted %u free small pages, walked %llu", index, counted,
			      small);
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
			walks[zone].frames[HAS_BAD]++;
			break;
		default:
			walks[zone].frames[HAS_RESERVED]++;
		}
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

/*
 * Is the run or block that `head` heads a single page in use, whichever struct pages it has? For a
 * 2 MiB page with all its struct pages walk_pages() finds out.
 */
static bool is_one_page(const struct mm *mm, struct block_word word, u32 head)
{
	if (word.state == BLOCK_FULL && word.order == GIGA_ORDER)
		return page_kind(block_page(mm, head)).order == GIGA_ORDER;
	return word.state == BLOCK_HUGE;
}

/* Was the block reported to the host though somebody may have written to it since? */
static void check_reported(struct mm *mm, u32 index)
{
	const struct block_word word = block_look_at(mm, index);
	struct block_word head;

	if (!block_word_is_reported(word))
		return;
	block_run_head(mm, index, &head);
	if (!(head.flags & BLOCK_TRANSIT) &&
	    ((word.state != BLOCK_BARE && word.state != BLOCK_HUGE) || !(head.flags & BLOCK_FREE)))
		account_wrong("block %u is %s with flags %x, and is said to be the host's", index,
			      block_state_name(word.state), word.flags);
}

/*
 * The owner of all frames of the run, page or block that `head` heads and `word` describes, or
 * OWNERS if struct pages tell.
 */
static enum owner owner_of_block(struct mm *mm, struct block_word word, u32 head)
{
	if (word.flags & BLOCK_TRANSIT)
		return HAS_TRANSIT;
	if (word.state == BLOCK_META)
		return HAS_META;
	if (word.flags & BLOCK_POOL_FREE)
		return HAS_POOL;
	if (word.flags & BLOCK_FREE)
		return HAS_FREE;
	if (word.state == BLOCK_HUGE && pcp_held(mm, head, (u64[PCP_WORDS]){0}))
		return HAS_PER_CPU;
	return (word.flags & BLOCK_POOL) || is_one_page(mm, word, head) ? HAS_USER : OWNERS;
}

static void walk_block(struct mm *mm, u32 index, struct walk *walks)
{
	struct block_word word;
	const u32 head = block_run_head(mm, index, &word);
	struct walk *walk = &walks[word.zone];
	enum owner owner;

	if (word.state == BLOCK_ABSENT)
		walk_given_up(mm, index, walks);
	if (word.state == BLOCK_UNOPENED || word.state == BLOCK_ABSENT)
		return;
	walk->movable += block_is_movable(mm, word, index) ? BLOCK_FRAMES : 0;
	owner = owner_of_block(mm, word, head);
	if (owner == OWNERS)
		walk_pages(mm, index, walks);
	walk->frames[owner] += BLOCK_FRAMES;
	if (owner == HAS_USER && !(word.flags & BLOCK_POOL)) /* without any while it is moved */
		check_references(block_page(mm, head));
}

/* May a line of a block in this state have this PTE, as its i-th? */
static bool pte_fits(struct block_word word, unsigned i, pte_t pte, pfn_t tail)
{
	if (word.state == BLOCK_HUGE && i == 0)
		return pte_writable(pte);
	switch (word.state) {
	case BLOCK_HUGE:
	case BLOCK_NOHEAD:
		return pte_present(pte) && !pte_writable(pte) && !pte_dirty(pte) &&
		       pte_pfn(pte) == tail;
	case BLOCK_BARE:
	case BLOCK_UNOPENED:
		return !pte_present(pte);
	case BLOCK_FULL:
	case BLOCK_RESERVED:
		return pte_writable(pte);
	default:
		return true;
	}
}

/*
 * Check that every tail PTE of every huge block is read-only, clean, and on the shared page, and
 * that every other line is as its state requires.
 */
static void check_line(struct mm *mm, u32 index)
{
	const struct block_word word = block_look_at(mm, index);
	const pte_t *line = vmemmap_line(mm, index);
	const unsigned order =
		word.state == BLOCK_NOHEAD || word.order == GIGA_ORDER ? GIGA_ORDER : BLOCK_ORDER;
	const pfn_t tail =
		word.zone < mm->zones ? vmemmap_shared_tail(mm, &mm->zone[word.zone], order) : 0;
	bool ok = line;

	if (!line && word.state != BLOCK_HUGE && word.state != BLOCK_NOHEAD)
		return; /* under a leaf: all struct pages are there and writable */
	for (unsigned i = 0; i < PTES_PER_LINE && ok; i++)
		ok = pte_fits(word, i, pte_load(&line[i]), tail);
	if (!ok)
		account_wrong("the vmemmap line of block %u does not fit its state %s", index,
			      block_state_name(word.state));
}

static struct walk sum_of(const struct mm *mm, const struct walk *walks)
{
	struct walk sum = {0};

	for (unsigned z = 0; z < mm->zones; z++) {
		sum.movable += walks[z].movable;
		for (enum owner owner = 0; owner < OWNERS; owner++)
			sum.frames[owner] += walks[z].frames[owner];
	}
	return sum;
}

/*
 * Check that the summary of a GiB, from which ranges are chosen, equals what the walk of its eight
 * sections found. `free` is checked only for whole GiB.
 */
static void account_gib(const struct mm *mm, u64 number, struct walk before, struct walk after)
{
	const struct gib *gib = &mm->gib[number];
	const u64 free = after.frames[HAS_FREE] + after.frames[HAS_SMALL] -
			 before.frames[HAS_FREE] - before.frames[HAS_SMALL],
		  movable = after.movable - before.movable,
		  meta = (after.frames[HAS_META] - before.frames[HAS_META]) / BLOCK_FRAMES;

	if ((gib->whole && gib->free != free) || gib->movable != movable || gib->meta != meta)
		account_wrong("GiB %llu: counted %u frames free, %u movable, %u metadata blocks; "
			      "walked %llu, %llu, %llu",
			      mm->first_gib + number, gib->free, gib->movable, gib->meta, free,
			      movable, meta);
}

/* Count the frames of a section that was never opened, by the boot ranges. */
static void walk_unopened(const struct mm *mm, u64 section, struct walk *walks)
{
	const phys_t first = section * SECTION_BYTES;

	for (size_t i = 0; i < mm->memory->count; i++) {
		const struct memblock_range *ram = &mm->memory->range[i];
		const phys_t start = MAX(ram->start, first),
			     end = MIN(ram->end, first + SECTION_BYTES);

		if (start < end)
			walks[memmap_zone_of(mm, start >> PAGE_SHIFT, ram->node)]
				.frames[HAS_UNOPENED] +=
				(end - start -
				 memblock_list_bytes(mm->reserved, start, end, OWNER_ANY)) >>
				PAGE_SHIFT;
	}
}

static void walk_section(struct mm *mm, u64 section, struct walk *walks)
{
	if (section_state(mm, section) == SECTION_UNOPENED)
		walk_unopened(mm, section, walks);
	for (u32 i = 0; i < SECTION_BLOCKS; i++) {
		const u32 index = (u32)(section * SECTION_BLOCKS) + i;

		if (!block_at(mm, index))
			break;
		if (section_state(mm, section) != SECTION_OPEN &&
		    block_look_at(mm, index).state != BLOCK_META)
			continue;
		walk_block(mm, index, walks);
		check_line(mm, index);
		check_reported(mm, index);
	}
}

static void walk_sections(struct mm *mm, struct walk *walks)
{
	for (u64 gib = 0; gib < mm->gibs; gib++) {
		const u64 first = (mm->first_gib + gib) * GIB_SECTIONS;
		const struct walk before = sum_of(mm, walks);

		for (u64 section = first; section < first + GIB_SECTIONS; section++)
			walk_section(mm, section, walks);
		account_gib(mm, gib, before, sum_of(mm, walks));
	}
}

/* ---- sums ---- */

static void account_zone(struct zone *zone, const struct walk *walk)
{
	const struct {
		const char *what;
		u64 frames;
	} counted[OWNERS] = {
		[HAS_FREE] = {"free blocks", zone_free(zone) - zone->free_small},
		[HAS_SMALL] = {"free small pages, by struct page,", zone->free_small},
		[HAS_PER_CPU] = {"per-CPU lists", pcp_count(zone->mm, zone)},
		[HAS_BOOT] = {"boot allocations", zone->boot},
		[HAS_RESERVED] = {"reserved", zone->reserved},
		[HAS_BAD] = {"bad frames", zone->bad},
		[HAS_TRANSIT] = {"in transit", zone->transit},
		[HAS_UNOPENED] = {"unopened", zone->unopened},
	};
	u64 sum = 0;

	account_lists(zone);
	account_isolations(zone);
	for (enum owner owner = 0; owner < OWNERS; owner++) {
		sum += walk->frames[owner];
		if (counted[owner].what)
			account_agree(counted[owner].what, zone, counted[owner].frames,
				      walk->frames[owner]);
	}
	account_agree("all owners together", zone, zone->ram, sum);
}

/* Only all zones together have counts of these. */
static void account_totals(struct mm *mm, const struct walk *sum)
{
	struct mm_usage usage;

	mm_usage_read(mm, &usage);
	account_agree("frames in use", NULL, usage.in_use,
		      sum->frames[HAS_USER] + sum->frames[HAS_BOOT]);
	account_agree("frames free in pools", NULL, usage.pool_free, sum->frames[HAS_POOL]);
	account_agree("frames of metadata memory", NULL, usage.meta + usage.gated,
		      sum->frames[HAS_META]);
}

bool mm_account(struct mm *mm)
{
	static struct walk walks[ZONES_MAX];
	struct walk sum;

	account_faults = 0;
	memset(walks, 0, sizeof(walks));
	walk_sections(mm, walks);
	sum = sum_of(mm, walks);
	for (unsigned z = 0; z < mm->zones; z++)
		account_zone(&mm->zone[z], &walks[z]);
	account_totals(mm, &sum);
	account_meta(mm);
	account_pools(mm);
	account_idle(mm);
	account_refs(mm);
	return account_faults == 0;
}

bool account_machine(void)
{
	bool ok;

	report_pause();
	ok = mm_account(&mm_kernel);
	report_resume();
	return ok;
}

void mm_usage_read(struct mm *mm, struct mm_usage *usage)
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
	for (const struct pool *pool = mm->pools; pool; pool = pool->next) {
		usage->pool_free += atomic_load_relaxed(&pool->free) * order_pages(pool->order);
		usage->in_use += atomic_load_relaxed(&pool->in_use) * order_pages(pool->order);
	}
}

void mm_usage(struct mm_usage *usage)
{
	mm_usage_read(&mm_kernel, usage);
}
