/*
 * Fault injection for HVO: every reservation and section opening of an operation fails once, one at
 * a time, in each mode.
 *
 * An operation is repeated on a new private machine with the first, second, third ... request
 * failing (struct mm, fail), until a run meets no failure. After each run every frame must have an
 * owner, every PTE must fit its block's state, and the pool's counts must be exact. The operation
 * must have reported what it did, and it must succeed completely when it is repeated.
 *
 * 1 GiB pages of mapped sections are made in the machine's own memory, because no arena is that
 * large.
 */
#include "tests/kernel/mm_test.h"

enum {
	FAULTS_MAX = 400,
	PAGES = 70,
	MAPPED_PAGES = 40,
	UNBATCHED_PAGES = 12,
	BARE_AND_MAPPED = 110,
	SPLITS = 5
};

struct sweep {
	struct arena *a; /* NULL: the machine's own memory */
	struct mm *mm;
	struct pool *pool, *giga;
	const struct hvo_mode *mode;
	u32 fault;    /* number of the request that fails */
	u64 expected; /* result of complete success */
	struct page *page[2 * SPLITS];
};

struct operation {
	const char *name;
	u64 real, phantom; /* memory of the arena, in bytes; 0: in the machine's own memory */
	u64 all;           /* result of complete success */
	bool (*prepare)(struct sweep *s);
	u64 (*run)(struct sweep *s); /* returns how much was done */
	void (*undo)(struct sweep *s);
	u32 least; /* places that must have failed; with 0, none may have */
};

/* The node that the operations work on: the phantom's node if there is a phantom. */
static node_t node_of(const struct sweep *s)
{
	if (!s->a)
		return NODE_NONE;
	return s->a->options.phantom ? 1 : 0;
}

static bool nothing(struct sweep *s)
{
	return true;
}

/* ---- operations ---- */

static u64 grow(struct sweep *s)
{
	return pool_grow_on(s->pool, s->mode, node_of(s), s->expected - s->pool->pages);
}

static u64 shrink(struct sweep *s)
{
	return pool_shrink(s->pool, s->mode, s->expected);
}

static void shrink_all(struct sweep *s)
{
	EXPECT_EQ(shrink(s), s->expected);
	EXPECT_EQ(s->pool->pages, 0);
}

static bool grow_first(struct sweep *s)
{
	return grow(s) == s->expected;
}

static void split_free(struct sweep *s)
{
	for (unsigned i = 0; i < ARRAY_LEN(s->page); i++)
		if (s->page[i])
			mm_page_free(s->mm, s->page[i]);
	for (unsigned i = 0; i < ARRAY_LEN(s->page); i++)
		s->page[i] = NULL;
}

/* Allocate halves of blocks, for which bare blocks become full. */
static u64 split(struct sweep *s)
{
	u64 count = 0;

	for (unsigned i = 0; i < ARRAY_LEN(s->page); i++) {
		if (!s->page[i])
			s->page[i] = mm_page_alloc(s->mm, BLOCK_ORDER - 1, USE_MOVABLE, PAGE_NODE,
						   node_of(s));
		count += s->page[i] != NULL;
	}
	return count;
}

/* Make all free memory of the node huge, so that splitting starts with a round. */
static bool all_is_huge(struct sweep *s)
{
	return pool_grow_on(s->pool, hvo_on(), node_of(s), ~0ULL) > 0 &&
	       pool_shrink(s->pool, hvo_on(), ~0ULL) > 0;
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
	return pool_demote(s->giga, s->pool, s->mode, s->expected);
}

static bool grow_giga(struct sweep *s)
{
	return pool_grow_on(s->giga, s->mode, node_of(s), s->expected) == s->expected;
}

static void shrink_demoted(struct sweep *s)
{
	EXPECT_EQ(s->giga->pages, 0);
	EXPECT_EQ(pool_shrink(s->pool, s->mode, ~0ULL), s->expected * GIB_BLOCKS);
}

static u64 make_giga(struct sweep *s)
{
	return pool_grow_on(s->giga, s->mode, node_of(s), s->expected - s->giga->pages);
}

static u64 shrink_giga(struct sweep *s)
{
	return pool_shrink(s->giga, s->mode, s->expected);
}

static void shrink_giga_all(struct sweep *s)
{
	EXPECT_EQ(shrink_giga(s), s->expected);
	EXPECT_EQ(s->giga->pages, 0);
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
	EXPECT(sections_close_all(s->mm) > 0);
}

/* ---- the sweep ---- */

static void check_after(struct sweep *s)
{
	for (node_t n = 0; n < s->mm->nodes; n++)
		meta_end_batch(&s->mm->node[n]);
	EXPECT(s->a ? arena_accounted(s->a) : account_machine());
}

