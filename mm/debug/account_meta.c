/*
 * Accounting, metadata memory: see account.h. Two counts are made, as for all other memory. Maps:
 * the blocks' maps must hold what the node's counters say. Users: every frame in use must be
 * reached from its user, exactly once.
 *
 *   descriptors of metadata blocks, in lists and spare -> the frame they lie in
 *   a GiB's block records                            -> their frames
 *   a section's PMD entry                            -> its page table, or all of the block under a
 *                                                    2 MiB leaf
 *   a page table's entries that can be written       -> the frames of struct pages: heads, and
 *                                                    tails that are private
 *   a zone's shared tail pages, upper page tables    -> themselves
 *   the gated map                                    -> frames that wait for a round
 *
 * A frame in use that nothing reaches is lost. A frame that is reached twice, or reached but not in
 * use, will be used twice. Frames that were reached are recorded in the descriptor's `seen_map`,
 * which belongs to the audit. Other CPUs are parked.
 */
#include "mm/debug/account_meta.h"

#include "mm/hugetlb/pool.h"
#include "mm/map/pgtable.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/vmemmap.h"
#include "mm/zone/section.h"

enum { LINES_MAX = 8 }; /* lines printed in all; further faults are only counted */

struct audit {
	struct mm *mm;
	unsigned faults;
	u64 tables; /* of the vmemmap */
};

static void fault(struct audit *audit, const char *what, const char *user, pfn_t pfn)
{
	if (audit->faults++ < LINES_MAX)
		account_wrong("metadata frame %llx %s%s", pfn, what, user);
}

/* Record that a frame was reached. `user` names its use. */
static void reach(struct audit *audit, pfn_t pfn, const char *user)
{
	const struct block *block = block_of(audit->mm, pfn);
	const u64 bit = 1ULL << pfn % 64;
	u64 *seen;

	if (!block || block_look(block).state != BLOCK_META || !block->meta) {
		fault(audit, "is outside metadata memory, but is used for ", user, pfn);
		return;
	}
	seen = &block->meta->seen_map[pfn % BLOCK_FRAMES / 64];
	if (*seen & bit)
		fault(audit, "is used a second time, for ", user, pfn);
	*seen |= bit;
}

static void reach_range(struct audit *audit, pfn_t first, u64 frames, const char *user)
{
	for (pfn_t pfn = first; pfn < first + frames; pfn++)
		reach(audit, pfn, user);
}

/* ---- users ---- */

/* Each frame of descriptors is reached from its first descriptor. All descriptors must be there. */
static void reach_descriptors(struct audit *audit, const struct meta_block *list, u64 *count)
{
	for (; list; list = list->next) {
		++*count;
		if (IS_ALIGNED((virt_t)list, PAGE_SIZE))
			reach(audit, virt_to_phys(list) >> PAGE_SHIFT,
			      "descriptors of metadata blocks");
	}
}

static void walk_descriptors(struct audit *audit)
{
	const u64 per_frame = PAGE_SIZE / sizeof(struct meta_block);
	u64 count = 0, frames = 0;

	for (node_t n = 0; n < audit->mm->nodes; n++) {
		const struct meta *meta = &audit->mm->node[n].meta;

		for (enum meta_kind kind = 0; kind < META_KINDS; kind++)
			reach_descriptors(audit, meta->list[kind], &count);
		reach_descriptors(audit, meta->spare, &count);
		frames += meta->spare_frames;
	}
	account_agree("descriptors of metadata blocks", NULL, frames * per_frame, count);
}

static void walk_records(struct audit *audit)
{
	const struct mm *mm = audit->mm;

	for (u64 gib = 0; gib < mm->gibs; gib++)
		if (mm->gib[gib].blocks)
			reach_range(audit, virt_to_phys(mm->gib[gib].blocks) >> PAGE_SHIFT,
				    GIB_RECORD_FRAMES, "block records");
}

static void walk_shared_tails(struct audit *audit)
{
	for (unsigned i = 0; i < audit->mm->zones * TAIL_ORDERS; i++)
		reach(audit, audit->mm->shared_tail[i], "a shared tail page");
}

static void walk_table(struct audit *audit, pfn_t table)
{
	const pte_t *ptes = phys_to_virt(table << PAGE_SHIFT);

	reach(audit, table, "a section's page table");
	audit->tables++;
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		const pte_t pte = pte_load(&ptes[i]);

		if (pte_writable(pte))
			reach(audit, pte_pfn(pte), "struct pages");
	}
}

static void walk_section(struct audit *audit, u64 section)
{
	const virt_t virt = vmemmap_of_block(audit->mm, (u32)(section * SECTION_BLOCKS));
	const pte_t *entry = pgtable_entry(audit->mm->root, virt, PT_PMD, NULL, NULL);
	const pte_t pmd = entry ? pte_load(entry) : 0;

	if (!pte_present(pmd))
		return;
	if (pte_is_leaf(pmd, PT_PMD))
		reach_range(audit, pte_pfn(pmd), BLOCK_FRAMES,
			    "the struct pages of a mapped section");
	else
		walk_table(audit, pte_pfn(pmd));
}

/*
 * Reach the table that holds a section's entry at `level`. A table from other code that made the
 * window is not metadata memory's.
 */
