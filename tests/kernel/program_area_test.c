/*
 * Areas and pages of a program (mm/vm/area_tree.h, space.h, pages.h), compared with the reference
 * of a space, and raced.
 */
#include "tests/kernel/brim.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/program_memory.h"
#include "tests/kernel/program_window.h"

FIXTURE(program_area, program_box_begin, program_box_end);

/* ---- the tree ---- */

enum { SLOTS = 6000 };

static u64 slot_addr(u64 slot)
{
	return MIB(1) + slot * PAGE_SIZE;
}

/* Borrow pages for the nodes of an insertion. */
static void tree_ready(struct area_tree *tree)
{
	while (area_tree_short(tree, 1) > 0) {
		struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);

		if (!page)
			return;
		area_tree_give_node(tree, page_address(page));
	}
}

static void tree_end(struct area_tree *tree)
{
	struct area area;
	void *node;

	while (area_tree_from(tree, 0, &area))
		area_tree_remove(tree, area.start);
	while ((node = area_tree_take_node(tree)) != NULL)
		page_free(pfn_to_page(virt_to_phys(node) >> PAGE_SHIFT));
}

/* Readers see each area whole, while a writer moves the border between two neighbours. */
struct border {
	struct area_tree tree;
	u32 stop;
};

static void watch_border(void *arg)
{
	struct border *border = arg;
	u64 seed = 99 + cpu_id();

	while (!atomic_load_acquire(&border->stop)) {
		const u64 at = slot_addr(next_random(&seed) % SLOTS);
		struct area area;

		EXPECT(area_tree_from(&border->tree, at, &area) && area.start <= at &&
		       area.end > at && area.rights == 1);
		cpu_relax();
	}
}

static void move_border(void *arg)
{
	struct border *border = arg;
	struct area_tree *tree = &border->tree;
	u64 seed = 7;

	if (cpu_id() != 0) {
		watch_border(arg);
		return;
	}
	for (unsigned i = 0; i < 4000; i++) {
		const u64 at = slot_addr(1 + next_random(&seed) % (SLOTS - 2));
		struct area low, high = {.end = 0}, above;

		area_tree_own_from(tree, at, &low);
		area_tree_own_around(tree, at, &high, &above);
		tree_ready(tree);
		area_tree_change(tree);
		if (low.start < at) { /* cut it in two */
			high = low;
			low.end = high.start = at;
			area_tree_replace(tree, low.start, &low);
			area_tree_insert(tree, &high);
		} else if (high.end != 0) { /* join the two */
			area_tree_remove(tree, low.start);
			high.end = low.end;
			area_tree_replace(tree, high.start, &high);
		}
		area_tree_changed(tree);
	}
	atomic_store_release(&border->stop, 1);
}

TEST(program_area, readers_see_areas_whole_while_borders_move)
{
	struct border border = {.stop = 0};

	tree_ready(&border.tree);
	area_tree_insert(
		&border.tree,
		&(struct area){.start = slot_addr(0), .end = slot_addr(SLOTS), .rights = 1});
	cpus_run_together(move_border, &border);
	tree_end(&border.tree);
}

/* ---- calls on ranges ---- */

/* Ranges that begin or end where nothing is a program's, or go round the end of all addresses. */
static const struct {
	u64 start, end;
} beyond[] = {
	{USER_END - PAGE_SIZE, USER_END + PAGE_SIZE},
	{USER_END, USER_END + PAGE_SIZE},
	{USER_END - PAGE_SIZE, TIB(192)},
	{USER_END - PAGE_SIZE, -PAGE_SIZE},
	{USER_END - PAGE_SIZE, 0},
	{USER_END - PAGE_SIZE, PROGRAM_BOX_MEMORY},
	{TIB(128), TIB(128) + PAGE_SIZE},
	{DIRECT_MAP_BASE, DIRECT_MAP_BASE + GIB(1)},
	{-PAGE_SIZE, PROGRAM_BOX_MEMORY},
	{TIB(85), USER_END + PAGE_SIZE},
	{0, -PAGE_SIZE},
};

