/*
 * Fault injection for 1 GiB pages of mapped sections. It works like hvo_fault_test.c but in the
 * machine's own memory, because no arena is that large. Every reservation, table and section
 * opening of an operation fails once, one at a time, in each mode.
 */
#include "kernel/core/printk.h"
#include "kernel/run/test.h"
#include "mm/debug/account.h"
#include "mm/zone/section.h"
#include "mm/zone/section_close.h"
#include "tests/kernel/pool_check.h"
#include "tests/kernel/row.h"

enum { FAULTS_MAX = 200 };

#define ALL_MAPPED_MAX GIB(6) /* of RAM: for each failure, struct pages are made for all of it */

struct giga_operation {
	const char *name;
	bool grown;                              /* a 1 GiB page exists before */
	u64 (*run)(const struct hvo_mode *mode); /* returns how much was done, at most 1 */
	/* places that fail at least in the modes that optimise, and in the others; 0: none */
	u32 least, plain;
};

static u64 grow(const struct hvo_mode *mode)
{
	return pool_grow(&pool_1g, mode, 1);
}

static u64 shrink(const struct hvo_mode *mode)
{
	return pool_shrink(&pool_1g, mode, 1);
}

static u64 demote(const struct hvo_mode *mode)
{
	return pool_demote(&pool_1g, &pool_2m, mode, 1);
}

/* Undo the operation. */
static void put_back(const struct hvo_mode *mode)
{
	const u64 giga = pool_1g.pages, small = pool_2m.pages;

	EXPECT_EQ(pool_shrink(&pool_1g, mode, giga), giga);
	EXPECT_EQ(pool_shrink(&pool_2m, mode, small), small);
	sections_close_all(&mm_kernel);
}

static void expect_sound(void)
{
	pool_expect_consistent(&pool_1g);
	pool_expect_consistent(&pool_2m);
	EXPECT(account_machine());
}

/* Does the pool's first free page lie in a mapped section? */
static bool has_mapped(const struct pool *pool)
{
	for (node_t n = 0; n < mm_kernel.nodes; n++)
		if (pool->node[n].free.count > 0)
			return block_look_at(&mm_kernel, pool->node[n].free.head).flags &
			       BLOCK_MAPPED;
	return false;
}

/* Modes that open sections on demand would take unopened memory first, so open all of it. */
static void open_all_mapped(void)
{
	for (unsigned z = 0; z < mm_kernel.zones; z++)
		while (section_open_next(&mm_kernel.zone[z], SECTION_MAPPED) == 0)
			;
}

/* Run the operation once with one failure. Returns true if the failure was met. */
static bool run_with_fault(const struct giga_operation *op, const struct hvo_mode *mode, u32 fault)
{
	bool met;
	u64 done, pages;

	if (!mode->mapped)
		open_all_mapped();
	if (op->grown)
		EXPECT_EQ(grow(mode), 1);
	pages = pool_1g.pages * GIB_BLOCKS + pool_2m.pages;
	fail_arm(&mm_kernel.fail, FAIL_ANY, fault, FAIL_ONCE);
	done = op->run(mode);
	met = fail_disarm(&mm_kernel.fail);
	EXPECT(done <= 1);
	if (op->run == grow)
		EXPECT_EQ(pool_1g.pages, done);
	if (op->run == shrink)
		EXPECT_EQ(pool_1g.pages, 1 - done);
	/*
	 * Pages that could not be demoted or made huge are in one of the pools, or free and
	 * counted.
	 */
	if (op->run == demote)
		EXPECT(pool_1g.pages * GIB_BLOCKS + pool_2m.pages <= pages);
	expect_sound();
	if (done == 0)
		EXPECT_EQ(op->run(mode), 1); /* the same operation succeeds now */
	EXPECT(has_mapped(&pool_1g) || op->run != grow);
	expect_sound();
	put_back(mode);
	return met;
}

static void sweep_mode(const struct giga_operation *op, const struct hvo_mode *mode, u32 least)
{
	bool met = true;
	u32 last = 0;

	for (u32 fault = 1; met && fault < FAULTS_MAX && !test_failed();
	     fault = sweep_next(fault)) {
		met = run_with_fault(op, mode, fault);
		last = met || test_failed() ? fault : last;
	}
	sweep_ended(op->name, mode->name, last, least);
	EXPECT(!met || test_failed());
	expect_sound();
}

static void sweep(const struct giga_operation *op)
{
	if (!pool_giga_possible())
		return;
	for (const struct hvo_mode *mode = hvo_modes; mode->name && !test_failed(); mode++) {
		if (!mode->mapped &&
		    memblock_list_bytes(&memblock_memory, 0, ~0ULL, OWNER_ANY) > ALL_MAPPED_MAX)
			print("  # mode %s takes what is not opened first, of which there is too "
			      "much here\n",
			      mode->name);
		else if (op->run == demote && mode->page_rounds &&
			 cpumask_weight(&cpus_online) > 64)
			print("  # mode %s has a round for each of 512 pages, which takes too long "
			      "with so many CPUs\n",
			      mode->name);
		else
			sweep_mode(op, mode, mode->optimise ? op->least : op->plain);
	}
}

/*
 * Growing opens sections if they are not open yet, then splits leaves; the batched modes reserve a
 * head as well. Shrinking reserves all 4095 frames of struct pages at once. Where they never went
 * away nothing is reserved, so nothing can fail.
 */
TEST(mm_fault_giga, growing_and_shrinking_mapped_in_every_mode)
{
	static const struct giga_operation ops[] = {{"grow 1G", false, grow, 9, 1},
						    {"shrink 1G", true, shrink, 1, 0}};

	for (unsigned i = 0; i < ARRAY_LEN(ops); i++)
		sweep(&ops[i]);
}

TEST(mm_fault_giga, demoting_mapped_in_every_mode)
{
	static const struct giga_operation op = {"demote 1G", true, demote, 1, 0};

	sweep(&op);
}
