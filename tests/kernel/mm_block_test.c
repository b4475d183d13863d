/* The block table: which state may become which. */
#include "tests/kernel/mm_test.h"
#include "tests/kernel/provoke.h"

/* The table of the design, repeated pair by pair, so that neither list can drift alone. */
static const struct {
	u8 from, to;
} changes[] = {
	{BLOCK_UNOPENED, BLOCK_ABSENT}, {BLOCK_UNOPENED, BLOCK_RESERVED},
	{BLOCK_UNOPENED, BLOCK_BARE},   {BLOCK_UNOPENED, BLOCK_FULL},
	{BLOCK_UNOPENED, BLOCK_META},   {BLOCK_BARE, BLOCK_HUGE},
	{BLOCK_BARE, BLOCK_NOHEAD},     {BLOCK_BARE, BLOCK_FULL},
	{BLOCK_BARE, BLOCK_META},       {BLOCK_BARE, BLOCK_UNOPENED},
	{BLOCK_HUGE, BLOCK_BARE},       {BLOCK_HUGE, BLOCK_FULL},
	{BLOCK_NOHEAD, BLOCK_BARE},     {BLOCK_FULL, BLOCK_HUGE},
	{BLOCK_FULL, BLOCK_META},       {BLOCK_FULL, BLOCK_UNOPENED},
	{BLOCK_META, BLOCK_BARE},       {BLOCK_META, BLOCK_FULL},
	{BLOCK_META, BLOCK_UNOPENED},   {BLOCK_FULL, BLOCK_NOHEAD},
	{BLOCK_NOHEAD, BLOCK_FULL},
};

static bool in_table(unsigned from, unsigned to)
{
	for (unsigned i = 0; i < ARRAY_LEN(changes); i++)
		if (changes[i].from == from && changes[i].to == to)
			return true;
	return false;
}

TEST(mm_block, only_listed_changes_are_legal)
{
	for (unsigned from = 0; from <= BLOCK_STATES; from++)
		for (unsigned to = 0; to <= BLOCK_STATES; to++)
			if (block_change_legal(from, to) != in_table(from, to))
				test_fail(__FILE__, __LINE__, "%s to %s is %s",
					  block_state_name(from), block_state_name(to),
					  in_table(from, to) ? "refused" : "allowed");
}

/* ---- the word ---- */

/*
 * The word of a block record: what a snapshot shows, and several writers of one record.
 */

TEST(mm_block, a_snapshot_says_whether_the_block_can_be_free)
{
	static const u8 classes[BLOCK_STATES] = {
		[BLOCK_UNOPENED] = FREE_CLASSES, [BLOCK_ABSENT] = FREE_CLASSES,
		[BLOCK_RESERVED] = FREE_CLASSES, [BLOCK_BARE] = FREE_BARE,
		[BLOCK_HUGE] = FREE_HUGE,        [BLOCK_NOHEAD] = FREE_CLASSES,
		[BLOCK_FULL] = FREE_FULL,        [BLOCK_META] = FREE_CLASSES,
	};

	for (unsigned state = 0; state < BLOCK_STATES; state++)
		EXPECT_EQ(block_free_class(BLOCK_WORD(.state = (u8)state)), classes[state]);
	EXPECT_EQ(block_free_class(BLOCK_WORD(.state = BLOCK_FULL, .flags = BLOCK_MAPPED)),
		  FREE_MAPPED);
}

/* Pages of another zone were counted since this zone's look. */
TEST(mm_block, pages_of_a_reserved_block_are_counted_whatever_was_read)
{
	struct block block = {0};
	struct block_word before;

	block_put(&block,
		  BLOCK_WORD(.state = BLOCK_RESERVED, .type = MIGRATE_MOVABLE, .free_pages = 100));
	before = block_look(&block);
	block_count_free(&block, before, 8);
	block_count_free(&block, before, -2);
	block_count_free(&block, before, 1);
	EXPECT_EQ(block_look(&block).free_pages, 107);
	block_count_free(&block, before, -107);
	EXPECT_EQ(block_look(&block).free_pages, 0);
	EXPECT_EQ(block_look(&block).state, BLOCK_RESERVED);
	EXPECT_EQ(block_look(&block).type, MIGRATE_MOVABLE);
}

/* ---- several writers ---- */

enum { MEETINGS = 5 };

struct writers {
	struct block block;
	u32 roles, lost, done;
};

/*
 * On a busy host the other CPUs seldom get a turn, so the loop may go on beyond its time, until it
 * has met them often enough.
 */
static bool goes_on(const struct writers *w, const struct provoke *p, u32 met)
{
	const struct provoke at_most = {.end = p->end + 2 * NS_PER_S};

	return provoke_goes_on(p) || (met < MEETINGS && atomic_load_relaxed(&w->roles) > 1 &&
				      !atomic_load_relaxed(&w->done) && provoke_goes_on(&at_most));
}

/*
 * Each CPU has fields of its own. It finds in them what it wrote last, even if other CPUs have
 * written other fields meanwhile.
 */
static void change_own_fields(void *arg)
{
	static const struct block_word own[] = {
		{.type = BLOCK_ISOLATED},
		{.flags = BLOCK_POOL_FREE},
		{.state = 0xff, .target = 0xff},
		{.order = 0xff, .flags = BLOCK_TRANSIT},
	};
	struct writers *w = arg;
	const struct provoke p = provoke_begin();
	const u32 role = atomic_fetch_add(&w->roles, 1);
	struct block_word mine;
	u64 mask, last = 0, others = 0;
	u32 met = 0;

	if (role >= ARRAY_LEN(own))
		return; /* every field has its writer already */
	mine = own[role];
	mask = block_word_bits(mine);
	for (u32 turn = 0; goes_on(w, &p, met); turn++) {
		const u64 now = block_word_bits(block_look(&w->block));

		if ((now & mask) != last)
			atomic_fetch_add(&w->lost, 1);
		met += (now & ~mask) != others;
		others = now & ~mask;
		last = turn % 2 ? mask : 0;
		if (role != 1)
			block_change(&w->block, mine, block_word_of(last));
		else if (last)
			block_set_flags(&w->block, BLOCK_POOL_FREE);
		else
			block_clear_flags(&w->block, BLOCK_POOL_FREE);
	}
	atomic_store_relaxed(&w->done, 1);
}

TEST(mm_provoke, several_writers_change_one_record)
{
	struct writers w = {0};

	block_put(&w.block, BLOCK_WORD(.zone = 5, .free_pages = 77));
	cpus_run_together(change_own_fields, &w);
	EXPECT_EQ(w.lost, 0);
	EXPECT_EQ(block_look(&w.block).zone, 5);
	EXPECT_EQ(block_look(&w.block).free_pages, 77);
}
