/*
 * Opening sections: see section.h. Where the struct pages of mapped ones lie: section_memmap.c.
 * Closing: section_close.c.
 *
 * The order of the steps inside, for an on-demand section:
 *
 * 1. The table of block records, so that block_at() answers.
 * 2. The table of PTEs.
 * 3. The free blocks are published.
 * 4. The blocks that need private struct pages. This must come last, because those frames come from
 *    metadata memory, which may have to grow into one of the blocks just published.
 */
#include "mm/zone/section_memmap.h"

#include "kernel/core/printk.h"
#include "kernel/core/wait.h"
#include "kernel/lib/string.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/enter.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/vmemmap.h"
#include "mm/zone/buddy.h"
#include "mm/zone/buddy_small.h"
#include "mm/zone/gigablock.h"
#include "mm/zone/meta_grow.h"

enum { OPEN_TURNS = 64 };

u8 *section_slot(const struct mm *mm, u64 section)
{
	const u64 gib = section / GIB_SECTIONS - mm->first_gib;

	return gib < mm->gibs ? &mm->gib[gib].section[section % GIB_SECTIONS] : NULL;
}

u8 section_state(const struct mm *mm, u64 section)
{
	const u8 *slot = section_slot(mm, section);

	return slot ? atomic_load_acquire(slot) & SECTION_STATE_MASK : SECTION_ABSENT;
}

enum section_style section_style(const struct mm *mm, u64 section)
{
	const u8 *slot = section_slot(mm, section);

	return slot && (atomic_load_acquire(slot) & SECTION_MAPPED) ? SECTION_MAPPED
								    : SECTION_ON_DEMAND;
}

u64 sections_moving(const struct mm *mm)
{
	u64 moving = 0;

	for (u64 section = section_first(mm); section < section_end(mm); section++) {
		const u8 state = section_state(mm, section);

		moving += state == SECTION_OPENING || state == SECTION_CLOSING;
	}
	return moving;
}

u64 gib_best(const struct zone *zone, gib_key_fn *key, const void *ctx)
{
	const u64 end = zone_end_gib(zone);
	u64 best = 0;

	for (u64 number = zone_first_gib(zone); number < end; number++)
		best = MAX(best, key(ctx, number));
	return best;
}

u64 section_first(const struct mm *mm)
{
	return mm->first_gib * GIB_SECTIONS;
}

u64 section_end(const struct mm *mm)
{
	return (mm->first_gib + mm->gibs) * GIB_SECTIONS;
}

/* Open the block records of the section's GiB. A CPU that loses the race gives its table back. */
static int open_records(struct mm *mm, struct node *node, u64 section)
{
	struct gib *gib = &mm->gib[section / GIB_SECTIONS - mm->first_gib];
	struct spinlock *lock = &mm->table_lock[section / GIB_SECTIONS % TABLE_LOCKS];
	struct block *blocks;
	pfn_t pfn;
	bool late;

	if (atomic_load_acquire(&gib->blocks))
		return 0;
	pfn = meta_take_run(node, GIB_RECORD_FRAMES);
	if (pfn == PFN_NONE)
		return -ENOMEM;
	blocks = phys_to_virt(pfn << PAGE_SHIFT);
	_Static_assert(BLOCK_UNOPENED == 0, "a zeroed table says unopened");
	memset(blocks, 0, GIB_RECORD_FRAMES * PAGE_SIZE);
	spin_lock(lock);
	late = gib->blocks != NULL;
	if (!late)
		atomic_store_release(&gib->blocks, blocks);
	spin_unlock(lock);
	for (unsigned i = 0; late && i < GIB_RECORD_FRAMES; i++)
		meta_give(mm, pfn + i, 0);
	return 0;
}

static void plan_blocks(struct opening *o)
{
	const pfn_t end = block_pfn(o->first + SECTION_BLOCKS);
	pfn_t alike = 0;

	for (unsigned i = 0; i < SECTION_BLOCKS; i++) {
		const pfn_t pfn = block_pfn(o->first + i);

		if (pfn + BLOCK_FRAMES <= alike) { /* as the one before */
			o->plan[i] = o->plan[i - 1];
			o->zone[i] = o->zone[i - 1];
			continue;
		}
		alike = memmap_frames_alike(o->mm, pfn, end);
		o->plan[i] = (u8)memmap_block_plan(o->mm, o->first + i, &o->zone[i]);
		if (o->zone[i] != ZONE_NONE && !o->node)
			o->node = zone_node(&o->mm->zone[o->zone[i]]);
	}
	if (o->node)
		o->node = &o->mm->node[o->node->meta_node];
}