TEST(program_area, no_call_reaches_beyond_the_addresses_of_programs)
{
	static const unsigned advice[] = {0,  DONTNEED, HUGEPAGE,      22,
					  23, COLLAPSE, GUARD_INSTALL, GUARD_REMOVE};
	const u64 here = PROGRAM_BOX_MEMORY, last = USER_END - PAGE_SIZE;

	EXPECT_EQ(map_at(last, PAGE_SIZE, RW, FIXED), last);
	EXPECT(put(here, 5) == 0 && put(last, 6) == 0);
	for (unsigned i = 0; i < ARRAY_LEN(beyond); i++) {
		const u64 at = beyond[i].start, size = beyond[i].end - at;

		EXPECT(map_at(at, size, RW, FIXED | NORESERVE) < 0);
		EXPECT(unmap(at, size) < 0);
		EXPECT(program_call("mprotect", at, size, R) < 0);
		EXPECT(program_call("mincore", at, size, here + PAGE_SIZE) < 0);
		EXPECT(program_call("msync", at, size, 0) < 0);
		EXPECT(program_call("mlock", at, size) < 0);
		EXPECT(program_call("mbind", at, size, 0, 0, 0) < 0);
		EXPECT(program_call("mremap", at, size, PAGE_SIZE, MAYMOVE) < 0);
		EXPECT(program_call("mremap", at, PAGE_SIZE, size, 0) < 0);
		EXPECT(program_call("mremap", here, PAGE_SIZE, size, MOVE_FIXED, at) < 0);
		for (unsigned a = 0; a < ARRAY_LEN(advice); a++)
			EXPECT(program_call("madvise", at, size, advice[a]) < 0);
	}
	/* below the first address, as mmap() says it */
	EXPECT_EQ(program_call("mremap", here, PAGE_SIZE, PAGE_SIZE, MOVE_FIXED, 0), -EPERM);
	EXPECT_EQ(program_call("mremap", here, PAGE_SIZE, PAGE_SIZE, MOVE_FIXED, 1), -EINVAL);
	EXPECT_EQ(map_at(0, PAGE_SIZE, RW, FIXED), -EPERM);
	EXPECT_EQ(program_call("madvise", here + 1, PAGE_SIZE), -EINVAL); /* inside a page */
	EXPECT_EQ(program_call("mincore", here + 1, 0), -EINVAL);
	EXPECT(get(here) == 5 && get(last) == 6);
}

TEST(program_area, a_page_stays_free_behind_the_heap)
{
	const u64 heap = GIB(1), behind = heap + 3 * PAGE_SIZE;

	program_box_heap(heap);
	EXPECT_EQ(map_at(behind, PAGE_SIZE, RW, FIXED), behind);
	EXPECT_EQ(program_call("brk", heap + 2 * PAGE_SIZE + 1), heap);
	EXPECT_EQ(program_call("brk", heap + 2 * PAGE_SIZE), heap + 2 * PAGE_SIZE);
	EXPECT_EQ(unmap(behind, PAGE_SIZE), 0);
	EXPECT_EQ(program_call("brk", heap + 2 * PAGE_SIZE + 1), heap + 2 * PAGE_SIZE + 1);
	EXPECT_EQ(program_call("brk", heap), heap);
}

/* The loader comes here, too, with ranges from a file. */
TEST(program_area, no_area_lies_beyond_the_addresses_of_programs)
{
	struct hull hull;

	for (unsigned i = 0; i < ARRAY_LEN(beyond); i++) {
		const u64 start = beyond[i].start, end = beyond[i].end;
		struct area area = {.start = start, .end = end, .rights = RW};

		REQUIRE(space_add(&program_space, &area) == -ENOMEM);
		REQUIRE(space_claim(&program_space, start, end, SPACE_REPLACE, &hull) == -ENOMEM);
		EXPECT_EQ(hull.start, hull.end);
		EXPECT_EQ(mapping_make(&program_space, &area, MAPPING_FIXED), -ENOMEM);
	}
}

/* A mapping of a file that grows beyond all offsets does not show the file from its start. */
TEST(program_area, no_mapping_goes_round_the_end_of_all_offsets)
{
	const u64 here = PROGRAM_BOX_MEMORY, shared = 1;
	s64 file, at;

	EXPECT_EQ(put(here, 5), 0);
	file = program_call("memfd_create", here + PAGE_SIZE, 0);
	EXPECT_EQ(program_call("pwrite64", (u64)file, here, 8, 0), 8);
	at = program_call("mmap", 0, PAGE_SIZE, R, shared, (u64)file, -2 * PAGE_SIZE);
	if (at >= 0)
		at = program_call("mremap", (u64)at, PAGE_SIZE, 3 * PAGE_SIZE, MAYMOVE);
	EXPECT(at < 0 || get((u64)at + 2 * PAGE_SIZE) == ~0ULL);
}

