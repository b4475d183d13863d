/*
 * Batches that are divided among CPUs, in every mode, both growing and shrinking. The result must
 * be the same as with one CPU, to the byte, and must take as many rounds.
 *
 * In the tails of a head's frame, and in a compound page's own tails, the first 16 bytes are
 * defined. In all other struct pages all 64 are.
 */
#include "mm/hvo/hvo_restore.h"
#include "mm/hvo/hvo_share.h"
#include "mm/hvo/hvo_take.h"
#include "tests/kernel/mm_test.h"

enum {
	MAPPED_PAGES = 60,
	BARE_AND_MAPPED = 110,
	STARVED_PAGES = 40,
	RESTORED = 17,
	STRETCHES_EACH = 4
};

/* FNV-1a. */
static u64 digest(u64 hash, const void *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ ((const u8 *)data)[i]) * 0x100000001b3;
	return hash;
}

static u64 digest_block(u64 hash, const struct arena *a, u32 index)
{
	const struct block_word word = block_look_at(&a->mm, index);
	const struct page *pages = block_page(&a->mm, index);
	bool formed;

	hash = digest(hash, &word.state, sizeof(word.state));
	if (word.state != BLOCK_HUGE && word.state != BLOCK_FULL)
		return hash;
	formed = page_kind(pages).flags & PAGE_COMPOUND;
	for (unsigned i = 0; i < BLOCK_FRAMES; i++) {
		const bool part = word.state == BLOCK_FULL ? formed : i < STRUCTS_PER_FRAME;

		hash = digest(hash, &pages[i], i > 0 && part ? MEANT : WHOLE);
	}
	return hash;
}

/*
 * A digest of the order of the pool's pages, of all their struct pages, and of the state of every
 * other block.
 */
static u64 digest_all(struct arena *a)
{
	const u32 first = arena_block(a);
	u64 hash = 0xcbf29ce484222325;

	block_list_foreach(&a->mm, index, &a->pool.node[0].free) {
		const u32 at = index - first;

		hash = digest(hash, &at, sizeof(at));
	}
	for (u32 index = first; index < first + (a->options.bytes >> BLOCK_SHIFT); index++)
		hash = digest_block(hash, a, index);
	return hash;
}

/* The result of growing and shrinking. */
struct outcome {
	bool made;                                        /* there was an arena */
	u64 grown, shrunk;                                /* digests */
	u64 rounds[2], messages[2], stretches[2], splits; /* of growing and of shrinking */
};

static void count(struct arena *a, struct outcome *o, unsigned way, u64 sign)
{
	struct shootdown_stats stats;

	shootdown_stats_read(&stats);
	o->rounds[way] += sign * stats.flushes;
	o->messages[way] += sign * stats.ipis;
	o->stretches[way] += sign * mm_counted(&a->mm, COUNT_STRETCHES);
}

/*
 * hvo=on takes bare blocks first, so there must be more pages than the section with metadata memory
 * has blocks.
 */
static u64 pages_for(const struct hvo_mode *mode)
{
	return mode->mapped ? MAPPED_PAGES : BARE_AND_MAPPED;
}

static struct outcome grow_and_shrink(const struct hvo_mode *mode)
{
	struct arena *a = arena_borrow(MIB(256));
	struct outcome o = {.made = a != NULL};

	if (!a)
		return o;
	if (!mode->mapped) /* so that there is something to restore */
		while (section_open_next(arena_zone(a, 0), SECTION_MAPPED) == 0)
			;
	count(a, &o, 0, -1ULL);
	EXPECT_EQ(pool_grow(&a->pool, mode, pages_for(mode)), pages_for(mode));
	count(a, &o, 0, 1);
	o.splits = mm_counted(&a->mm, COUNT_PMD_SPLITS);
	o.grown = digest_all(a);
	EXPECT(arena_accounted(a));
	count(a, &o, 1, -1ULL);
	EXPECT_EQ(pool_shrink(&a->pool, mode, pages_for(mode)), pages_for(mode));
	count(a, &o, 1, 1);
	o.shrunk = digest_all(a);
	arena_return(a);
	return o;
}

static void expect_rounds(const struct hvo_mode *mode, const struct outcome *o)
{
	u64 grow = 0, shrink = 0;

	if (!mode->mapped)
		return; /* rounds are deferred, and only pages in mapped sections need one */
	if (mode->make != hvo_form) {
		grow = mode->page_rounds ? o->splits + MAPPED_PAGES : 2;
		shrink = mode->page_rounds ? MAPPED_PAGES : 1;
	}
	EXPECT_EQ(o->rounds[0], grow);
	EXPECT_EQ(o->rounds[1], shrink);
}

static void expect_the_same(const struct hvo_mode *mode, const struct outcome *alone,
			    unsigned threads)
{
	const u64 cpus = MIN(threads, cpumask_weight(&cpus_online)),
		  stretches = cpus > 1 ? cpus * STRETCHES_EACH : 0;
	const struct outcome o = grow_and_shrink(mode);

	EXPECT_EQ(o.grown, alone->grown);
	EXPECT_EQ(o.shrunk, alone->shrunk);
	EXPECT_EQ(o.stretches[0], stretches);
	EXPECT_EQ(o.stretches[1] > 0, stretches > 0 && (mode->make != hvo_form));
	if (mode->mapped) {
		EXPECT_EQ(o.messages[0], alone->messages[0]);
		EXPECT_EQ(o.messages[1], alone->messages[1]);
	}
	expect_rounds(mode, &o);
	if (test_failed())
		test_fail(__FILE__, __LINE__, "hvo=%s with %u threads", mode->name, threads);
}

