/*
 * Pools requested on the command line: the meaning of the words, the words that are refused, and
 * the pools that are made.
 */
#include "mm/hugetlb/pool_boot.h"

#include "tests/kernel/pool_check.h"

static const struct pool_boot empty;

#define WORD_OF(boot) (&(const struct option){.target = &(boot)})

TEST(mm_pool, boot_counts_belong_to_the_size_before_them)
{
	struct pool_boot boot = empty;
	const struct pool_boot_request *request = &boot.request[POOL_BOOT_2M];

	EXPECT_EQ(pool_boot_parse_count(WORD_OF(boot), "100"), 0);
	EXPECT_EQ(pool_boot_parse_size(WORD_OF(boot), "1G"), 0);
	EXPECT_EQ(pool_boot_parse_count(WORD_OF(boot), "3"), 0);
	EXPECT_EQ(boot.request[POOL_BOOT_2M].total, 100);
	EXPECT_EQ(boot.request[POOL_BOOT_1G].total, 3);
	EXPECT_EQ(pool_boot_parse_size(WORD_OF(boot), "2048K"), 0);
	EXPECT_EQ(pool_boot_parse_count(WORD_OF(boot), "7"), 0); /* the last word counts */
	EXPECT_EQ(boot.request[POOL_BOOT_2M].total, 7);
	EXPECT_EQ(boot.request[POOL_BOOT_1G].total, 3);

	/* counts of nodes */
	EXPECT_EQ(pool_boot_parse_count(WORD_OF(boot), "0:100,1:50"), 0);
	EXPECT_EQ(request->total, 0);
	EXPECT_EQ(request->nodes, 2);
	EXPECT_EQ(request->on[0].node, 0);
	EXPECT_EQ(request->on[0].count, 100);
	EXPECT_EQ(request->on[1].node, 1);
	EXPECT_EQ(request->on[1].count, 50);
	EXPECT_EQ(pool_boot_parse_count(WORD_OF(boot), "3:1,3:2"), 0);
	EXPECT_EQ(request->nodes, 1);
	EXPECT_EQ(request->on[0].count, 2);
}

/* A count after a size that does not exist must not apply to another size. */
TEST(mm_pool, boot_counts_of_unknown_sizes_are_refused)
{
	static const char *const unknown[] = {
		"3M", "4K", "0", "512M", "2G", "16E", "2MB", "", "99999999999999999999"};
	struct pool_boot boot;

	for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
		boot = empty;
		if (pool_boot_parse_size(WORD_OF(boot), unknown[i]) == 0)
			test_fail(__FILE__, __LINE__, "\"%s\" was taken for a size", unknown[i]);
		EXPECT_EQ(pool_boot_parse_count(WORD_OF(boot), "5"), -ERANGE);
		EXPECT_EQ(boot.request[POOL_BOOT_2M].total + boot.request[POOL_BOOT_1G].total, 0);
		EXPECT_EQ(pool_boot_parse_size(WORD_OF(boot), "2M"), 0);
		EXPECT_EQ(pool_boot_parse_count(WORD_OF(boot), "5"), 0);
		EXPECT_EQ(boot.request[POOL_BOOT_2M].total, 5);
	}
}

/* The size of pages is a word of its own. A count may have a suffix. */
TEST(mm_pool, boot_counts_that_name_a_size_are_refused)
{
	static const char *const refused[] = {"1G:1",  "2M:512",    "1G",
					      "2048K", "0:4,2M:64", "2M:64,1G:1"};
	struct pool_boot boot = empty;

	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		EXPECT_EQ(pool_boot_parse_count(WORD_OF(boot), refused[i]), -EINVAL);
	EXPECT_EQ(boot.request[POOL_BOOT_2M].total, 0);
	EXPECT_EQ(pool_boot_parse_count(WORD_OF(boot), "2097152"), 0);
	EXPECT_EQ(pool_boot_parse_count(WORD_OF(boot), "1K"), 0);
	EXPECT_EQ(boot.request[POOL_BOOT_2M].total, KIB(1));
}

/*
 * Absent nodes are skipped, and the other nodes get their pages. Pages that do not fit are not
 * made, and the count says so.
 */
TEST_ARENA(mm_pool, boot_pools_are_made_as_far_as_they_can_be, arena_borrow(MIB(64), .nodes = 2))
{
	struct pool_boot boot = empty;
	u64 made;

	EXPECT_EQ(pool_boot_parse_count(WORD_OF(boot), "0:3,7:50,1:2,18446744073709551615:1"), 0);
	EXPECT_EQ(pool_boot_make(&boot.request[POOL_BOOT_2M], &a->pool, hvo_on()), 5);
	EXPECT_EQ(a->pool.node[0].pages, 3);
	EXPECT_EQ(a->pool.node[1].pages, 2);
	EXPECT_EQ(a->pool.boot, 5);
	EXPECT(account_pool(&a->pool));
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), 5), 5);

	EXPECT_EQ(pool_boot_parse_count(WORD_OF(boot), "18446744073709551615"), 0);
	said_begin();
	made = pool_boot_make(&boot.request[POOL_BOOT_2M], &a->pool, hvo_on());
	said_end();
	EXPECT(said_says("18446744073709551615 were asked for, no more fit"));
	/*
	 * There are 32 blocks. Two are metadata memory from the start, and metadata memory has
	 * grown by some.
	 */
	EXPECT(made >= 24);
	EXPECT(made <= 30);
	EXPECT_EQ(a->pool.pages, made);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), made), made);
}
