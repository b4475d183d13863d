/*
 * Metadata frames: maps and reservations. See meta.h; growing and shrinking: meta_grow.c; the queue
 * of gated frames: meta_gate.c.
 */
#include "mm/memmap/meta.h"

#include <arch/check.h>

#include "kernel/core/panic.h"
#include "kernel/core/shootdown.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/meta_gate.h"
#include "mm/memmap/upward.h"

u64 meta_borrowed(const struct meta *meta)
{
	return saturating_sub(meta->reserved[META_HEADS], meta->free[META_HEADS]);
}

/*
 * Are `count` frames free, not counting reserved frames and `keep` others? Heads for which their
 * own blocks have no frames borrow from LASTING what the node's sections will never need.
 */
static bool meta_available(const struct meta *meta, enum meta_kind kind, u64 count, u64 keep)
{
	u64 free = meta->free[kind];

	if (kind == META_LASTING)
		free = saturating_sub(free, meta_borrowed(meta));
	if (kind == META_HEADS)
		free += saturating_sub(meta->free[META_LASTING], meta->reserved[META_LASTING] +
									 META_EMERGENCY +
									 meta->lasting_keep);
	return free >= meta->reserved[kind] + keep + count;
}

/* Frames that stay for the code that makes metadata memory grow. */
static u64 kept_back(enum meta_kind kind)
{
	return kind == META_LASTING ? META_EMERGENCY : 0;
}

/* `in`: the frames must be free in this block now; NULL: in any of the kind. */
static int reserve_keeping(struct node *node, enum meta_kind kind, u64 count, u64 keep,
			   const struct meta_block *in)
{
	struct meta *meta = &node->meta;
	int err = -ENOMEM;

	if (fail_here(&node->mm->fail, FAIL_META))
		return err;
	spin_lock(&meta->lock);
	if (meta_available(meta, kind, count, keep) &&
	    (!in || BLOCK_FRAMES - (u64)in->used >= count)) {
		meta->reserved[kind] += count;
		err = 0;
	}
	spin_unlock(&meta->lock);
	return err;
}

int meta_reserve_now(struct node *node, enum meta_kind kind, u64 count)
{
	return reserve_keeping(node, kind, count, kept_back(kind), NULL);
}

int meta_reserve_in(struct mm *mm, u32 index, u64 count)
{
	const struct meta_block *block = block_at(mm, index)->meta;

	return reserve_keeping(block->node, META_MEMMAP, count, 0, block);
}

bool meta_has(struct node *node, enum meta_kind kind, u64 count)
{
	bool has;

	spin_lock(&node->meta.lock);
	has = meta_available(&node->meta, kind, count, kept_back(kind));
	spin_unlock(&node->meta.lock);
	return has;
}

int meta_reserve_emergency(struct node *node, u64 count)
{
	return reserve_keeping(node, META_LASTING, count, 0, NULL);
}

int meta_reserve(struct node *node, enum meta_kind kind, u64 count)
{
	if (fail_here(&node->mm->fail, FAIL_META))
		return -ENOMEM;
	do {
		if (meta_reserve_now(node, kind, count) == 0)
			return 0;
	} while (mm_upward.meta_grow(node, kind, count) >= 0);
	/* frames may have been given back meanwhile */
	return meta_reserve_now(node, kind, count);
}

void meta_unreserve(struct node *node, enum meta_kind kind, u64 count)
{
	struct meta *meta = &node->meta;

	spin_lock(&meta->lock);
	ASSERT(meta->reserved[kind] >= count,
	       "metadata memory of node %u: %llu frames are unreserved, but only %llu are reserved",
	       node->id, count, meta->reserved[kind]);
	meta->reserved[kind] -= count;
	spin_unlock(&meta->lock);
}

/*
 * Take up to `count` free frames of one word of a block's map, the first that has any, as bits of
 * it. *first receives the frame of bit 0. Metadata lock held.
 */
static u64 block_take_frames(struct meta *meta, struct meta_block *block, unsigned count,
			     pfn_t *first)
{
	unsigned word = 0;
	u64 taken, rest;

	while (word < ARRAY_LEN(block->used_map) - 1 && block->used_map[word] == ~0ULL)
		word++;
	taken = rest = ~block->used_map[word];
	ASSERT(taken, "metadata block %u counts %u used frames but its map is full", block->block,
	       block->used);
	if (count < 64) {
		for (unsigned i = 0; i < count; i++)
			rest &= rest - 1;
		taken &= ~rest;
	}
	block->used_map[word] |= taken;
	meta_count_used(meta, block, __builtin_popcountll(taken));
	*first = block_pfn(block->block) + word * 64;
	return taken;
}

/* First block of the kind with a free frame; metadata lock held. */
static struct meta_block *find_free_block(struct meta *meta, enum meta_kind kind)
{
	struct meta_block *block = meta->hint[kind] ? meta->hint[kind] : meta->list[kind];

