/*
 * Fault injection for HVO: every reservation and section opening of an operation fails once, one at
 * a time, in each mode.
 *
 * An operation is repeated on a new private machine with the first, second, third ... request
 * failing (struct mm, fail), until a run meets no failure. After each run every frame must have an
 * owner, every PTE must fit its block's state, and the pool's counts must be exact. The operation
 * must have reported what it did, and it must succeed completely when it is repeated.
 * hvo_fault_giga_test.c covers 1 GiB pages of mapped sections.
 */
#include "kernel/run/test.h"
#include "mm/memmap/meta.h"
#include "mm/page/page_alloc.h"
#include "mm/zone/section.h"
#include "mm/zone/section_close.h"
#include "tests/kernel/modes.h"
#include "tests/kernel/pool_check.h"
#include "tests/kernel/row.h"

enum {
	FAULTS_MAX = 400,
	PAGES = 70,
	MAPPED_PAGES = 40,
	UNBATCHED_PAGES = 12,
	BARE_AND_MAPPED = 110,
	SPLITS = 5
};

struct sweep {
	struct arena *a;
	const struct hvo_mode *mode;
	u32 fault;    /* number of the request that fails */
	u64 expected; /* result of complete success */
	struct page *page[2 * SPLITS];
};

struct operation {
	const char *name;
	u64 real, phantom; /* memory of the arena, in bytes */
	u64 all;           /* result of complete success */
	bool (*prepare)(struct sweep *s);
	u64 (*run)(struct sweep *s); /* returns how much was done */
	void (*undo)(struct sweep *s);
	u32 least; /* places that must have failed; with 0, none may have */
};

/* The node that the operations work on: the phantom's node if there is a phantom. */
static node_t node_of(const struct sweep *s)
{
	return s->a->options.phantom ? 1 : 0;
}

static bool nothing(struct sweep *s)
{
	(void)s;
	return true;
}

/* ---- operations ---- */

static u64 grow(struct sweep *s)
{
	return pool_grow_on(&s->a->pool, s->mode, node_of(s), s->expected - s->a->pool.pages);
}

static u64 shrink(struct sweep *s)
{
	return pool_shrink(&s->a->pool, s->mode, s->expected);
}

static void shrink_all(struct sweep *s)
{
	EXPECT_EQ(shrink(s), s->expected);
	EXPECT_EQ(s->a->pool.pages, 0);
}

static bool grow_first(struct sweep *s)
{
	return grow(s) == s->expected;
}

static void split_free(struct sweep *s)
{
	for (unsigned i = 0; i < ARRAY_LEN(s->page); i++)
		if (s->page[i])
			mm_page_free(&s->a->mm, s->page[i]);
	for (unsigned i = 0; i < ARRAY_LEN(s->page); i++)
		s->page[i] = NULL;
}

/* Allocate halves of blocks, for which bare blocks become full. */
static u64 split(struct sweep *s)
{
	u64 count = 0;

	for (unsigned i = 0; i < ARRAY_LEN(s->page); i++) {
		if (!s->page[i])
			s->page[i] = mm_page_alloc(&s->a->mm, BLOCK_ORDER - 1, USE_MOVABLE,
						   PAGE_NODE, node_of(s));
		count += s->page[i] != NULL;
	}
	return count;
}

/* Make all free memory of the node huge, so that splitting starts with a round. */
static bool all_is_huge(struct sweep *s)
{
	return pool_grow_on(&s->a->pool, hvo_on(), node_of(s), ~0ULL) > 0 &&
	       pool_shrink(&s->a->pool, hvo_on(), ~0ULL) > 0;
}

/* Leave full blocks in on-demand sections; making them huge takes a round. */
static bool recycle_first(struct sweep *s)
{
	const bool all = split(s) == ARRAY_LEN(s->page);

	split_free(s);
	return all;
}

static u64 demote(struct sweep *s)
{
	return pool_demote(&s->a->giga, &s->a->pool, s->mode, s->expected);
}