/* Run the operation once with one failure. Returns true if the failure was met. */
static bool run_with_fault(struct sweep *s, const struct operation *op)
{
	const u64 before = s->pool->pages + GIB_BLOCKS * s->giga->pages;
	bool met;
	u64 done;

	fail_arm(&s->mm->fail, FAIL_ANY, s->fault, FAIL_ONCE);
	done = op->run(s);
	met = fail_disarm(&s->mm->fail);
	EXPECT(done <= op->all);
	if (op->run == grow)
		EXPECT_EQ(s->pool->pages, before + done);
	if (op->run == shrink)
		EXPECT_EQ(s->pool->pages, before - done);
	if (op->run == make_giga)
		EXPECT_EQ(s->giga->pages * GIB_BLOCKS, before + done * GIB_BLOCKS);
	if (op->run == shrink_giga)
		EXPECT_EQ(s->giga->pages * GIB_BLOCKS, before - done * GIB_BLOCKS);
	if (op->run == demote && s->a)
		EXPECT_EQ(s->pool->pages + GIB_BLOCKS * s->giga->pages, before);
	/* otherwise pages that were neither demoted nor made huge again are free, and counted */
	EXPECT(op->run != demote || s->pool->pages + GIB_BLOCKS * s->giga->pages <= before);
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
	s->a = op->real ? arena_borrow(op->real, .phantom = op->phantom) : NULL;
	if (op->real && !s->a)
		return false;
	s->mm = s->a ? &s->a->mm : &mm_kernel;
	s->pool = s->a ? &s->a->pool : &pool_2m;
	s->giga = s->a ? &s->a->giga : &pool_1g;
	s->expected = op->all;
	if (!op->prepare(s))
		test_fail(__FILE__, __LINE__, "%s: cannot be prepared", op->name);
	else
		*met = run_with_fault(s, op);
	if (s->a)
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
	if (test_skipped())
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
					     .least = (mode->make == hvo_form) ? 1
						      : mode->mapped           ? 5
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
					     .least = (mode->make == hvo_form) ? 0
						      : mode->mapped ? (u32)pages_for(mode)
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

/* ---- 1 GiB pages of mapped sections ---- */

#define ALL_MAPPED_MAX GIB(6) /* of RAM: for each failure, struct pages are made for all of it */

/* Modes that open sections on demand would take unopened memory first, so open all of it. */
static bool open_machine(struct sweep *s)
{
	for (unsigned z = 0; z < s->mm->zones && !s->mode->mapped; z++)
		while (section_open_next(&s->mm->zone[z], SECTION_MAPPED) == 0)
			;
	return true;
}

static bool open_machine_and_grow(struct sweep *s)
{
	return open_machine(s) && grow_giga(s);
}

/* The pages must have been of mapped sections. */
static void close_machine(struct sweep *s)
{
	const u64 giga = s->giga->pages, small = s->pool->pages;

	for (node_t n = 0; n < s->mm->nodes; n++)
		block_list_foreach(s->mm, index, &s->giga->node[n].free)
			EXPECT(block_look_at(s->mm, index).flags & BLOCK_MAPPED);
	EXPECT_EQ(pool_shrink(s->giga, s->mode, giga), giga);
	EXPECT_EQ(pool_shrink(s->pool, s->mode, small), small);
	sections_close_all(s->mm);
}

/* Is the sweep too long for this machine? */
static bool too_long(const struct hvo_mode *mode, const struct operation *op)
{
	const u64 ram = memblock_list_bytes(&memblock_memory, 0, ~0ULL, OWNER_ANY);
	const bool opens = !mode->mapped && ram > ALL_MAPPED_MAX,
		   rounds = op->run == demote && mode->page_rounds &&
			    cpumask_weight(&cpus_online) > 64;

	if (opens)
		print("  # mode %s opens all memory, of which there is too much\n", mode->name);
	if (rounds)
		print("  # mode %s has 512 rounds, for too many CPUs\n", mode->name);
	return opens || rounds;
}

static void sweep_machine(struct operation op)
{
	const u32 least = op.least;

	if (!pool_giga_possible())
		return;
	for (const struct hvo_mode *mode = hvo_modes; mode->name && !test_failed(); mode++) {
		/* what never went away is not reserved, but growing may open a section */
		op.least = (mode->make != hvo_form) ? least : op.run == make_giga;
		if (!too_long(mode, &op))
			sweep(mode, &op);
	}
}

/*
 * Growing opens sections if they are not open yet, then splits leaves; the batched modes reserve a
 * head as well. Shrinking reserves all 4095 frames of struct pages at once.
 */
TEST(mm_fault_giga, growing_and_shrinking_mapped_in_every_mode)
{
	sweep_machine(
		(struct operation){"grow 1G", 0, 0, 1, open_machine, make_giga, close_machine, 9});
	sweep_machine((struct operation){"shrink 1G", 0, 0, 1, open_machine_and_grow, shrink_giga,
					 close_machine, 1});
}

TEST(mm_fault_giga, demoting_mapped_in_every_mode)
{
	sweep_machine((struct operation){"demote 1G", 0, 0, 1, open_machine_and_grow, demote,
					 close_machine, 1});
}
