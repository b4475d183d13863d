/*
 * The page tables that map the struct pages, checked entry by entry.
 */
#include "mm/hvo/hvo_take.h"
#include "tests/kernel/mm_test.h"

/* Open a mapped section of real memory. Returns its number, or 0. */
static u64 open_mapped_section(struct arena *a)
{
	/* The first section holds metadata memory and is open. */
	const u64 section = arena_block(a) / SECTION_BLOCKS + 1;

	EXPECT_EQ(section_open(&a->mm, section, SECTION_MAPPED), 0);
	return vmemmap_is_leaf(&a->mm, section) ? section : 0;
}

static pfn_t take_table(struct arena *a)
{
	return meta_reserve(&a->mm.node[0], META_LASTING, 1) == 0
		       ? meta_take(&a->mm.node[0], META_LASTING)
		       : PFN_NONE;
}

/* ---- a leaf that cannot be split ---- */

enum { BARE_FIRST = 400 };
#define UNSPLIT_NS (100 * NS_PER_MS)

static struct unsplit {
	struct arena *a;
	struct block_list list, left;
	u32 under_leaf, done;
	u64 failed;
} unsplit;

static void optimise_unsplit(void *arg)
{
	struct unsplit *u = arg;

	fail_arm(&u->a->mm.fail, FAIL_META, 1, FAIL_AGAIN); /* every request for a frame fails */
	u->failed = hvo_optimise(&u->a->mm, hvo_on(), &u->list, &u->left);
	atomic_store_release(&u->done, 1);
}

static u64 made_huge(const struct arena *a)
{
	return mm_counted(&a->mm, COUNT_CHANGE(BLOCK_BARE, BLOCK_HUGE));
}

/* This CPU makes the round of its split, and the other CPU goes on. */
static void split_is_flushed(struct mm *mm, cpu_t other)
{
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	atomic_fetch_sub(&mm->splits_unflushed, 1);
	mm_count(mm, COUNT_TABLES, 1);
	work_wait(other, 0);
}

/*
 * The other CPU finds no frame for a table. It sets the block under the leaf aside and changes the
 * bare blocks first. Meanwhile this CPU splits the leaf but makes no round yet. Until that round
 * the other CPU must leave the block unchanged, both in its first turn and when it tries the block
 * again after the split.
 */
static void split_behind_its_back(struct unsplit *u, u64 section, cpu_t other)
{
	struct wait wait = wait_begin(WAIT_GROWTH, "a CPU that makes huge pages");
	struct mm *mm = &u->a->mm;
	const u64 before = made_huge(u->a);
	const pfn_t table = take_table(u->a);

	EXPECT_EQ(work_start(other, optimise_unsplit, u), 0);
	while (made_huge(u->a) == before && !atomic_load_acquire(&u->done)) {
		wait_spin(&wait, other);
		wait.spins = 0; /* no nap, because the event comes within microseconds */
	}
	EXPECT_EQ(vmemmap_split(mm, section, table), 1);
	for (const u64 end = clock_ns() + UNSPLIT_NS;
	     clock_ns() < end && !atomic_load_acquire(&u->done);)
		cpu_relax();
	/* No CPU may change an entry of the table before this round. */
	EXPECT(!u->done || u->failed == 1);
	EXPECT_EQ(block_look_at(mm, u->under_leaf).state, BLOCK_FULL);
	split_is_flushed(mm, other);
}