static bool grow_giga(struct sweep *s)
{
	return pool_grow_on(&s->a->giga, s->mode, node_of(s), s->expected) == s->expected;
}

static void shrink_demoted(struct sweep *s)
{
	EXPECT_EQ(s->a->giga.pages, 0);
	EXPECT_EQ(pool_shrink(&s->a->pool, s->mode, ~0ULL), s->expected * GIB_BLOCKS);
}

static u64 make_giga(struct sweep *s)
{
	return pool_grow_on(&s->a->giga, s->mode, node_of(s), s->expected - s->a->giga.pages);
}

static u64 shrink_giga(struct sweep *s)
{
	return pool_shrink(&s->a->giga, s->mode, s->expected);
}

static void shrink_giga_all(struct sweep *s)
{
	EXPECT_EQ(shrink_giga(s), s->expected);
	EXPECT_EQ(s->a->giga.pages, 0);
}

static u64 open_mapped(struct sweep *s)
{
	return section_open_next(arena_zone(s->a, 0), SECTION_MAPPED) == 0;
}

static u64 open_on_demand(struct sweep *s)
{
	return section_open_next(arena_zone(s->a, 0), SECTION_ON_DEMAND) == 0;
}

static void close_again(struct sweep *s)
{
	EXPECT(sections_close_all(&s->a->mm) > 0);
}

/* ---- the sweep ---- */

static void check_after(struct sweep *s)
{
	for (node_t n = 0; n < s->a->mm.nodes; n++)
		meta_end_batch(&s->a->mm.node[n]);
	pool_expect_consistent(&s->a->pool);
	pool_expect_consistent(&s->a->giga);
	EXPECT(arena_accounted(s->a));
}

/* Run the operation once with one failure. Returns true if the failure was met. */
static bool run_with_fault(struct sweep *s, const struct operation *op)
{
	const u64 before = s->a->pool.pages + GIB_BLOCKS * s->a->giga.pages;
	bool met;
	u64 done;

	fail_arm(&s->a->mm.fail, FAIL_ANY, s->fault, FAIL_ONCE);
	done = op->run(s);
	met = fail_disarm(&s->a->mm.fail);
	EXPECT(done <= op->all);
	if (op->run == grow)
		EXPECT_EQ(s->a->pool.pages, before + done);
	if (op->run == shrink)
		EXPECT_EQ(s->a->pool.pages, before - done);
	if (op->run == make_giga)
		EXPECT_EQ(s->a->giga.pages * GIB_BLOCKS, before + done * GIB_BLOCKS);
	if (op->run == demote)
		EXPECT_EQ(s->a->pool.pages + GIB_BLOCKS * s->a->giga.pages, before);
	check_after(s);
	if (op->run == split)
		done = 0; /* split() returns how many pages there are, not how many it added */
	EXPECT_EQ(done + (done < op->all ? op->run(s) : 0), op->all);
	check_after(s);
	op->undo(s);
	check_after(s);
	return met;
}

static bool run_one(struct sweep *s, const struct operation *op, bool *met)
{
	s->a = arena_borrow(op->real, .phantom = op->phantom);
	if (!s->a)
		return false;
	s->expected = op->all;
	if (!op->prepare(s))
		test_fail(__FILE__, __LINE__, "%s: cannot be prepared", op->name);
	else
		*met = run_with_fault(s, op);
	arena_return(s->a);
	return !test_failed();
}

/* If too few places failed, the sweep missed its target. */
static void sweep(const struct hvo_mode *mode, const struct operation *op)
{
	struct sweep s = {.mode = mode};
	bool met = true;
	u32 last = 0;

	for (s.fault = 1; met && s.fault < FAULTS_MAX; s.fault = sweep_next(s.fault)) {
		if (!run_one(&s, op, &met))
			break;
		last = met ? s.fault : last;
	}
	if (!s.a)
		return;
	sweep_ended(op->name, mode->name, test_failed() ? s.fault : last, op->least);
	EXPECT(!met || test_failed());
}

