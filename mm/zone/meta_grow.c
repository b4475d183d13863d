/*
 * Metadata memory grows and shrinks by whole blocks: see meta.h.
 *
 * A new block comes from the first of these sources that has one:
 *
 * 1. a bare block in a GiB that has metadata memory already, or is tainted (gigablock.h), so that
 *    memory that can never move stays together; placed by GiB, then any free block there;
 * 2. a block of a section opened for metadata memory, at the far end (opening needs a few frames,
 *    for which META_EMERGENCY is kept);
 * 3. any bare block;
 * 4. a free full block of a mapped section, as it is;
 * 5. a free huge block, made bare with a round;
 * 6. a free full block, made huge and then bare.
 *
 * So a split succeeds while a node has two free blocks in any state.
 *
 * A section that is opened for one node may take its frames from another node's metadata memory,
 * where borders of nodes lie inside sections. With three stretches of memory that belong to nodes
 * A, B, A, each node can need the other. So one CPU at a time makes metadata memory grow, whichever
 * node's it is, and that CPU may make another node's grow on the way. If it comes back to a node
 * that it is growing already, it opens no further section, and takes only a bare block that is
 * there. This happens while it opens a section full of boot memory, which needs struct pages.
 *
 * A descriptor (maps and lots) costs 608 bytes in a metadata frame. Spare ones are kept, so a block
 * of tails can always be added.
 */
#include "mm/zone/meta_grow.h"

#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/wait.h"
#include "kernel/lib/string.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/enter.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/meta_gate.h"
#include "mm/zone/gigablock.h"
#include "mm/zone/migratetype.h"
#include "mm/zone/section_memmap.h"
#include "mm/zone/transit.h"

enum {
	DESCRIPTORS_PER_FRAME = PAGE_SIZE / sizeof(struct meta_block),
	TRIM_KEEP = 128,
	FLUSHES_MAX = 8
};

static void add_spares(struct meta *meta, pfn_t pfn)
{
	struct meta_block *descriptors = phys_to_virt(pfn << PAGE_SHIFT);

	for (unsigned i = 0; i < DESCRIPTORS_PER_FRAME; i++) {
		descriptors[i].next = meta->spare;
		meta->spare = &descriptors[i];
	}
	meta->spare_frames++;
}

/*
 * Descriptor of the block below `index` if both hold sections' struct pages for this node, else
 * NULL. Homes lie side by side (section_memmap.c), so the descriptor exists if sections are opened
 * upwards. Metadata lock held.
 */
static struct meta_block *memmap_below(const struct node *node, u32 index)
{
	const struct block *below = block_at(node->mm, index - 1); /* for block 0 there is none */

	/*
	 * The mark is set and cleared under the metadata lock of its node. If that is this node,
	 * the mark stays while we look.
	 */
	if (!below || !(block_look(below).flags & BLOCK_MEMMAP) ||
	    block_meta_node(node->mm, index - 1) != node)
		return NULL;
	return below->meta;
}

/*
 * The link to the block, or the link where it belongs: lists are in order of address. The list of
 * META_MEMMAP has one block for each section, 8192 in 1 TiB, and all CPUs open sections at once. So
 * that list is searched only if the block below is not on it. Metadata lock held.
 */
static struct meta_block **place_of(struct node *node, enum meta_kind kind, u32 index)
{
	struct meta_block *below = kind == META_MEMMAP ? memmap_below(node, index) : NULL;
	struct meta_block **at = below ? &below->next : &node->meta.list[kind];

	while (*at && (*at)->block < index)
		at = &(*at)->next;
	return at;
}

/* Metadata lock held. */
static void insert_block(struct meta *meta, struct meta_block *new)
{
	struct meta_block **at = place_of(new->node, new->kind, new->block);

	new->next = *at;
	*at = new;
	meta->hint[new->kind] = NULL;
	atomic_fetch_add(&gib_of(new->node->mm, new->block)->meta, 1); /* see became_clean() */
	counter_add(&meta->blocks, 1);
	counter_add(&meta->used, new->used);
	counter_add(&meta->free[new->kind], BLOCK_FRAMES - new->used);
	meta->unused[new->kind] += new->used == 0;
}