TEST(program_area, only_a_validated_mapping_of_a_file_refuses_unknown_flags)
{
	const u64 shared = 1, validated = 3, sync = 0x80000;
	u64 file;

	file = (u64)program_call("memfd_create", PROGRAM_BOX_MEMORY, 0);
	EXPECT(program_call("mmap", 0, PAGE_SIZE, R, shared | sync, file, 0) > 0);
	EXPECT(program_call("mmap", 0, PAGE_SIZE, R, validated, file, 0) > 0);
	EXPECT_EQ(program_call("mmap", 0, PAGE_SIZE, R, validated | sync, file, 0), -ENOTSUP);
}

/* Linux has the same bound (vm.max_map_count). */
TEST(program_area, a_program_has_only_so_many_areas)
{
	const u64 at = GIB(8);
	s64 result = 0;
	u64 pages;

	test_option("program.overcommit", "0"); /* 2 walks over all areas at each request */
	for (pages = 0; pages <= AREA_TREE_COUNT_MAX && result >= 0; pages++)
		result = map_at(at + pages * PAGE_SIZE, PAGE_SIZE, pages % 2 ? R : RW, FIXED);
	EXPECT_EQ(result, -ENOMEM);
	EXPECT_EQ(program_space.tree.count, AREA_TREE_COUNT_MAX);
	EXPECT_EQ(program_call("madvise", PROGRAM_BOX_MEMORY, PAGE_SIZE, DONTNEED), 0);
	EXPECT_EQ(unmap(at, PAGE_SIZE), 0);
	/* there is room for the new place of a page, not for a cut around the old one */
	result = program_call("mremap", PROGRAM_BOX_MEMORY + PAGE_SIZE, PAGE_SIZE, PAGE_SIZE,
			      MOVE_FIXED, PROGRAM_BOX_MEMORY / 2);
	EXPECT_EQ(result, -ENOMEM);
	EXPECT_EQ(program_space.tree.count, AREA_TREE_COUNT_MAX - 1);
	EXPECT_EQ(unmap(at, pages * PAGE_SIZE), 0);
}

/* The next area's place is searched from there, not from the areas above it. */
TEST(program_area, what_becomes_free_ends_at_the_area_above)
{
	const s64 above = map_at(0, PAGE_SIZE, RW, NORESERVE);

	EXPECT_EQ(map_at(0, PAGE_SIZE, R, NORESERVE), above - PAGE_SIZE);
	EXPECT_EQ(map_at(0, PAGE_SIZE, RW, NORESERVE), above - 2 * PAGE_SIZE);
	EXPECT_EQ(unmap((u64)above - PAGE_SIZE, PAGE_SIZE), 0);
	EXPECT_EQ(program_space.full_top, (u64)above);
}

/* Rounds of one call. */
static u64 rounds_of(const char *call, u64 a, u64 b, u64 c, s64 *result)
{
	const u64 before = rounds_so_far();

	*result = program_call(call, a, b, c);
	return rounds_so_far() - before;
}

TEST(program_area, a_call_makes_at_most_one_round)
{
	s64 at, result;

	at = map_at(0, MIB(64), RW, NORESERVE);
	REQUIRE(at > 0);
	EXPECT_EQ(program_call("madvise", at, MIB(64), NOHUGEPAGE), 0);
	for (u64 i = 0; i < MIB(8); i += PAGE_SIZE)
		put((u64)at + i, i);
	EXPECT_EQ(program_call("getrusage", 0, RESULTS), 0);
	EXPECT(get(RESULTS + 32) >= MIB(8) / KIB(1)); /* ru_maxrss, before any call unmaps */
	EXPECT(rounds_of("mprotect", (u64)at, MIB(2), R, &result) <= 1);
	EXPECT(rounds_of("mprotect", (u64)at, MIB(2), RW, &result) == 0); /* only more rights */
	EXPECT(rounds_of("madvise", (u64)at, MIB(2), DONTNEED, &result) <= 1);
	EXPECT(rounds_of("munmap", (u64)at, MIB(64), 0, &result) <= 1);
	EXPECT_EQ(result, 0);
}