TEST_ARENA(mm_vmemmap, a_block_under_a_leaf_waits_for_the_round_of_whoever_splits_it,
	   cpus_needed(2) ? arena_borrow(MIB(256), .phantom = GIB(1)) : NULL)
{
	const cpu_t other = cpus_find_other();
	struct unsplit *u = &unsplit;
	u64 section;

	*u = (struct unsplit){.a = a, .list = BLOCK_LIST_INIT};
	section = open_mapped_section(u->a);
	REQUIRE(section);
	EXPECT_EQ(hvo_take_blocks(arena_phantom_zone(u->a), hvo_on(), BLOCK_ORDER, BARE_FIRST,
				  &u->list),
		  BARE_FIRST);
	EXPECT_EQ(
		block_take(arena_zone(u->a, 0), FREE_MAPPED, BLOCK_ORDER, 1, BLOCK_HUGE, &u->list),
		1);
	u->under_leaf = u->list.tail;
	EXPECT_EQ(u->under_leaf / SECTION_BLOCKS, section);
	split_behind_its_back(u, section, other);
	fail_disarm(&u->a->mm.fail);
	EXPECT_EQ(block_look_at(&u->a->mm, u->under_leaf).state,
		  u->failed ? BLOCK_FULL : BLOCK_HUGE);
	EXPECT_EQ(u->list.count, BARE_FIRST + 1 - u->failed);
	block_list_publish_free(&u->a->mm, &u->list);
	block_list_publish_free(&u->a->mm, &u->left);
}

static void optimise(void *arg)
{
	struct unsplit *u = arg;

	u->failed = hvo_optimise(&u->a->mm, hvo_on(), &u->list, &u->left);
	atomic_store_release(&u->done, 1);
}

/* This CPU has split the leaf and makes no round yet. The other CPU finds it split, and waits. */
TEST_ARENA(mm_vmemmap, a_leaf_found_split_waits_for_the_round_of_the_cpu_that_split_it,
	   cpus_needed(2) ? arena_borrow(MIB(256)) : NULL)
{
	const cpu_t other = cpus_find_other();
	struct unsplit *u = &unsplit;
	u64 section, end;

	*u = (struct unsplit){.a = a, .list = BLOCK_LIST_INIT};
	section = open_mapped_section(u->a);
	REQUIRE(section);
	EXPECT_EQ(
		block_take(arena_zone(u->a, 0), FREE_MAPPED, BLOCK_ORDER, 1, BLOCK_HUGE, &u->list),
		1);
	u->under_leaf = u->list.head;
	EXPECT_EQ(vmemmap_split(&u->a->mm, u->under_leaf / SECTION_BLOCKS, take_table(u->a)), 1);
	EXPECT_EQ(work_start(other, optimise, u), 0);
	for (end = clock_ns() + UNSPLIT_NS; clock_ns() < end && !atomic_load_acquire(&u->done);)
		cpu_relax();
	EXPECT_EQ(atomic_load_acquire(&u->done), 0);
	EXPECT_EQ(block_look_at(&u->a->mm, u->under_leaf).state, BLOCK_FULL);
	split_is_flushed(&u->a->mm, other);
	EXPECT_EQ(u->failed, 0);
	EXPECT_EQ(block_look_at(&u->a->mm, u->under_leaf).state, BLOCK_HUGE);
	block_list_publish_free(&u->a->mm, &u->list);
}

TEST_ARENA(mm_vmemmap, tails_of_huge_pages_are_read_only_and_shared,
	   arena_borrow(MIB(2), .phantom = GIB(1)))
{
	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), 3 * SECTION_BLOCKS), 3 * SECTION_BLOCKS);
	block_list_foreach(&a->mm, index, &a->pool.node[1].free)
		EXPECT(huge_line_right(&a->mm, index, BLOCK_ORDER));
}

/* The last section of a window lies above all memory and has no tables. */
TEST_ARENA(mm_vmemmap, a_section_is_refused_if_no_upper_table_can_be_made, arena_borrow(MIB(2)))
{
	const u64 section = VMEMMAP_WINDOW_SIZE / pt_level_size(PT_PMD) - 1;
	struct node *node = &a->mm.node[0];
	u64 held = 0;

	while (meta_reserve_emergency(node, 1) == 0)
		held++;
	EXPECT_EQ(vmemmap_install(&a->mm, node, section, 0), -ENOMEM);
	meta_unreserve(node, META_LASTING, held);
}