/* Turn one reserved frame into spare descriptors. No lock held. */
static int get_spares(struct node *node)
{
	struct meta *meta = &node->meta;
	pfn_t pfn;

	if (meta_reserve_emergency(node, 1) < 0)
		return -ENOMEM;
	pfn = meta_take(node, META_LASTING);
	spin_lock(&meta->lock);
	add_spares(meta, pfn);
	spin_unlock(&meta->lock);
	return 0;
}

/* Take a descriptor for a new block; NULL if there is none, and no frame for more. No lock held. */
static struct meta_block *take_spare(struct node *node)
{
	struct meta *meta = &node->meta;
	struct meta_block *spare;

	do { /* again if other CPUs took the descriptors that this CPU has added */
		spin_lock(&meta->lock);
		spare = meta->spare;
		if (spare)
			meta->spare = spare->next;
		spin_unlock(&meta->lock);
	} while (!spare && get_spares(node) == 0);
	return spare;
}

static void give_spare(struct meta *meta, struct meta_block *spare)
{
	spin_lock(&meta->lock);
	spare->next = meta->spare;
	meta->spare = spare;
	spin_unlock(&meta->lock);
}

static void add_block(struct node *node, struct meta_block *new, u32 index, enum meta_kind kind,
		      unsigned used)
{
	struct meta *meta = &node->meta;

	spin_lock(&meta->lock);
	*new = (struct meta_block){
		.node = node, .block = index, .kind = (u16)kind, .used = (u16)used};
	for (unsigned i = 0; i < used; i++)
		new->used_map[i / 64] |= 1ULL << (i % 64);
	block_at(node->mm, index)->meta = new;
	if (kind == META_MEMMAP)
		block_set_flags(block_at(node->mm, index), BLOCK_MEMMAP);
	insert_block(meta, new);
	spin_unlock(&meta->lock);
	gigablock_taint(block_zone(node->mm, index), index);
}

int meta_add_block(struct node *node, u32 index, enum meta_kind kind, unsigned used)
{
	struct meta_block *new = take_spare(node);

	if (!new)
		return -ENOMEM;
	add_block(node, new, index, kind, used);
	return 0;
}

/* Metadata lock held. */
static void unlink_block(struct meta *meta, struct meta_block *old)
{
	struct meta_block **at = place_of(old->node, old->kind, old->block);

	ASSERT(*at == old, "metadata block %u is not where its address says", old->block);
	*at = old->next;
	meta->hint[old->kind] = NULL;
	atomic_add_relaxed(&gib_of(old->node->mm, old->block)->meta, (u16)-1);
	counter_sub(&meta->blocks, 1);
	counter_sub(&meta->used, old->used);
	counter_sub(&meta->free[old->kind], (u64)(BLOCK_FRAMES - old->used));
	meta->unused[old->kind] -= old->used == 0;
	gate_forget_block(meta, old);
	old->next = meta->spare;
	meta->spare = old;
}

int meta_remove_block(struct node *node, u32 index, unsigned own)
{
	struct meta *meta = &node->meta;
	struct meta_block *block = block_at(node->mm, index)->meta;
	int err = -EBUSY;

	spin_lock(&meta->lock);
	if (block->used == own + block->gated &&
	    meta->free[block->kind] - (u64)(BLOCK_FRAMES - block->used) >=
		    meta->reserved[block->kind]) {
		unlink_block(meta, block);
		block_clear_flags(block_at(node->mm, index), BLOCK_MEMMAP);
		block_at(node->mm, index)->owner = 0;
		err = 0;
	}
	spin_unlock(&meta->lock);
	return err;
}

/*
 * Take a bare block near existing metadata blocks: a GiB without any metadata memory can become a
 * 1 GiB page some day. With `any`, a free block in any other state is made bare first. The search
 * begins where the last one ended.
 */