/* Two calls that unmap neighbours at the same time leave the table that both are in. */
TEST(program_area, a_table_that_two_calls_left_is_freed)
{
	const u64 at = GIB(8) + MIB(16), far = GIB(8);
	struct taken taken = {.space = &program_space};
	struct hull hull;

	map_at(at, 2 * PAGE_SIZE, RW, FIXED);
	map_at(far, PAGE_SIZE, RW, FIXED);
	EXPECT(put(at, 1) == 0 && put(at + PAGE_SIZE, 1) == 0 && put(far, 1) == 0);
	EXPECT_EQ(space_claim(&program_space, at, at + PAGE_SIZE, SPACE_REPLACE, &hull), 0);
	EXPECT_EQ(unmap(at + PAGE_SIZE, PAGE_SIZE), 0);
	pages_take(at, at + PAGE_SIZE, &hull, &taken);
	taken_finish(&taken);
	space_release(&program_space, &hull);
	EXPECT_EQ(unmap(far, PAGE_SIZE), 0);
}

TEST(program_area, pool_pages_are_promised_and_given_back)
{
	u64 free;
	s64 at;

	if (!pool_borrow(&pool_2m, 4))
		return;
	free = atomic_load_relaxed(&pool_2m.free);
	at = map_at(0, MIB(6), RW, HUGETLB);
	EXPECT(at > 0 && IS_ALIGNED((u64)at, MIB(2)));
	EXPECT_EQ(atomic_load_relaxed(&pool_2m.reserved), 3);
	EXPECT_EQ(map_at(0, MIB(2) * (free + 8), RW, HUGETLB), -ENOMEM);
	EXPECT_EQ(put((u64)at + MIB(3), 9), 0);
	EXPECT_EQ(atomic_load_relaxed(&pool_2m.reserved), 2);
	EXPECT_EQ(unmap((u64)at, MIB(1)), -EINVAL);
	EXPECT_EQ(unmap((u64)at - 2 * PAGE_SIZE, PAGE_SIZE), 0);
	/* the page stays, with zeros, because the promise must hold */
	EXPECT_EQ(program_call("madvise", at + MIB(2), MIB(2), DONTNEED), 0);
	EXPECT_EQ(atomic_load_relaxed(&pool_2m.reserved), 2);
	EXPECT_EQ(get((u64)at + MIB(3)), 0);
	EXPECT_EQ(unmap((u64)at, MIB(6)), 0);
	EXPECT_EQ(atomic_load_relaxed(&pool_2m.reserved), 0);
	/* no call cuts a page of a pool */
	at = map_at(0, MIB(4), RW, HUGETLB);
	EXPECT_EQ(put((u64)at, 1), 0);
	EXPECT_EQ(program_call("mprotect", at, MIB(1), R), -EINVAL);
	EXPECT_EQ(program_call("mprotect", at + PAGE_SIZE, MIB(3), R), -EINVAL);
	EXPECT_EQ(program_call("madvise", at + PAGE_SIZE, PAGE_SIZE, DONTNEED), -EINVAL);
	EXPECT_EQ(map_at((u64)at + MIB(1), PAGE_SIZE, RW, FIXED), -EINVAL);
	EXPECT_EQ(get((u64)at), 1);
	EXPECT_EQ(program_call("mprotect", at, MIB(2), R), 0);
	/* the end of the program gives back */
	REQUIRE(program_box_again());
	EXPECT_EQ(atomic_load_relaxed(&pool_2m.free), free);
	pool_return(&pool_2m, 4);
}

/* The page would come, and its entry would have a bit that is reserved there. */
TEST(program_area, a_cpu_that_maps_no_1g_pages_gives_none)
{
	const u64 giga = 30ULL << 26;

	EXPECT_EQ(map_at(GIB(8), GIB(1), RW, HUGETLB | NORESERVE | FIXED | giga),
		  cpu_has_1g_mappings() ? GIB(8) : (u64)-EINVAL);
}