/* ---- every mode, in memory with mapped sections ---- */

/*
 * hvo=on takes bare blocks first, and mapped sections after that. The operation therefore needs
 * more pages than the section with metadata memory has blocks.
 */
static bool open_all_mapped(struct sweep *s)
{
	while (section_open_next(arena_zone(s->a, 0), SECTION_MAPPED) == 0)
		;
	return true;
}

static bool open_all_mapped_and_grow(struct sweep *s)
{
	return open_all_mapped(s) && grow_first(s);
}

static u64 pages_for(const struct hvo_mode *mode)
{
	if (!mode->mapped)
		return BARE_AND_MAPPED;
	return mode->page_rounds ? UNBATCHED_PAGES : MAPPED_PAGES;
}

/*
 * The baselines open the section themselves, so that can fail. A mode that keeps all struct pages
 * requests nothing else.
 */
TEST(mm_fault, growing_in_every_mode)
{
	for (const struct hvo_mode *mode = hvo_modes; mode->name && !test_failed(); mode++) {
		const struct operation op = {.name = "grow",
					     .real = MIB(256),
					     .all = pages_for(mode),
					     .prepare = mode->mapped ? nothing : open_all_mapped,
					     .run = grow,
					     .undo = shrink_all,
					     .least = !mode->optimise ? 1
						      : mode->mapped  ? 5
								      : 2};

		sweep(mode, &op);
	}
}

/*
 * The struct pages of each page are reserved. Where they never went away nothing is reserved, so
 * nothing can fail.
 */
TEST(mm_fault, shrinking_in_every_mode)
{
	for (const struct hvo_mode *mode = hvo_modes; mode->name && !test_failed(); mode++) {
		const struct operation op = {.name = "shrink",
					     .real = MIB(256),
					     .all = pages_for(mode),
					     .prepare = mode->mapped ? grow_first
								     : open_all_mapped_and_grow,
					     .run = shrink,
					     .undo = check_after,
					     .least = !mode->optimise ? 0
						      : mode->mapped  ? (u32)pages_for(mode)
								      : MAPPED_PAGES};

		sweep(mode, &op);
	}
}

/* ---- cases for on-demand sections only: hvo=on ---- */

TEST(mm_fault, growing_demoting_and_splitting_with_hvo_on)
{
	static const struct operation ops[] = {
		{"grow", MIB(16), GIB(1), PAGES, nothing, grow, shrink_all, 4},
		{"grow, recycled", MIB(16), GIB(1), PAGES, recycle_first, grow, shrink_all, 3},
		{"demote", MIB(16), GIB(2), 2, grow_giga, demote, shrink_demoted, 2},
		{"split", MIB(16), GIB(1), 2 * SPLITS, nothing, split, split_free, SPLITS},
		{"split, huge", MIB(64), 0, 2 * SPLITS, all_is_huge, split, split_free, SPLITS},
		{"open", MIB(256), 0, 1, nothing, open_on_demand, close_again, 2},
	};

	static const struct operation mapped = {"open mapped", MIB(256),    0,           1,
						nothing,       open_mapped, close_again, 1};

	for (unsigned i = 0; i < ARRAY_LEN(ops) && !test_failed(); i++)
		sweep(hvo_on(), &ops[i]);
	sweep(hvo_mode_find("batched"), &mapped);
}

static const struct operation making_1g = {"grow 1G", MIB(16),   GIB(2),          2,
					   nothing,   make_giga, shrink_giga_all, 16};

TEST(mm_fault, making_1g_pages)
{
	sweep(hvo_on(), &making_1g);
}

/*
 * A half-done attempt must be undone completely, because the searches other than `index` see open
 * sections only.
 */
TEST(mm_fault, making_1g_pages_by_a_search_that_opens_nothing)
{
	test_option("contig", "vanilla");
	sweep(hvo_on(), &making_1g);
}