static u32 take_near_meta(struct node *node, struct zone *zone, bool any)
{
	const struct mm *mm = zone->mm;
	const u64 near = atomic_load_relaxed(&node->meta.near);
	u32 index = BLOCK_NONE;

	if (!any && atomic_load_relaxed(&zone->free_class[FREE_BARE]) == 0)
		return BLOCK_NONE;
	for (u64 n = 0; n < mm->gibs && index == BLOCK_NONE; n++) {
		const u64 gib = (near + n) % mm->gibs;
		const u16 meta = atomic_load_relaxed(&mm->gib[gib].meta);
		const u32 first = (u32)(mm->first_gib + gib) * GIB_BLOCKS;
		const bool tainted = atomic_load_relaxed(&mm->gib[gib].tainted);

		if ((meta > 0 || tainted) && meta < GIB_BLOCKS &&
		    block_pfn(first) < zone->end_pfn &&
		    block_pfn(first + GIB_BLOCKS) > zone->start_pfn &&
		    (!any || mm_upward.bare_in(zone, first, GIB_BLOCKS)))
			index = block_take_in(zone, first, GIB_BLOCKS, TAKE_BARE, BLOCK_META);
		if (index != BLOCK_NONE)
			atomic_store_relaxed(&node->meta.near, gib);
	}
	return index;
}

/*
 * No GiB with metadata memory has room left, so begin another, at the far end from where other
 * callers open sections. A section full of boot memory only costs frames, so it comes last
 * (`full`).
 */
static bool open_for_meta(struct zone *zone, bool full)
{
	for (u64 section = DIV_ROUND_UP(zone->end_pfn, SECTION_FRAMES);
	     section-- > zone->start_pfn / SECTION_FRAMES;) {
		if (section_state(zone->mm, section) != SECTION_UNOPENED ||
		    (!full && !section_has_free(zone, section)))
			continue;
		if (section_open(zone->mm, section, SECTION_ON_DEMAND) == 0)
			return true;
	}
	return false;
}

static u32 take_for_meta(struct zone *zone)
{
	u32 index = BLOCK_NONE;

	while (index == BLOCK_NONE && open_for_meta(zone, false))
		index = block_take_one(zone, FREE_BARE, BLOCK_META);
	if (index == BLOCK_NONE)
		index = block_take_one(zone, FREE_BARE, BLOCK_META);
	if (index == BLOCK_NONE)
		index = block_take_one(zone, FREE_MAPPED, BLOCK_META);
	if (index == BLOCK_NONE && mm_upward.bare_free_huge(zone, HVO_BARE_BATCH) > 0)
		index = block_take_one(zone, FREE_BARE, BLOCK_META);
	if (index == BLOCK_NONE && mm_upward.huge_free_full(zone, 1) > 0 &&
	    mm_upward.bare_free_huge(zone, 1) > 0)
		index = block_take_one(zone, FREE_BARE, BLOCK_META);
	while (index == BLOCK_NONE && open_for_meta(zone, true))
		index = block_take_one(zone, FREE_BARE, BLOCK_META);
	return index;
}

void meta_leave_block(struct zone *zone, u32 index)
{
	const enum block_state to = block_state_without_use(zone->mm, index);

	zone_lock(zone);
	block_begin(zone, index, BLOCK_ORDER, to);
	block_set_state(zone->mm, index, to);
	zone_unlock(zone);
	block_publish_free(zone, index, BLOCK_ORDER);
}

/* `inside`: open no section. */
static u32 take_anywhere(struct node *node, bool inside)
{
	u32 index = BLOCK_NONE;

	for (int kind = ZONE_NORMAL; kind >= 0 && index == BLOCK_NONE; kind--)
		if (node_zone(node, kind))
			index = take_near_meta(node, node_zone(node, kind), false);
	for (int kind = ZONE_NORMAL;
	     !inside && node->mm->gigablock && kind >= 0 && index == BLOCK_NONE; kind--)
		if (node_zone(node, kind))
			index = take_near_meta(node, node_zone(node, kind), true);
	for (int kind = ZONE_NORMAL; kind >= 0 && index == BLOCK_NONE; kind--)
		if (node_zone(node, kind))
			index = inside ? block_take_one(node_zone(node, kind), FREE_BARE,
							BLOCK_META)
				       : take_for_meta(node_zone(node, kind));
	return index;
}

