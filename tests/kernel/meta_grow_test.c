/*
 * META in need of everything at once: blocks, sections to find them in, descriptors for them; asked by one CPU, by all, and with each
 * step failing.
 */
#include "mm/meta_grow.h"

#include "kernel/printk.h"
#include "kernel/test.h"
#include "mm/meta.h"
#include "mm/section.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/cpus.h"

enum { FAULTS_MAX = 200, ALL_OF_A_SECTION = (SECTION_BLOCKS + 1) * BLOCK_FRAMES,
       NEARLY_ALL = (SECTION_BLOCKS - 2) * BLOCK_FRAMES };

/* A section whose blocks become META, and one that has to be opened for more. */
static struct arena *borrow_two_sections(struct node **node)
{
	struct arena *a = arena_borrow(MIB(256));

	if (a)
		*node = &a->mm.node[0];
	return a;
}

TEST(mm_meta, it_opens_a_section_at_the_far_end_when_it_needs_more)
{
	struct node *node;
	struct arena *a = borrow_two_sections(&node);
	u64 far;
	u32 last;

	if (!a)
		return;
	far = arena_block(a) / SECTION_BLOCKS + 1;
	last = (u32)(far + 1) * SECTION_BLOCKS - 1;
	REQUIRE(section_state(&a->mm, far) == SECTION_UNOPENED);
	EXPECT_EQ(meta_reserve(node, META_LONG, ALL_OF_A_SECTION), 0);
	EXPECT(node->meta.blocks > SECTION_BLOCKS);
	EXPECT_EQ(section_state(&a->mm, far), SECTION_OPEN);
	EXPECT(block_type(block_at(&a->mm, last)) == MIGRATE_UNMOVABLE); /* what is left there is for what cannot move either */
	meta_unreserve(node, META_LONG, ALL_OF_A_SECTION);
	meta_settle(node);
	EXPECT(node->meta.blocks < 4);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_meta, more_than_there_is_memory_for_is_refused_and_nothing_kept)
{
	struct node *node;
	struct arena *a = borrow_two_sections(&node);

	if (!a)
		return;
	EXPECT_EQ(meta_reserve(node, META_LONG, 2 * ALL_OF_A_SECTION), -ENOMEM);
	EXPECT_EQ(node->meta.reserved[META_LONG], 0);
	meta_settle(node);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(meta_reserve(node, META_LONG, ALL_OF_A_SECTION), 0); /* less can be had after it as before */
	meta_unreserve(node, META_LONG, ALL_OF_A_SECTION);
	arena_return(a);
}

/* Each reservation and opening on the way fails once: what is refused leaves nothing behind. */
TEST(mm_meta, every_failure_on_the_way_to_more_leaves_no_trace)
{
	bool met = true;
	u32 fault = 1;

	for (; met && fault < FAULTS_MAX && !test_failed(); fault++) {
		struct node *node;
		struct arena *a = borrow_two_sections(&node);
		int err;

		if (!a)
			return;
		EXPECT_EQ(meta_reserve(node, META_LONG, NEARLY_ALL), 0);
		fail_arm(&a->mm.fail, FAIL_ANY, fault, FAIL_ONCE);
		err = meta_reserve(node, META_LONG, ALL_OF_A_SECTION - NEARLY_ALL);
		met = fail_disarm(&a->mm.fail);
		EXPECT_EQ(node->meta.reserved[META_LONG], err ? NEARLY_ALL : ALL_OF_A_SECTION);
		meta_unreserve(node, META_LONG, err ? NEARLY_ALL : ALL_OF_A_SECTION);
		EXPECT(arena_accounted(a));
		EXPECT_EQ(meta_reserve(node, META_LONG, ALL_OF_A_SECTION), 0);
		meta_unreserve(node, META_LONG, ALL_OF_A_SECTION);
		arena_return(a);
	}
	print("  # growing META: %u places failed, one at a time\n", fault - 2);
	EXPECT(!met || test_failed());
	EXPECT(fault - 2 >= 3); /* the request, the section, its table */
}

/* Descriptors that were hidden are spare again. */
static void show_spares(struct node *node, struct meta_block *hidden)
{
	struct meta_block **last = &node->meta.spare;

	while (*last)
		last = &(*last)->next;
	*last = hidden;
}

/* No descriptor is left and none can be had: neither META nor a mapped section gets the block, which goes back whole. */
TEST(mm_meta, a_block_without_a_descriptor_goes_back)
{
	struct node *node;
	struct arena *a = borrow_two_sections(&node);
	struct mm_usage before;
	struct meta_block *spare;

	if (!a)
		return;
	spare = node->meta.spare;
	node->meta.spare = NULL;
	before = arena_usage(a);
	fail_arm(&a->mm.fail, FAIL_META, 1, FAIL_AGAIN);
	EXPECT_EQ(meta_grow(node, META_TAILS, BLOCK_FRAMES), -ENOMEM);
	EXPECT_EQ(section_open(&a->mm, arena_block(a) / SECTION_BLOCKS + 1, SECTION_MAPPED), -ENOMEM);
	fail_disarm(&a->mm.fail);
	EXPECT_EQ(arena_usage(a).meta, before.meta);
	EXPECT_EQ(arena_usage(a).free + arena_usage(a).unopened, before.free + before.unopened);
	EXPECT_EQ(meta_grow(node, META_TAILS, BLOCK_FRAMES), 0); /* a frame of descriptors is made */
	EXPECT(node->meta.spare);
	EXPECT_EQ(section_open(&a->mm, arena_block(a) / SECTION_BLOCKS + 1, SECTION_MAPPED), 0);
	EXPECT(spare);
	show_spares(node, spare);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* ---- many at once ---- */

static struct {
	struct node *node;
	u32 served;
} all;

static void reserve_some(void *unused)
{
	(void)unused;
	for (unsigned i = 0; i < 8; i++)
		if (meta_reserve(all.node, META_TAILS, BLOCK_FRAMES) == 0)
			atomic_fetch_add(&all.served, 1);
}

/* One grows, the others wait for it and look again. */
TEST(mm_meta, cpus_that_need_more_at_once_get_it)
{
	struct arena *a = borrow_two_sections(&all.node);
	cpu_t cpus;

	if (!a)
		return;
	all.served = 0;
	cpus = cpus_run_together(reserve_some, NULL);
	EXPECT_EQ(all.served, 8 * cpus);
	EXPECT_EQ(all.node->meta.reserved[META_TAILS], 8 * cpus * BLOCK_FRAMES);
	meta_unreserve(all.node, META_TAILS, 8 * cpus * BLOCK_FRAMES);
	meta_settle(all.node);
	EXPECT(arena_accounted(a));
	arena_return(a);
}
