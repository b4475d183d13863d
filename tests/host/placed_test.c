/*
 * Memory placed by GiB (mm/zone/gigablock.h) after a long trace. Only the hosted kernel has this
 * case, because the struct pages of 6 GiB are real memory.
 */
#include "mm/zone/gigablock.h"

#include "tests/kernel/mm_test.h"
#include "tests/kernel/random.h"

enum {
	GIBS = 6,
	FRAMES = GIBS * GIB_BLOCKS * BLOCK_FRAMES,
	FULL = FRAMES / 100 * 98,  /* frames in use while the trace runs */
	STUCK = FRAMES / 100 * 20, /* of these, frames that cannot be moved, at its end */
	OPS = 40000,
	HELD_ORDER = 4, /* of movable pages; the others have 3 or 4 */
	HELD = FRAMES >> HELD_ORDER
};

static struct page *held[HELD + OPS * 4], *stuck[OPS];
static u64 stuck_pages, stuck_frames, held_frames, state;

static u64 draw(u64 below)
{
	return (next_random(&state) >> 20) % below;
}

static void drop_held(struct holder *h)
{
	u64 slot;

	do {
		slot = draw(h->slots);
	} while (!held[slot]);
	holder_give(h, slot);
	held_frames -= order_pages(HELD_ORDER);
}

static bool take_held(struct arena *a, struct holder *h)
{
	const bool taken = holder_take(h, HELD_ORDER, a->options.nodes);

	held_frames += taken ? order_pages(HELD_ORDER) : 0;
	return taken;
}

static void drop_stuck(struct arena *a)
{
	const u64 at = draw(stuck_pages);

	stuck_frames -= order_pages(page_order(stuck[at]));
	mm_page_free(&a->mm, stuck[at]);
	stuck[at] = stuck[--stuck_pages];
}

static bool take_stuck(struct arena *a)
{
	const unsigned order = 3 + (unsigned)draw(2);
	struct page *page = alloc_on_phantom(a, order, draw(4) ? USE_UNMOVABLE : USE_RECLAIMABLE);

	if (!page)
		return false;
	stuck[stuck_pages++] = page;
	stuck_frames += order_pages(order);
	return true;
}

/* Movable pages come and go in full memory, and others grow among them. False if any found none. */
static bool age(struct arena *a, struct holder *h)
{
	while (held_frames < FULL)
		if (!take_held(a, h))
			return false;
	for (u64 op = 0; op < OPS; op++) {
		drop_held(h);
		if (draw(8) == 0 && stuck_pages > 0)
			drop_stuck(a);
		if (stuck_frames < STUCK * op / OPS && !take_stuck(a))
			return false;
		while (held_frames + stuck_frames > FULL)
			drop_held(h);
		while (held_frames + stuck_frames + order_pages(HELD_ORDER) <= FULL)
			if (!take_held(a, h))
				return false;
	}
	return true;
}

static struct arena *borrow_gibs(void)
{
	struct arena *a = arena_borrow(MIB(256), .phantom = GIBS * GIB(1));

	if (!a)
		return NULL;
	arena_open_all(a);
	EXPECT(gigablock_begin(&a->mm, GIGABLOCK_LEAST));
	return a;
}

static u64 tainted_gibs(struct arena *a)
{
	const u32 first = arena_phantom_block(a);
	u64 count = 0;

	for (u32 index = first; index < first + GIBS * GIB_BLOCKS; index += GIB_BLOCKS)
		count += gigablock_is_tainted(&a->mm, index);
	return count;
}

/* Then two thirds of the movable pages go, and what is left moves out of the way of 1 GiB pages. */
TEST_ARENA(mm_gigablock, a_long_trace_taints_at_most_one_gib_more_than_it_must, borrow_gibs())
{
	struct page *chain = NULL;
	struct holder h;
	u64 tainted, least, giga, most;

	state = 21;
	stuck_pages = stuck_frames = held_frames = 0;
	holder_init(&h, &a->mm, held, ARRAY_LEN(held));
	h.phantom = true;
	EXPECT(age(a, &h));
	tainted = tainted_gibs(a);
	least = DIV_ROUND_UP(stuck_frames, order_pages(GIGA_ORDER));
	EXPECT(least > 1);
	EXPECT(tainted <= least + 1);
	while (held_frames > FULL / 3)
		drop_held(&h);
	pcp_drain_all(&a->mm);
	most = (FRAMES - stuck_frames - held_frames) / order_pages(GIGA_ORDER);
	giga = chain_take_all(&chain, &a->mm, GIGA_ORDER, PAGE_NODE, a->options.nodes);
	EXPECT(giga >= most);
	print("  # tainted %llu, least %llu; 1 GiB pages %llu, at least %llu\n", tainted, least,
	      giga, most);
	EXPECT(holder_intact(&h));
	EXPECT(arena_accounted(a));
	chain_give(&chain, &a->mm);
	holder_give_all(&h);
	while (stuck_pages > 0)
		drop_stuck(a);
}