/*
 * Metadata memory has taken a block among movable ones. Make the free blocks around it unmovable,
 * as many as the struct pages of all the node's memory need: one in 64. Movable pages get such
 * blocks last. So metadata memory finds room here when it grows again, and does not follow movable
 * pages into every GiB.
 */
static void keep_for_meta(struct node *node, u32 index)
{
	const u32 first = ALIGN_DOWN(index, GIB_BLOCKS),
		  keep = (u32)MIN(node_ram(node) / BLOCK_FRAMES / STRUCTS_PER_FRAME, GIB_BLOCKS);

	migratetype_retype_free(block_zone(node->mm, index), MIN(index, first + GIB_BLOCKS - keep),
				keep, MIGRATE_MOVABLE, MIGRATE_UNMOVABLE);
}

/*
 * The descriptor comes first. If the block came first and had to go back, other CPUs would for a
 * moment believe that memory is used up.
 */
static int grow(struct node *node, enum meta_kind kind, bool inside)
{
	struct meta_block *new = take_spare(node);
	u32 index;

	if (!new)
		return -ENOMEM;
	index = take_anywhere(node, inside);
	if (index == BLOCK_NONE) {
		give_spare(&node->meta, new);
		return -ENOMEM;
	}
	block_set_state(node->mm, index, BLOCK_META);
	block_publish_used(block_zone(node->mm, index), index, BLOCK_ORDER);
	if (block_type(block_at(node->mm, index)) == MIGRATE_MOVABLE)
		keep_for_meta(node, index);
	/* not earlier: other CPUs may use up the block, or trim it, at once */
	add_block(node, new, index, kind, 0);
	return 0;
}

/* The caller holds the claim mm->growing. */
static int grow_to(struct node *node, enum meta_kind kind, u64 count)
{
	int err = 0;

	meta_release_done(node);
	if (!meta_has(node, kind, count)) /* else another CPU's round, or growth, was enough */
		err = grow(node, kind, false);
	/* the new block's descriptor may have taken an emergency frame */
	if (kind != META_LASTING && !meta_has(node, META_LASTING, 0))
		grow(node, META_LASTING, false);
	/*
	 * No block is left, so complete a round to get back the gated frames. Repeat while other
	 * CPUs take and gate them again before this one gets any.
	 */
	for (unsigned turn = 0;
	     err && turn < FLUSHES_MAX && atomic_load_relaxed(&node->meta.gated) > 0; turn++) {
		meta_flush_gated(node);
		err = meta_has(node, kind, count) ? 0 : -ENOMEM;
	}
	return err;
}

static bool claim(struct mm *mm)
{
	return atomic_load_relaxed(&mm->growing) == 0 && atomic_cas(&mm->growing, 0, cpu_id() + 1);
}

/* -EAGAIN: another CPU makes some node's metadata memory grow at this moment. */
static int try_grow(struct node *node, enum meta_kind kind, u64 count)
{
	struct mm *mm = node->mm;
	const bool inside = atomic_load_relaxed(&mm->growing) == cpu_id() + 1; /* of any node */
	int err;

	if (inside && atomic_load_relaxed(&node->meta.growing))
		return grow(node, kind, true);
	if (!inside && !claim(mm))
		return -EAGAIN;
	atomic_store_relaxed(&node->meta.growing, true);
	err = grow_to(node, kind, count);
	atomic_store_relaxed(&node->meta.growing, false);
	if (!inside) {
		atomic_store_release(&mm->growing, 0);
		wait_moved(WAIT_GROWTH);
	}
	return err;
}