static void init_special_page(struct page *page, enum frame_kind kind, u8 zone)
{
	static const u16 flags[] = {[FRAME_HOLE] = PAGE_RESERVED,
				    [FRAME_RESERVED] = PAGE_RESERVED,
				    [FRAME_BAD] = PAGE_RESERVED | PAGE_BAD,
				    [FRAME_BOOT] = PAGE_BOOT,
				    [FRAME_FREE] = 0};

	page->flags = flags[kind];
	page->refcount = kind == FRAME_BOOT;
	page->zone = zone;
}

void section_init_special(struct mm *mm, u32 index, struct page *pages, u8 block_zone)
{
	const pfn_t first = block_pfn(index), end = first + BLOCK_FRAMES;

	memmap_init_pages(pages, BLOCK_FRAMES, block_zone);
	for (pfn_t pfn = first, next; pfn < end; pfn = next) {
		u8 zone = block_zone;
		const enum frame_kind kind = memmap_frame_kind(mm, pfn, &zone);

		next = memmap_frames_alike(mm, pfn, end);
		for (pfn_t i = pfn; i < next; i++)
			init_special_page(&pages[i - first], kind, zone);
	}
}

/* Free [pfn, end), which lies in a block of this zone, in the largest aligned chunks. */
static void free_frames(struct zone *zone, pfn_t pfn, pfn_t end)
{
	zone_lock(zone);
	counter_sub(&zone->unopened, end - pfn);
	while (pfn < end) {
		const unsigned aligned = (unsigned)__builtin_ctzll(pfn | 1 << (PAGE_ORDERS - 1)),
			       fits = 63 - (unsigned)__builtin_clzll(end - pfn);
		const unsigned order = MIN(aligned, fits);

		buddy_free_pages(zone, pfn_page(zone->mm, pfn), order);
		pfn += order_pages(order);
	}
	zone_unlock(zone);
}

static void free_special_pages(struct mm *mm, u32 index)
{
	const pfn_t end = block_pfn(index + 1);

	for (pfn_t pfn = block_pfn(index), next; pfn < end; pfn = next) {
		u8 zone;

		next = memmap_frames_alike(mm, pfn, end);
		if (memmap_frame_kind(mm, pfn, &zone) == FRAME_FREE)
			free_frames(&mm->zone[zone], pfn, next);
	}
}

/*
 * Reserve frames for private struct pages that may stay for ever: LASTING ones of this node if it
 * has more than it keeps for its sections, else TAILS, or else LASTING ones of the nearest node
 * that has any. A block that got none would be lost for good. So if a node's metadata memory is
 * short, or cannot be waited for (meta_grow.c), other nodes help out. NULL: no node has any.
 */
static struct node *reserve_private(struct node *node, enum meta_kind *kind)
{
	*kind = META_LASTING;
	if (meta_reserve_now(node, META_LASTING, MEMMAP_FRAMES_PER_BLOCK) == 0)
		return node;
	if (meta_reserve_tails(node, MEMMAP_FRAMES_PER_BLOCK, kind) == 0)
		return node;
	*kind = META_LASTING;
	for (node_t i = 0; i < node->mm->nodes; i++) {
		struct node *from = node_near(node, i);

		if (meta_reserve_emergency(from, MEMMAP_FRAMES_PER_BLOCK) == 0)
			return from;
	}
	return NULL;
}

/* Private struct pages for a block of an on-demand section. */
static int give_private_pages(struct opening *o, u32 index, u8 zone)
{
	enum meta_kind kind;
	struct node *from = reserve_private(o->node, &kind);
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK];
	struct page *pages;

	if (!from)
		return -ENOMEM;
	for (unsigned i = 0; i < MEMMAP_FRAMES_PER_BLOCK; i++)
		frames[i] = meta_take(from, kind);
	if (from != o->node)
		meta_top_up(from);
	vmemmap_set_private(o->mm, index, 0, frames);
	/* write through the vmemmap, because the frames need not be neighbours */
	pages = block_page(o->mm, index);
	section_init_special(o->mm, index, pages, zone);
	return 0;
}

void section_publish_records(struct opening *o, u32 first, u32 count, enum block_state state)
{
	struct block *blocks = block_existing(o->mm, first);

	for (u32 i = 0; i < count; i++)
		blocks[i].next = blocks[i].prev = BLOCK_NONE;
	block_put_states(o->mm, first, count,
			 BLOCK_WORD(.state = (u8)state, .type = (u8)gigablock_type(o->mm, first),
				    .flags = o->mapped ? BLOCK_MAPPED : 0),
			 &o->zone[first - o->first]);
}

void section_count_opened(struct zone *zone, u64 frames)
{
	zone_lock(zone);
	counter_sub(&zone->unopened, frames);
	zone_unlock(zone);
}

/*
 * A block that gets no struct pages cannot be used. All of its RAM is reserved from now on, counted
 * frame by frame in the zone that each frame belongs to. Boot memory in it stays with its holder
 * for good.
 */