static void walk_upper_table(struct audit *audit, u64 section, enum pt_level level, pfn_t *last)
{
	const virt_t virt = vmemmap_of_block(audit->mm, (u32)(section * SECTION_BLOCKS));
	const pte_t *entry = pgtable_entry(audit->mm->root, virt, level, NULL, NULL);
	const struct block *block;

	if (!entry || !pte_present(pte_load(entry)) || pte_pfn(pte_load(entry)) == *last)
		return;
	*last = pte_pfn(pte_load(entry));
	block = block_of(audit->mm, *last);
	if (!block || block_look(block).state != BLOCK_META)
		return;
	reach(audit, *last, "an upper page table");
	audit->tables++;
}

static void walk_users(struct audit *audit)
{
	const struct mm *mm = audit->mm;
	pfn_t pmd_table = PFN_NONE, pud_table = PFN_NONE;

	walk_records(audit);
	walk_shared_tails(audit);
	for (u64 section = section_first(mm); section < section_end(mm); section++) {
		walk_section(audit, section);
		walk_upper_table(audit, section, PT_PUD, &pmd_table);
		walk_upper_table(audit, section, PT_PGD, &pud_table);
	}
}

/* ---- maps ---- */

/*
 * Compare what is used of a block with what was reached, and leave `seen_map` empty for the next
 * audit. gate_walk() looks whether gated frames of blocks with lots are used.
 */
static void compare_block(struct audit *audit, struct meta_block *block)
{
	for (unsigned w = 0; w < ARRAY_LEN(block->seen_map); w++) {
		const u64 used = block->used_map[w], gated = block->gated_map[w],
			  seen = block->seen_map[w];
		const pfn_t first = block_pfn(block->block) + w * 64;

		block->seen_map[w] = 0;
		for (u64 bits = used & ~gated & ~seen; bits; bits &= bits - 1)
			fault(audit, "is marked used, but nothing refers to it", "",
			      first + (u64)__builtin_ctzll(bits));
		for (u64 bits = seen & (~used | gated); bits; bits &= bits - 1)
			fault(audit,
			      (bits & -bits) & gated ? "is gated, but is still referred to"
						     : "is in use, but its map says free",
			      "", first + (u64)__builtin_ctzll(bits));
	}
}

static void compare_blocks(struct audit *audit)
{
	for (node_t n = 0; n < audit->mm->nodes; n++)
		for (enum meta_kind kind = 0; kind < META_KINDS; kind++)
			for (struct meta_block *block = audit->mm->node[n].meta.list[kind]; block;
			     block = block->next)
				compare_block(audit, block);
}

static void account_users(struct mm *mm)
{
	struct audit audit = {.mm = mm};

	walk_descriptors(&audit);
	walk_users(&audit);
	account_agree("page tables of the vmemmap", NULL, mm_counted(mm, COUNT_TABLES),
		      audit.tables);
	compare_blocks(&audit);
	if (audit.faults > LINES_MAX)
		account_wrong("%u more metadata frames are wrong and are not listed",
			      audit.faults - LINES_MAX);
}

/* ---- counters ---- */

/* Frames reserved in the node's metadata memory for the heads of bare pages of pools. */
static u64 kept_for_heads(const struct node *node, enum meta_kind kind)
{
	struct mm *mm = node->mm;
	u64 frames = 0;

	for (const struct pool *pool = mm->pools; pool; pool = pool->next)
		for (node_t n = 0; n < mm->nodes && meta_kind_of_head(pool->order) == kind; n++)
			block_list_foreach(mm, index, &pool->node[n].free)
				frames += block_look_at(mm, index).state == BLOCK_BARE &&
					  block_meta_node(mm, index) == node;
	return frames;
}

static void account_kinds(const struct node *node, const struct meta *walked)
{
	const struct meta *meta = &node->meta;

	for (unsigned kind = 0; kind < META_KINDS; kind++) {
		const u64 reserved = kept_for_heads(node, kind);

		if (meta->free[kind] != walked->free[kind] || meta->reserved[kind] != reserved)
			account_wrong("metadata memory of node %u, kind %u: counted %llu frames "
				      "free, %llu reserved; walked %llu, %llu",
				      node->id, kind, meta->free[kind], meta->reserved[kind],
				      walked->free[kind], reserved);
	}
}

static void account_node(const struct node *node)
{
	const struct meta *meta = &node->meta;
	struct meta walked;

	if (!meta_walk(node, &walked))
		account_wrong("metadata memory of node %u: its lists of blocks or of gated frames "
			      "are inconsistent",
			      node->id);
	account_kinds(node, &walked);
	if (walked.blocks != meta->blocks || walked.used != meta->used ||
	    walked.gated != meta->gated)
		account_wrong("metadata memory of node %u: counted %llu blocks, %llu used, %llu "
			      "gated; walked %llu, %llu, %llu",
			      node->id, meta->blocks, meta->used, meta->gated, walked.blocks,
			      walked.used, walked.gated);
}

void account_meta(struct mm *mm)
{
	for (node_t n = 0; n < mm->nodes; n++)
		account_node(&mm->node[n]);
	account_users(mm);
}