/* Wait until the CPU that makes metadata memory grow has finished. */
static void wait_for_growth(const struct mm *mm)
{
	struct wait wait = wait_begin(WAIT_GROWTH, "the growth of metadata memory");
	const u32 growing = atomic_load_acquire(&mm->growing);

	while (growing && atomic_load_acquire(&mm->growing) == growing)
		wait_spin(&wait, growing - 1);
}

int meta_grow(struct node *node, enum meta_kind kind, u64 count)
{
	const int err = try_grow(node, kind, count);

	if (err != -EAGAIN)
		return err;
	wait_for_growth(node->mm);
	return 0;
}

void meta_top_up(struct node *node)
{
	if (!meta_has(node, META_LASTING, 0))
		try_grow(node, META_LASTING, 1);
}

/* An unused block that metadata memory can give back and keep `keep` free frames, or NULL. */
static struct meta_block *find_unused(struct meta *meta, u64 keep)
{
	for (enum meta_kind kind = 0; kind < META_MEMMAP; kind++) {
		u64 stays = keep;

		if (kind == META_LASTING)
			stays = MAX(keep, meta->lasting_keep) + meta_borrowed(meta);
		if (meta->unused[kind] == 0 ||
		    meta->free[kind] < meta->reserved[kind] + BLOCK_FRAMES + stays)
			continue;
		for (struct meta_block *block = meta->list[kind]; block; block = block->next)
			if (block->used == 0)
				return block;
	}
	return NULL;
}

static void trim(struct node *node, u64 keep)
{
	struct meta *meta = &node->meta;
	struct mm *mm = node->mm;

	if (atomic_load_relaxed(&meta->growing))
		return;
	for (;;) {
		struct meta_block *unused;
		u32 index;

		spin_lock(&meta->lock);
		unused = find_unused(meta, keep);
		index = unused ? unused->block : BLOCK_NONE;
		if (index != BLOCK_NONE) {
			unlink_block(meta, unused);
			block_at(mm, index)->owner = 0;
		}
		spin_unlock(&meta->lock);
		if (index == BLOCK_NONE)
			return;
		meta_leave_block(block_zone(mm, index), index);
	}
}

void meta_trim(struct node *node)
{
	trim(node, TRIM_KEEP);
}

void meta_trim_all(struct node *node)
{
	trim(node, 0);
	atomic_store_relaxed(&node->meta.near, node->meta.first_gib);
}

static bool init_block(struct node *node, u32 index)
{
	struct mm *mm = node->mm;
	const pfn_t pfn = block_pfn(index);
	struct gib *gib = &mm->gib[index / GIB_BLOCKS - mm->first_gib];
	const bool first = !node->meta.list[META_LASTING];
	unsigned used = first ? 1 : 0;

	if (!gib->blocks)
		used += GIB_RECORD_FRAMES;
	memset(phys_to_virt(pfn << PAGE_SHIFT), 0, used * PAGE_SIZE);
	if (first)
		add_spares(&node->meta, pfn);
	if (!gib->blocks)
		gib->blocks = phys_to_virt((pfn + first) << PAGE_SHIFT);
	/* metadata memory grows beside this block first, without a look at the GiB below */
	if (first)
		node->meta.near = node->meta.first_gib = (u64)(gib - mm->gib);
	block_put_states(mm, index, 1,
			 BLOCK_WORD(.state = BLOCK_META, .type = MIGRATE_MOVABLE,
				    .zone = memmap_zone_of(mm, pfn, node->id)),
			 NULL);
	return meta_add_block(node, index, META_LASTING, used) == 0;
}

bool meta_init_node(struct node *node, phys_t phys, u64 lasting)
{
	bool ok = true;

	for (u64 i = 0; i < meta_blocks_at_boot(lasting) && ok; i++)
		ok = init_block(node, (u32)((phys >> BLOCK_SHIFT) + i));
	node->meta.lasting_keep = lasting;
	return ok;
}