/* A call over pages that a pool has promised and others treats each as it would alone. */
TEST(program_area, forgetting_keeps_the_promised_pages_of_a_range)
{
	const u64 at = GIB(8);
	enum pt_level level;
	pte_t pte;

	if (!pool_borrow(&pool_2m, 4))
		return;
	EXPECT_EQ(map_at(at, MIB(2), RW, HUGETLB | FIXED), at);
	EXPECT_EQ(map_at(at + MIB(2), MIB(2), RW, HUGETLB | NORESERVE | FIXED), at + MIB(2));
	EXPECT_EQ(put(at, 1), 0);
	EXPECT_EQ(put(at + MIB(2), 2), 0);
	EXPECT_EQ(program_call("madvise", at, MIB(4), DONTNEED), 0);
	EXPECT(pages_find(&program_space, at, &pte, &level));
	EXPECT(!pages_find(&program_space, at + MIB(2), &pte, &level));
	EXPECT_EQ(get(at), 0);
	EXPECT_EQ(unmap(at, MIB(4)), 0);
	pool_return(&pool_2m, 4);
}

static struct memory_policy policy_at(u64 at)
{
	struct area area = {.start = 0};

	space_look(&program_space, at, &area);
	return area.policy;
}

TEST(program_area, mbind_gives_its_range_a_policy)
{
	enum { MPOL_PREFERRED = 1 };
	const u64 at = GIB(8), nodes = 1;

	EXPECT_EQ(map_at(at, 3 * PAGE_SIZE, RW, FIXED), at);
	EXPECT_EQ(put(PROGRAM_BOX_MEMORY, nodes), 0);
	EXPECT_EQ(program_call("mbind", at + PAGE_SIZE, PAGE_SIZE, MPOL_PREFERRED,
			       PROGRAM_BOX_MEMORY, 2),
		  0);
	EXPECT_EQ(policy_at(at).how, POLICY_NEAR);
	EXPECT_EQ(policy_at(at + PAGE_SIZE).how, POLICY_PREFER);
	EXPECT_EQ(policy_at(at + PAGE_SIZE).nodes, nodes);
	EXPECT_EQ(policy_at(at + 2 * PAGE_SIZE).how, POLICY_NEAR);
}

/* The node of the page at an address; NODE_NONE if there is none. */
static node_t node_at(u64 at)
{
	enum pt_level level;
	pte_t pte;

	if (!pages_find(&program_space, at, &pte, &level))
		return NODE_NONE;
	return mm_kernel.zone[page_head(pfn_to_page(pte_pfn(pte)))->zone].node;
}

/* Map memory at GIB(8) whose pages come from nodes 0 and 1. */
static bool map_on_two_nodes(u64 size, u64 mode)
{
	const u64 nodes = 3;

	return map_at(GIB(8), size, RW, FIXED) == (s64)GIB(8) &&
	       put(PROGRAM_BOX_MEMORY, nodes) == 0 &&
	       program_call("mbind", GIB(8), size, mode, PROGRAM_BOX_MEMORY, 3) == 0;
}

/* Programs touch large pages at their first bytes, one after the other. */
TEST(program_area, large_pages_come_from_one_node_after_the_other)
{
	enum { MPOL_INTERLEAVE = 3, PAGES = 4 };
	const u64 at = GIB(8);

	if (node_count < 2)
		SKIP("needs two nodes");
	test_option("program.thp", "always");
	REQUIRE(map_on_two_nodes(PAGES * MIB(2), MPOL_INTERLEAVE));
	for (u64 i = 0; i < PAGES; i++) {
		EXPECT_EQ(put(at + i * MIB(2), i), 0);
		EXPECT(node_at(at + i * MIB(2)) == i % 2);
	}
}

/* Memory that is bound to two nodes comes from the second when the first has none. */
TEST(program_area, a_node_of_a_set_stands_in_for_another)
{
	enum { MPOL_BIND = 2 };
	const u64 at = GIB(8);
	struct page *held = NULL, *page;
	node_t full;
	int err;

	if (node_count < 2 || this_cpu()->node > 1)
		SKIP("needs two nodes, and this CPU on one of the first two");
	full = this_cpu()->node;
	REQUIRE(map_on_two_nodes(PAGE_SIZE, MPOL_BIND));
	for (unsigned order = BLOCK_ORDER + 1; order-- > 0;)
		while ((page = page_alloc(order, USE_UNMOVABLE, PAGE_NODE, full)))
			page_chain_push(&held, page);
	err = put(at, 5);
	while (held)
		page_free(page_chain_pop(&held));
	EXPECT_EQ(err, 0);
	EXPECT_EQ(get(at), 5);
}

