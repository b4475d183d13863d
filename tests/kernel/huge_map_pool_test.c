/*
 * Huge mappings and pools: promises are kept, and if there is no page, the result is defined: the
 * program is asked, or smaller pages take its place.
 */
#include "mm/clear/clear.h"
#include "tests/kernel/huge_check.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/space_look.h"

#define SIZE MIB(2)

/* Volatile, because the callback runs between two instructions of the touching code. */
struct program {
	void *addr;
	volatile u64 asked;
	void *volatile last;
};

/* Give the first page back, so that the pool has one again. */
static bool give_one_back(void *ctx, void *addr)
{
	struct program *program = ctx;

	program->asked++;
	program->last = addr;
	return huge_release(program->addr, SIZE) == 0;
}

TEST(mm_huge_map, without_a_page_the_program_is_asked)
{
	struct program program = {.asked = 0};
	const struct huge_request request = {.size = 3 * SIZE,
					     .page = SIZE,
					     .flags = HUGE_POOL,
					     .exhausted = give_one_back,
					     .ctx = &program};

	if (!pool_borrow(&pool_2m, 2))
		return;
	program.addr = huge_map_with(&request);
	REQUIRE(program.addr);
	*word_at(program.addr, 0) = *word_at(program.addr, SIZE) = 1;
	EXPECT_EQ(huge_populate(program.addr, 3 * SIZE), (u64)-ENOMEM);
	EXPECT_EQ(program.asked, 0);
	*word_at(program.addr, 2 * SIZE + 72) = 3;
	EXPECT_EQ(program.asked, 1);
	EXPECT(program.last == (char *)program.addr + 2 * SIZE + 72);
	EXPECT_EQ(*word_at(program.addr, 2 * SIZE + 72), 3);
	EXPECT_EQ(*word_at(program.addr, SIZE), 1);
	huge_unmap(program.addr);
	pool_return(&pool_2m, 2);
}

/* ---- nodes ---- */

/*
 * Huge mappings whose pages come from a node of the program's choice, whichever CPU touches them.
 */

enum { PAGES = 24 };

/* The node of the page that is mapped at `addr`; NODE_NONE if there is none. */
static node_t node_at(const void *addr)
{
	const pte_t pte = space_leaf(&huge_space, (virt_t)addr);

	if (!pte)
		return NODE_NONE;
	return mm_kernel.zone[pfn_to_page(pte_pfn(pte))->zone].node;
}

/* Does this node have a page of the size for page_alloc()? */
static bool node_gives(node_t node, unsigned order)
{
	struct page *page = page_alloc(order, USE_UNMOVABLE, PAGE_NODE, node);

	if (page)
		page_free(page);
	return page;
}

/* Map and populate, with all CPUs of all nodes, and look where the pages are from. */
static void expect_from(node_t node, u64 bytes, unsigned flags)
{
	const struct huge_request request = {
		.size = PAGES * bytes, .page = bytes, .flags = flags, .node = node};
	char *addr = huge_map_with(&request);
	u64 elsewhere = 0;

	REQUIRE(addr);
	if (huge_populate(addr, PAGES * bytes) < 0) {
		huge_unmap(addr); /* too little memory for so many */
		return;
	}
	for (unsigned i = 0; i < PAGES; i++)
		elsewhere += node_at(addr + i * bytes) != node;
	EXPECT_EQ(elsewhere, 0);
	huge_unmap(addr);
}

TEST(mm_huge_map, pages_come_from_the_node_that_is_named)
{
	for (node_t node = 0; node < mm_kernel.nodes; node++) {
		if (node_gives(node, 0))
			expect_from(node, PAGE_SIZE, HUGE_BIND);
		if (node_gives(node, BLOCK_ORDER))
			expect_from(node, MIB(2), HUGE_BIND);
	}
}

/* A touch that a node cannot serve goes to others with HUGE_NODE, and fails with HUGE_BIND. */
TEST(mm_huge_map, a_node_that_has_nothing_is_no_help)
{
	for (node_t node = 0; node < mm_kernel.nodes; node++) {
		struct huge_request request = {
			.size = PAGE_SIZE, .page = PAGE_SIZE, .flags = HUGE_NODE, .node = node};
		const bool gives = node_gives(node, 0);
		char *addr = huge_map_with(&request);

		REQUIRE(addr);
		EXPECT_EQ(huge_populate(addr, PAGE_SIZE), 0);
		EXPECT(!gives || node_at(addr) == node);
		huge_unmap(addr);
		request.flags = HUGE_BIND;
		addr = huge_map_with(&request);
		REQUIRE(addr);
		EXPECT_EQ(huge_populate(addr, PAGE_SIZE), gives ? 0 : (u64)-ENOMEM);
		huge_unmap(addr);
	}
}

/*
 * The pool has pages of one node. A mapping that is bound to another one takes none of them, and
 * they are all still there afterwards.
 */
TEST(mm_huge_map, a_pools_pages_of_other_nodes_are_left_alone)
{
	for (node_t node = 0; node < mm_kernel.nodes; node++) {
		const u64 grown = pool_grow_on(&pool_2m, hvo_on(), node, 2);
		const u64 free = pool_2m.free;

		for (node_t other = 0; grown > 0 && other < mm_kernel.nodes; other++) {
			const struct huge_request request = {.size = MIB(2),
							     .page = MIB(2),
							     .flags = HUGE_BIND | HUGE_POOL,
							     .node = other};
			char *addr = huge_map_with(&request);

			REQUIRE(addr);
			if (pool_2m.node[other].pages == 0)
				EXPECT_EQ(huge_populate(addr, MIB(2)), (u64)-ENOMEM);
			else if (huge_populate(addr, MIB(2)) == 0)
				EXPECT_EQ(node_at(addr), other);
			huge_unmap(addr);
			EXPECT_EQ(pool_2m.free, free);
		}
		EXPECT_EQ(pool_shrink(&pool_2m, hvo_on(), grown), grown);
	}
}