	while (block->used == BLOCK_FRAMES)
		block = block->next;
	meta->hint[kind] = block;
	return block;
}

static bool gives(const struct meta_block *block, const struct node *node, enum meta_kind kind)
{
	return block && block->used < BLOCK_FRAMES && block->node == node && block->kind == kind;
}

/* Free frames that serve as this kind; metadata lock held. */
static u64 frames_for(const struct meta *meta, enum meta_kind kind)
{
	return meta->free[kind] + (kind == META_HEADS ? meta->free[META_LASTING] : 0);
}

/*
 * Take up to `count` reserved frames of one word, from `block` if it has any of that kind.
 * Metadata lock held.
 */
static u64 take_word(struct node *node, enum meta_kind kind, struct meta_block *block,
		     unsigned count, pfn_t *first)
{
	struct meta *meta = &node->meta;
	const enum meta_kind of =
		kind == META_HEADS && meta->free[META_HEADS] == 0 ? META_LASTING : kind;
	u64 taken;

	ASSERT(meta->reserved[kind] >= count && frames_for(meta, kind) >= count,
	       "metadata frame of node %u taken without a reservation", node->id);
	if (!gives(block, node, of))
		block = find_free_block(meta, of);
	taken = block_take_frames(meta, block, count, first);
	meta->reserved[kind] -= (u64)__builtin_popcountll(taken);
	return taken;
}

u64 meta_take_word(struct node *node, enum meta_kind kind, unsigned count, pfn_t *first)
{
	u64 taken;

	spin_lock(&node->meta.lock);
	taken = take_word(node, kind, NULL, count, first);
	spin_unlock(&node->meta.lock);
	return taken;
}

void meta_take_many(struct node *node, enum meta_kind kind, u32 index, pfn_t *pfn, unsigned count)
{
	struct meta_block *block = index == BLOCK_NONE ? NULL : block_at(node->mm, index)->meta;
	unsigned taken = 0;

	spin_lock(&node->meta.lock);
	while (taken < count) {
		pfn_t first;
		u64 word = take_word(node, kind, block, count - taken, &first);

		for (; word; word &= word - 1)
			pfn[taken++] = first + (unsigned)__builtin_ctzll(word);
	}
	spin_unlock(&node->meta.lock);
	for (unsigned i = 0; i < count; i++)
		check_frames_reused(pfn[i], 1);
}

pfn_t meta_take(struct node *node, enum meta_kind kind)
{
	pfn_t pfn;

	meta_take_many(node, kind, BLOCK_NONE, &pfn, 1);
	return pfn;
}

int meta_reserve_tails(struct node *node, u64 count, enum meta_kind *kind)
{
	*kind = META_TAILS;
	if (meta_reserve(node, META_TAILS, count) == 0)
		return 0;
	*kind = META_MEMMAP;
	return meta_reserve_now(node, META_MEMMAP, count);
}

/* Mark `count` free frames in one word of the block's map as used, and return the first one. */
static pfn_t block_take_run(struct meta *meta, struct meta_block *block, unsigned count)
{
	for (unsigned i = 0; i < ARRAY_LEN(block->used_map); i++) {
		u64 starts = ~block->used_map[i];

		for (unsigned n = 1; n < count; n++)
			starts &= ~block->used_map[i] >> n;
		if (starts) {
			const unsigned bit = (unsigned)__builtin_ctzll(starts);

			block->used_map[i] |= ((1ULL << count) - 1) << bit;
			meta_count_used(meta, block, (int)count);
			return block_pfn(block->block) + i * 64 + bit;
		}
	}
	return PFN_NONE;
}

pfn_t meta_take_run(struct node *node, unsigned count)
{
	struct meta *meta = &node->meta;
	pfn_t pfn = PFN_NONE;

	if (fail_here(&node->mm->fail, FAIL_META))
		return pfn;
	spin_lock(&meta->lock);
	if (meta_available(meta, META_LASTING, count, 0))
		for (struct meta_block *block = meta->list[META_LASTING]; block && pfn == PFN_NONE;
		     block = block->next)
			pfn = block_take_run(meta, block, count);
	spin_unlock(&meta->lock);
	if (pfn != PFN_NONE)
		check_frames_reused(pfn, count);
	return pfn;
}

/* Metadata lock held. Give back the frames that are bits of `frames` in word `at` of the maps. */
static void block_give_frames(struct meta *meta, struct meta_block *block, unsigned at, u64 frames,
			      u64 tag)
{
	ASSERT(!(frames & ~block->used_map[at]) && !(frames & block->gated_map[at]),
	       "metadata frames %llx at %llx freed twice", frames,
	       block_pfn(block->block) + at * 64);
	if (tag == 0) {
		block->used_map[at] &= ~frames;
		meta_count_used(meta, block, -__builtin_popcountll(frames));
		return;
	}
	gate_add(meta, block, at, frames, tag);
}