/* The pool has a page on the second node of the set only, and one where no page may be from. */
/* The first three nodes that have a page for a pool. Returns how many there are. */
static unsigned find_nodes(node_t nodes[3])
{
	unsigned count = 0;

	for (node_t node = 0; node < node_count && count < 3; node++)
		if (pool_grow_on(&pool_2m, hvo_on(), node, 1) == 1)
			nodes[count++] = node;
	EXPECT_EQ(pool_shrink(&pool_2m, hvo_on(), count), count);
	return count;
}

TEST(program_area, a_pools_page_of_any_node_of_a_set_is_found)
{
	enum { MPOL_BIND = 2 };
	const u64 at = GIB(8);
	node_t nodes[3];

	if (node_count < 3 || find_nodes(nodes) < 3)
		SKIP("needs three nodes");
	for (unsigned not = 0; not < 3; not ++) {
		const node_t of[] = {nodes[not == 0], nodes[not == 2 ? 1 : 2]};

		for (unsigned i = 0; i < 2; i++) {
			const u64 grown = pool_grow_on(&pool_2m, hvo_on(), of[i], 1) +
					  pool_grow_on(&pool_2m, hvo_on(), nodes[not ], 1);

			EXPECT_EQ(map_at(at, MIB(2), RW, HUGETLB | NORESERVE | FIXED), at);
			EXPECT_EQ(put(PROGRAM_BOX_MEMORY, 1ULL << of[0] | 1ULL << of[1]), 0);
			EXPECT_EQ(program_call("mbind", at, MIB(2), MPOL_BIND, PROGRAM_BOX_MEMORY,
					       node_count + 1),
				  0);
			EXPECT_EQ(put(at, 5), 0);
			EXPECT_EQ(node_at(at), of[i]);
			EXPECT_EQ(unmap(at, MIB(2)), 0);
			EXPECT_EQ(pool_shrink(&pool_2m, hvo_on(), grown), grown);
		}
	}
}

/* Counting leaves splits none, wherever areas begin. */
TEST(program_area, a_leaf_in_two_areas_is_counted_in_parts)
{
	const u64 at = GIB(8);
	struct pages_count low = {.leaves = {0}}, high = {.leaves = {0}};

	EXPECT_EQ(map_at(at, MIB(2), RW, FIXED), at);
	EXPECT_EQ(put(at, 5), 0);
	EXPECT_EQ(program_call("madvise", at, MIB(1), NOHUGEPAGE), 0);
	pages_count_range(&program_space, at, at + MIB(1), &low);
	pages_count_range(&program_space, at + MIB(1), at + MIB(2), &high);
	EXPECT(low.leaves[PT_PAGE] == 256 ||
	       low.leaves[PT_PAGE] == 1); /* or there was no huge page */
	EXPECT_EQ(low.leaves[PT_PMD] + high.leaves[PT_PMD], 0);
	EXPECT_EQ(high.leaves[PT_PAGE], low.leaves[PT_PAGE] == 256 ? 256 : 0);
	EXPECT_EQ(unmap(at, MIB(2)), 0);
}

/* ---- random calls and a model ---- */

#define WINDOW_START GIB(16)
#define RACE_START   GIB(24)

static s64 call_in_box(struct program_window *w, unsigned number, const u64 arg[6])
{
	return program_call_with(NULL, call_of(number)->name, arg);
}

static void fail_case(struct program_window *w, const char *text)
{
	test_fail(__FILE__, __LINE__, "%s", text);
}

/* During every second step an allocation fails. */
TEST(program_area, random_calls_agree_with_a_model)
{
	enum { STEPS = 4000, OWN_FILE = 900 };
	struct page *memory = page_alloc(4, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);
	struct random_source random = {.state = 4711};
	struct program_window *w;

	_Static_assert(sizeof(*w) <= PAGE_SIZE << 4, "the window's memory");
	REQUIRE(memory);
	w = page_address(memory);
	w->start = WINDOW_START;
	w->buffer = PROGRAM_BOX_MEMORY;
	w->file = OWN_FILE;
	w->random = &random;
	w->call = call_in_box;
	w->fail = fail_case;
	EXPECT(program_window_begin(w));
	for (unsigned i = 0; i < STEPS && !test_failed(); i++) {
		w->may_fail = i % 2;
		if (w->may_fail)
			brim_begin(FAIL_ALLOC, 1 + (u32)random_below(&random, 24), FAIL_ONCE);
		program_window_step(w);
		if (w->may_fail)
			brim_end();
	}
	program_window_end(w);
	page_free(memory);
}

