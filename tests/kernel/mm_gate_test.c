/*
 * Frames that backed tails, and CPUs that may still see them: no frame is reused before every CPU
 * has flushed.
 *
 * The CPU that has not flushed is the one that runs the case, with interrupts off and without
 * serving its mailbox. Another CPU does the conversion and waits for it in its round.
 */
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/cpu.h>

#include "kernel/core/call.h"
#include "kernel/core/shootdown.h"
#include "kernel/run/test.h"
#include "mm/hvo/hvo.h"
#include "mm/hvo/hvo_unshare.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/vmemmap.h"
#include "mm/page/page_alloc.h"
#include "mm/zone/transit.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/cpus.h"

struct conversion {
	struct arena *a;
	struct block_list list; /* one full block, in transit */
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK];
	u32 returned;
};

/*
 * Take one block of the phantom that was split and freed, and note the frames of its struct pages.
 */
static bool take_full_block(struct conversion *c)
{
	struct page *halves[2];
	u32 index;

	for (unsigned i = 0; i < 2; i++) {
		halves[i] = mm_page_alloc(&c->a->mm, BLOCK_ORDER - 1, USE_MOVABLE, PAGE_NODE,
					  c->a->options.nodes);
		if (!halves[i])
			return false;
	}
	mm_page_free(&c->a->mm, halves[0]);
	mm_page_free(&c->a->mm, halves[1]);
	c->list = BLOCK_LIST_INIT;
	if (block_take(arena_phantom_zone(c->a), FREE_FULL, BLOCK_ORDER, 1, BLOCK_HUGE, &c->list) !=
	    1)
		return false;
	index = c->list.head;
	for (unsigned i = 0; i < MEMMAP_FRAMES_PER_BLOCK; i++)
		c->frames[i] = pte_pfn(pte_load(&vmemmap_line(&c->a->mm, index)[i]));
	return true;
}

static void convert(void *arg)
{
	struct conversion *c = arg;
	struct block_list left;

	hvo_optimise(&c->a->mm, hvo_mode_find("on"), &c->list, &left);
	hvo_complete_round(&c->a->mm, c->list.head);
	atomic_store_release(&c->returned, 1);
}

/*
 * Take every frame that metadata memory gives out and put all back. Returns how many of them are
 * among the frames noted.
 */
static unsigned reusable(const struct conversion *c)
{
	struct node *node = &c->a->mm.node[0];
	static pfn_t taken[4 * BLOCK_FRAMES];
	unsigned count = 0, found = 0;

	meta_release_done(node);
	while (count < ARRAY_LEN(taken) && meta_reserve_now(node, META_TAILS, 1) == 0)
		taken[count++] = meta_take(node, META_TAILS);
	for (unsigned t = 0; t < count; t++) {
		for (unsigned i = 1; i < MEMMAP_FRAMES_PER_BLOCK; i++)
			found += taken[t] == c->frames[i];
		meta_give(&c->a->mm, taken[t], 0);
	}
	return found;
}

/*
 * Read the counter without spinning for the lock. A CPU that spins serves calls, and this CPU must
 * answer none.
 */
static u64 gated_frames(struct arena *a)
{
	struct meta *meta = &a->mm.node[0].meta;
	u64 gated;

	while (!spin_trylock(&meta->lock))
		cpu_relax();
	gated = meta->gated;
	spin_unlock(&meta->lock);
	return gated;
}

TEST(mm_hvo, frame_is_gated_until_every_cpu_passed)
{
	struct conversion c = {.a = NULL};
	const cpu_t other = cpus_find_other();
	irq_flags_t flags;

	if (other == CPU_NONE)
		SKIP("needs two CPUs");
	c.a = arena_borrow(MIB(16), .phantom = GIB(1));
	if (!c.a)
		return;
	REQUIRE(take_full_block(&c));
	EXPECT_EQ(reusable(&c), 0); /* the frames are in use */

	flags = irq_save(); /* from here on this CPU answers nothing */
	EXPECT(work_start(other, convert, &c) == 0);
	CPUS_AWAIT(gated_frames(c.a) == MEMMAP_FRAMES_PER_BLOCK - 1);
	EXPECT_EQ(reusable(&c), 0);
	EXPECT(shootdown_done() < c.a->mm.node[0].meta.gate_first->tag);
	EXPECT(!atomic_load_acquire(&c.returned)); /* the page is not handed out, either */
	irq_restore(flags);

	work_wait(other, 0);
	EXPECT_EQ(reusable(&c), MEMMAP_FRAMES_PER_BLOCK - 1);
	block_list_publish_free(&c.a->mm, &c.list);
	EXPECT(arena_accounted(c.a));
	arena_return(c.a);
}

/*
 * ---- writers that know nothing of this: heads stay writable, whatever happens to the tails ----
 */

struct stress {
	struct arena *a;
	u32 failures;
};

enum { STRESS_TURNS = 12 };

/*
 * Split a block, write every struct page, free the block, make it huge and check its heads, over
 * and over, on several CPUs at once.
 */
static void split_and_share(void *arg)
{
	struct stress *s = arg;
	struct mm *mm = &s->a->mm;

	for (unsigned turn = 0; turn < STRESS_TURNS; turn++) {
		struct page *page =
			mm_page_alloc(mm, BLOCK_ORDER - 1, USE_MOVABLE, 0, s->a->options.nodes);
		struct page *huge =
			mm_page_alloc(mm, BLOCK_ORDER, USE_MOVABLE, 0, s->a->options.nodes);

		for (u64 i = 0; page && i < order_pages(BLOCK_ORDER - 1); i++)
			page[i].private[1] = i;
		for (u64 i = 0; page && i < order_pages(BLOCK_ORDER - 1); i++)
			if (page[i].private[1] != i || page_head(&page[i]) != page)
				atomic_fetch_add(&s->failures, 1);
		for (u64 i = 1; huge && i < BLOCK_FRAMES; i++)
			if (page_head(&huge[i]) != huge)
				atomic_fetch_add(&s->failures, 1);
		if (huge)
			mm_page_free(mm, huge);
		if (page)
			mm_page_free(mm, page);
		hvo_huge_free_full(arena_phantom_zone(s->a), 1);
	}
}

TEST(mm_hvo, all_cpus_split_and_share_at_once)
{
	struct stress s = {.a = arena_borrow(MIB(16), .phantom = GIB(1))};

	if (!s.a)
		return;
	cpus_run_together(split_and_share, &s);
	EXPECT_EQ(s.failures, 0);
	EXPECT(arena_accounted(s.a));
	arena_return(s.a);
}

/* The end of a batch releases gated frames on every node, not only on the first. */
TEST_ARENA(mm_gate, the_end_of_a_batch_covers_every_node, arena_borrow(MIB(16), .nodes = 2))
{
	for (node_t n = 0; n < a->mm.nodes; n++) {
		REQUIRE(meta_reserve(&a->mm.node[n], META_LASTING, 1) == 0);
		meta_give(&a->mm, meta_take(&a->mm.node[n], META_LASTING), shootdown_tag());
	}
	EXPECT_EQ(arena_usage(a).gated, a->mm.nodes);
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	meta_end_batch_all(&a->mm);
	EXPECT_EQ(arena_usage(a).gated, 0);
}