/* Descriptor of the metadata block that a frame came from. */
static struct meta_block *meta_block_of(struct mm *mm, pfn_t pfn)
{
	const struct block *record = block_of(mm, pfn);
	const enum block_state state = record ? block_look(record).state : BLOCK_ABSENT;

	ASSERT(state == BLOCK_META,
	       "frame %llx given back to metadata memory lies in a block that is %s", pfn,
	       block_state_name(state));
	return record->meta;
}

/*
 * Descriptor of the metadata block of the first frame that is not PFN_NONE from pfn[*at] on, with
 * *at moved there; NULL if there is none.
 */
static struct meta_block *next_block(struct mm *mm, const pfn_t *pfn, unsigned count, unsigned *at)
{
	while (*at < count && pfn[*at] == PFN_NONE)
		++*at;
	return *at < count ? meta_block_of(mm, pfn[*at]) : NULL;
}

/*
 * The frames from pfn[*at] on that lie in the same word of a block's maps as that one, as bits of
 * this word; *at moves past them. The struct pages of a block are mostly 7 or 8 such frames.
 */
static u64 frames_of_word(const pfn_t *pfn, unsigned count, unsigned *at, u64 tag)
{
	const pfn_t word = pfn[*at] / 64;
	u64 frames = 0;

	for (; *at < count && pfn[*at] / 64 == word; ++*at) {
		const u64 frame = 1ULL << pfn[*at] % 64;

		check_event(CHECK_GIVE, pfn[*at], tag);
		ASSERT(!(frames & frame), "metadata frame %llx freed twice", pfn[*at]);
		frames |= frame;
	}
	return frames;
}

void meta_give_many(struct mm *mm, const pfn_t *pfn, unsigned count, u64 tag)
{
	unsigned i = 0;
	struct meta_block *block = next_block(mm, pfn, count, &i);

	while (block) {
		struct meta *meta = &block->node->meta;

		spin_lock(&meta->lock);
		do {
			const unsigned word = (unsigned)(pfn[i] % BLOCK_FRAMES / 64);

			block_give_frames(meta, block, word, frames_of_word(pfn, count, &i, tag),
					  tag);
			block = next_block(mm, pfn, count, &i);
		} while (block && &block->node->meta == meta);
		spin_unlock(&meta->lock);
	}
}

void meta_give(struct mm *mm, pfn_t pfn, u64 tag)
{
	meta_give_many(mm, &pfn, 1, tag);
}

/* One slice in each turn at the lock, because a large batch gates many frames. */
void meta_release_done(struct node *node)
{
	const u64 done = shootdown_reusable();
	bool more;

	do {
		spin_lock(&node->meta.lock);
		more = gate_release(&node->meta, done);
		spin_unlock(&node->meta.lock);
	} while (more);
}

/* Complete the generation of every frame that is gated now, and release what may be released. */
static void complete_gated(struct node *node, void (*complete)(u64 tag))
{
	u64 tag;

	spin_lock(&node->meta.lock);
	tag = gate_last_tag(&node->meta);
	spin_unlock(&node->meta.lock);
	if (tag)
		complete(tag);
	meta_release_done(node);
}

void meta_flush_gated(struct node *node)
{
	complete_gated(node, shootdown_settle);
}

void meta_wait_gated(struct node *node)
{
	complete_gated(node, shootdown_wait);
}

void meta_end_batch(struct node *node)
{
	meta_release_done(node);
	if (atomic_load_relaxed(&node->meta.gated) > MAX(512, node_ram(node) / 256)) {
		meta_wait_gated(node);
		/* quiet CPUs may keep them for another while: nothing is short yet */
		shootdown_ask_quiet();
		meta_release_done(node);
	}
	mm_upward.meta_trim(node);
}

void meta_end_batch_all(struct mm *mm)
{
	for (node_t n = 0; n < mm->nodes; n++)
		meta_end_batch(&mm->node[n]);
}

bool meta_walk(const struct node *node, struct meta *walked)
{
	bool agree = gate_walk(&node->meta);

	*walked = (struct meta){.blocks = 0};
	for (enum meta_kind kind = 0; kind < META_KINDS; kind++) {
		for (const struct meta_block *block = node->meta.list[kind]; block;
		     block = block->next) {
			walked->blocks++;
			walked->unused[kind] += block->used == 0;
			agree &= !block->next || block->block < block->next->block;
			walked->free[kind] += BLOCK_FRAMES;
			for (unsigned i = 0; i < ARRAY_LEN(block->used_map); i++) {
				const u64 used = (u64)__builtin_popcountll(block->used_map[i]);

				walked->used += used;
				walked->free[kind] -= used;
				walked->gated += (u64)__builtin_popcountll(block->gated_map[i]);
			}
		}
		agree &= walked->unused[kind] == node->meta.unused[kind];
	}
	return agree;
}