/* ---- busy areas and pins, one at a time ---- */

TEST(program_area, a_touch_of_a_busy_area_waits)
{
	struct program_call touch = {.call = "getcwd", .arg = {RACE_START, 8}};
	u64 at = RACE_START;
	struct area area;

	SKIP_ON_ONE_CPU();
	map_at(RACE_START, MIB(1), RW, FIXED);
	EXPECT_EQ(put(RACE_START, 1), 0); /* a page that is there, so that only the pin waits */
	EXPECT_EQ(space_take(&program_space, &at, RACE_START + MIB(1), &area), 1);
	program_call_start(&touch);
	EXPECT_EQ(atomic_load_acquire(&touch.done), 0);
	space_put_back(&program_space, &area);
	work_wait(touch.cpu, 0);
	EXPECT_EQ(touch.result, 2);
	EXPECT_EQ(get(RACE_START), '/');
}

TEST(program_area, a_call_waits_for_a_page_that_is_being_copied)
{
	struct program_call unmapping = {.call = "munmap", .arg = {RACE_START, MIB(1)}};
	struct area area;

	SKIP_ON_ONE_CPU();
	map_at(RACE_START, MIB(1), RW, FIXED);
	REQUIRE(space_pin(&program_space, RACE_START + MIB(1) - PAGE_SIZE, PT_PAGE, &area));
	program_call_start(&unmapping);
	EXPECT_EQ(atomic_load_acquire(&unmapping.done), 0);
	space_unpin(&program_space);
	work_wait(unmapping.cpu, 0);
	EXPECT_EQ(atomic_load_acquire(&unmapping.done), 1);
}

/* ---- races ---- */

/*
 * Every CPU is a thread. Each writes only words that say where they are, and reads words anywhere:
 * zero, a word of that place, or nothing. A page that serves two addresses at once, or is freed
 * while a thread writes to it, shows as a foreign word.
 */
enum { RACE_PAGES = 1100, RACE_OPS = 400 };

static void race_op(u64 *seed)
{
	const u64 page = next_random(seed) % RACE_PAGES,
		  count = MIN(1 + next_random(seed) % 300, RACE_PAGES - page),
		  at = RACE_START + page * PAGE_SIZE;
	u64 word;

	switch (next_random(seed) % 17) {
	case 0:
		map_at(at, count * PAGE_SIZE, RW, FIXED);
		return;
	case 1:
		unmap(at, count * PAGE_SIZE);
		return;
	case 2:
		program_call("mprotect", at, count * PAGE_SIZE, next_random(seed) % 2 ? R : RW);
		return;
	case 3:
		program_call("madvise", at, count * PAGE_SIZE, DONTNEED);
		return;
	case 4: /* there and back again */
		word = (u64)program_call("mremap", at, PAGE_SIZE, 2 * PAGE_SIZE, MAYMOVE);
		if (word < USER_END)
			unmap(word, 2 * PAGE_SIZE);
		return;
	case 5:
		program_call("madvise", at, count * PAGE_SIZE,
			     next_random(seed) % 2 ? GUARD_INSTALL : GUARD_REMOVE);
		return;
	default:
		break;
	}
	for (u64 i = 0; i < MIN(count, 16); i++) {
		put(at + i * PAGE_SIZE, at + i * PAGE_SIZE);
		word = get(at + i * PAGE_SIZE);
		EXPECT(word == 0 || word == ~0ULL || word == at + i * PAGE_SIZE);
	}
}

static void race_thread(void *arg)
{
	u64 seed = 1 + cpu_id();

	if (!thread_record(cpu_id()))
		return;
	for (unsigned i = 0; i < RACE_OPS; i++)
		race_op(&seed);
}

TEST(program_area, touches_race_with_all_calls)
{
	cpus_run_together(race_thread, NULL);
}