TEST(mm_hvo, every_mode_makes_the_same_with_any_number_of_cpus)
{
	static struct outcome alone[8];
	static const char *const threads[] = {"2", "4"};

	test_option("hvo.threads_pages", "1");
	test_option("hvo.threads", "1");
	for (unsigned m = 0; hvo_modes[m].name && !test_failed(); m++) {
		alone[m] = grow_and_shrink(&hvo_modes[m]);
		if (!alone[m].made)
			return;
		EXPECT_EQ(alone[m].stretches[0] + alone[m].stretches[1], 0);
		expect_rounds(&hvo_modes[m], &alone[m]);
	}
	for (unsigned i = 0; i < ARRAY_LEN(threads); i++) {
		test_option("hvo.threads", threads[i]);
		for (unsigned m = 0; hvo_modes[m].name && !test_failed(); m++)
			expect_the_same(&hvo_modes[m], &alone[m], i == 0 ? 2 : 4);
	}
}

/* ---- frames that run out ---- */

/* A digest of the blocks of `list` in their order, relative to the arena. */
static u64 digest_list(const struct arena *a, const struct block_list *list)
{
	u64 hash = list->count;

	block_list_foreach(&a->mm, index, list) {
		const u32 at = index - arena_block(a);

		hash = digest(hash, &at, sizeof(at));
	}
	return hash;
}

static bool all_are(const struct arena *a, const struct block_list *list, enum block_state state)
{
	block_list_foreach(&a->mm, index, list)
		if (block_look_at(&a->mm, index).state != state)
			return false;
	return true;
}

/*
 * Restore pages in transit, first with frames for some of them and then with enough frames. Returns
 * a digest of the pages restored and their order.
 */
static u64 restore_in_two(const struct hvo_mode *mode)
{
	struct arena *a = arena_borrow(MIB(256));
	struct block_list list = BLOCK_LIST_INIT, done = BLOCK_LIST_INIT, left;
	struct famine famine;
	u64 before, restored, order;

	if (!a)
		return 0;
	EXPECT_EQ(hvo_take_blocks(arena_zone(a, 0), mode, BLOCK_ORDER, STARVED_PAGES, &list),
		  STARVED_PAGES);
	EXPECT_EQ(hvo_optimise(&a->mm, mode, &list, &left), 0);
	famine_begin(&famine, a, META_MEMMAP, RESTORED * (MEMMAP_FRAMES_PER_BLOCK - 1) + 3);
	before = rounds_so_far();
	EXPECT_EQ(hvo_restore(&a->mm, mode, &list, &done, &restored), -ENOMEM);
	EXPECT_EQ(rounds_so_far() - before, mode->page_rounds ? RESTORED : 1);
	EXPECT_EQ(restored, RESTORED);
	EXPECT_EQ(done.count, RESTORED);
	EXPECT_EQ(list.count, STARVED_PAGES - RESTORED);
	EXPECT(all_are(a, &done, BLOCK_FULL) && all_are(a, &list, BLOCK_HUGE));
	order = digest_list(a, &done) ^ digest_list(a, &list) << 1;
	famine_end(&famine);
	EXPECT_EQ(hvo_restore(&a->mm, mode, &list, &done, &restored), 0);
	EXPECT_EQ(restored, STARVED_PAGES - RESTORED);
	EXPECT(all_are(a, &done, BLOCK_FULL));
	order ^= digest_list(a, &done) << 2;
	block_list_publish_free(&a->mm, &done);
	arena_return(a);
	return order;
}

TEST(mm_hvo, frames_run_out_for_several_cpus_as_for_one)
{
	static const char *const names[] = {"batched", "unbatched"};
	u64 alone[ARRAY_LEN(names)];

	test_option("hvo.threads_pages", "1");
	test_option("hvo.threads", "1");
	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (!(alone[i] = restore_in_two(hvo_mode_find(names[i]))))
			return;
	test_option("hvo.threads", "4");
	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		EXPECT_EQ(restore_in_two(hvo_mode_find(names[i])), alone[i]);
}

/* The rounds of 2 MiB pages are ranged, those of 1 GiB pages are full: hvo_to_share(). */
TEST_ARENA(mm_hvo, gigabytes_with_a_round_each_stay_with_one_cpu,
	   arena_borrow(MIB(16), .phantom = GIB(2)))
{
	const unsigned orders[] = {BLOCK_ORDER, GIGA_ORDER};

	for (unsigned i = 0; i < 2; i++) {
		struct hvo_batch batch = {.mm = &a->mm,
					  .list = BLOCK_LIST_INIT,
					  .to_do = 1,
					  .mode = hvo_mode_find("unbatched")};

		EXPECT_EQ(hvo_to_share(&batch), 0); /* an empty batch */
		REQUIRE(hvo_take_blocks(arena_phantom_zone(a), hvo_on(), orders[i], 1,
					&batch.list) == 1);
		EXPECT_EQ(hvo_to_share(&batch), orders[i] == BLOCK_ORDER);
		hvo_make_all(&a->mm, hvo_on(), &batch.list);
		block_list_publish_free(&a->mm, &batch.list);
	}
}