static void give_up_block(struct opening *o, u32 index)
{
	pr_warn("memory: block %u gets no struct pages, its RAM stays unused", index);
	for (unsigned i = 0; i < BLOCK_FRAMES; i++) {
		u8 zone = ZONE_NONE;
		const enum frame_kind kind = memmap_frame_kind(o->mm, block_pfn(index) + i, &zone);

		if (kind == FRAME_FREE)
			section_count_opened(&o->mm->zone[zone], 1);
		else if (kind == FRAME_BOOT)
			atomic_fetch_sub(&o->mm->zone[zone].boot, 1);
		else
			continue;
		atomic_fetch_add(&o->mm->zone[zone].reserved, 1);
	}
	section_publish_records(o, index, 1, BLOCK_ABSENT);
}

/*
 * Publish the blocks with holes or boot allocations, one by one. Blocks that were given up before,
 * and the node's first metadata block, stay as they are.
 */
static void publish_special(struct opening *o)
{
	for (unsigned i = 0; i < SECTION_BLOCKS; i++) {
		const u32 index = o->first + i;

		if (o->plan[i] != PLAN_BOOT && o->plan[i] != PLAN_MIXED)
			continue;
		if (block_look_at(o->mm, index).state != BLOCK_UNOPENED)
			continue;
		if (!o->mapped && give_private_pages(o, index, o->zone[i]) < 0) {
			give_up_block(o, index);
			continue;
		}
		section_publish_records(o, index, 1,
					o->plan[i] == PLAN_BOOT ? BLOCK_FULL : BLOCK_RESERVED);
		free_special_pages(o->mm, index);
	}
}

static bool plan_is_free(const struct opening *o, unsigned i)
{
	return o->plan[i] == PLAN_FREE && o->first + i != o->memmap;
}

/*
 * Publish the whole free blocks on their zones' lists. Neighbours are freed together, as far as the
 * next multiple of the number of blocks that are freed in one turn.
 */
static void publish_free(struct opening *o)
{
	const u32 step = o->mapped ? o->make->step : SECTION_BLOCKS;

	for (unsigned i = 0; i < SECTION_BLOCKS;) {
		unsigned n = 0;

		if (o->plan[i] == PLAN_ABSENT &&
		    block_look_at(o->mm, o->first + i).state == BLOCK_UNOPENED)
			section_publish_records(o, o->first + i, 1, BLOCK_ABSENT);
		while (i + n < ALIGN_DOWN(i, step) + step && plan_is_free(o, i + n) &&
		       o->zone[i + n] == o->zone[i])
			n++;
		if (n > 0) {
			struct zone *zone = &o->mm->zone[o->zone[i]];

			section_publish_records(o, o->first + i, n,
						o->mapped ? BLOCK_FULL : BLOCK_BARE);
			zone_lock(zone);
			buddy_free_range(zone, o->first + i, n,
					 o->mapped ? FREE_MAPPED : FREE_BARE);
			counter_sub(&zone->unopened, (u64)n * BLOCK_FRAMES);
			zone_unlock(zone);
		}
		i += MAX(n, 1);
	}
}

/*
 * Install the page table of a section that is OPENING. 0, or -ENOMEM with nothing lost.
 */
static int open_on_demand(struct opening *o)
{
	pfn_t table;

	if (meta_reserve_emergency(o->node, 1) < 0)
		return -ENOMEM;
	table = meta_take(o->node, META_LASTING);
	memset(phys_to_virt(table << PAGE_SHIFT), 0, PAGE_SIZE);
	if (vmemmap_install(o->mm, o->node, o->section, pte_make_table(table)) < 0) {
		meta_give(o->mm, table, 0);
		return -ENOMEM;
	}
	mm_count(o->mm, COUNT_TABLES, 1);
	return 0;
}

/* The caller holds the state OPENING. On an error it makes the section unopened again. */
static int open_claimed(struct opening *o)
{
	int err = open_records(o->mm, o->node, o->section);

	if (err)
		return err;
	/* a record published by section_choose_memmap() says whether it is mapped */
	o->mapped = o->style == SECTION_MAPPED;
	o->mapped = o->mapped && section_choose_memmap(o);
	err = o->mapped ? section_open_mapped(o) : open_on_demand(o);
	if (err)
		return err;
	publish_free(o);
	meta_top_up(o->node);
	publish_special(o);
	mm_count(o->mm, COUNT_SECTIONS_OPENED, 1);
	wait_moved(WAIT_OPENING);
	return 0;
}

/* Returns 0 if the section is unopened, else the error that its state means. */
static int unopened_or_why(u8 was)
{
	switch (was & SECTION_STATE_MASK) {
	case SECTION_ABSENT:
		return -ENODEV;
	case SECTION_OPEN:
		return -EEXIST;
	case SECTION_UNOPENED:
		return 0;
	default:
		return -EAGAIN;
	}
}

static int open_once(struct opening *o)
{
	struct mm *mm = o->mm;
	u8 *slot = section_slot(mm, o->section);
	u8 was = atomic_load_acquire(slot);
	int err = unopened_or_why(was);

	if (err)
		return err;
	if (!atomic_cas(slot, was, (u8)SECTION_OPENING))
		return -EAGAIN;
	err = open_claimed(o);
	atomic_store_release(slot, (u8)(err ? SECTION_UNOPENED
					    : SECTION_OPEN | (o->mapped ? SECTION_MAPPED : 0)));
	return err;
}

/*
 * Retry with more metadata memory. Many CPUs that open sections at once can use up the emergency
 * frames before one of them has restored them. The record table of a GiB needs contiguous frames;
 * if metadata memory has only scattered ones, one more block provides them.
 */
static int open_trying(struct opening *o)
{
	int err = -ENOMEM;

	for (unsigned turn = 0; turn < OPEN_TURNS; turn++) {
		u64 all;

		err = open_once(o);
		if (err != -ENOMEM)
			break;
		all = atomic_load_relaxed(&o->node->meta.free[META_LASTING]);
		if (meta_grow(o->node, META_LASTING, turn < OPEN_TURNS / 2 ? 1 : all + 1) < 0)
			break;
	}
	return err;
}

static int plan(struct opening *o, struct mm *mm, u64 section, enum section_style style,
		const struct memmap_make *make)
{
	const u8 *slot = section_slot(mm, section);
	const int err =
		fail_here(&mm->fail, FAIL_OPEN)
			? -ENOMEM
			: unopened_or_why(slot ? atomic_load_acquire(slot) : SECTION_ABSENT);

	*o = (struct opening){.mm = mm,
			      .section = section,
			      .style = style,
			      .make = make,
			      .first = (u32)(section * SECTION_BLOCKS),
			      .memmap = BLOCK_NONE};
	if (!err)
		plan_blocks(o);
	return err;
}

int section_open_alone(struct mm *mm, u64 section, enum section_style style,
		       const struct memmap_make *make)
{
	struct opening o;
	const int err = plan(&o, mm, section, style, make);

	return err ? err : open_trying(&o);
}

int section_open_by(struct mm *mm, u64 section, enum section_style style,
		    const struct memmap_make *make)
{
	struct opening o;
	const int err = plan(&o, mm, section, style, make);

	if (err)
		return err;
	if (style == SECTION_MAPPED && section_zone(&o))
		section_open_home(section_zone(&o), section, make);
	return open_trying(&o);
}

int section_open(struct mm *mm, u64 section, enum section_style style)
{
	return section_open_by(mm, section, style, &memmap_makes[MAKE_STREAM]);
}

/* Open a section, or wait while another CPU opens or closes it. Returns 0 once it is open. */
static int open_or_wait(struct mm *mm, u64 section, enum section_style style, struct wait *wait)
{
	while (section_state(mm, section) != SECTION_OPEN) {
		int err = section_open(mm, section, style);

		if (err == -EEXIST)
			return 0;
		if (err == 0)
			continue;
		if (err != -EAGAIN || wait->late > 0)
			return err;
		wait_spin(wait, CPU_NONE);
	}
	return 0;
}

int section_open_range(struct mm *mm, u32 first, u32 count, enum section_style style)
{
	struct wait wait = wait_begin(WAIT_RANGE, "another CPU that opens or closes a section");
	int err = 0;

	for (u64 section = first / SECTION_BLOCKS; !err && section * SECTION_BLOCKS < first + count;
	     section++)
		err = open_or_wait(mm, section, style, &wait);
	return err == -ENODEV ? -EINVAL : err;
}

int section_open_next(struct zone *zone, enum section_style style)
{
	struct mm *mm = zone->mm;
	const u64 first = zone->start_pfn / SECTION_FRAMES;
	const u64 end = DIV_ROUND_UP(zone->end_pfn, SECTION_BLOCKS * BLOCK_FRAMES);
	const u64 start = atomic_load_relaxed(&zone->open_cursor);

	if (atomic_load_relaxed(&zone->unopened) == 0)
		return -ENOENT;
	for (u64 n = 0; n < end - first; n++) {
		const u64 section = first + (start - first + n) % (end - first);
		int err;

		if (section_state(mm, section) != SECTION_UNOPENED)
			continue;
		atomic_store_relaxed(&zone->open_cursor, section + 1 < end ? section + 1 : first);
		err = section_open(mm, section, style);
		if (err == 0 || err == -ENOMEM)
			return err;
	}
	return -ENOENT;
}
