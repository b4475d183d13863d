/*
 * The driver of a virtio balloon, over an arena and a device in software (virtio_device.h): a good
 * device gets what it asks for, and a bad one is named, given up, and gets no frame that somebody
 * else has.
 */
#include "kernel/virtio/balloon.h"

#include "tests/kernel/fixture.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/virtio_device.h"

enum { ROUNDS_MOST = 1000, ASKED = 5, FEW_MESSAGES = 3 };

static struct soft_balloon soft;
static struct balloon balloon;
static struct arena *a;

/* A good device, not begun. */
static void plug_in(void)
{
	soft_balloon_init(&soft);
	balloon = (struct balloon){.mm = &a->mm, .dev = &soft.dev};
}

/* An arena and a good device, not begun. False if the case was skipped. */
static bool borrow_arena(void)
{
	pool_makes_on_demand();
	a = arena_borrow(MIB(32), .phantom = GIB(1));
	if (!a)
		return false;
	arena_open_all(a);
	plug_in();
	return true;
}

/* An arena with a good balloon. */
static bool borrow(void)
{
	return borrow_arena() && balloon_begin(&balloon) == 0;
}

/* The device ends well, whatever it was like. Everything is free again afterwards. */
static void give_back(void)
{
	if (!a)
		return;
	soft.stubborn = soft.wild = false;
	EXPECT(balloon_end(&balloon));
	EXPECT_EQ(balloon.held_count, 0);
	arena_return(a);
	a = NULL;
}

FIXTURE(virtio_balloon, borrow, give_back);

/* Rounds, until one finds nothing more to do and all memory was looked through. */
static void rounds(void)
{
	balloon.out.looked = 0;
	for (unsigned i = 0; i < ROUNDS_MOST && balloon_round(&balloon); i++)
		;
}

TEST(virtio_balloon, the_host_is_shown_all_free_memory_once)
{

	rounds();
	EXPECT_EQ(soft.shown_frames, arena_showable(a));
	EXPECT_EQ(balloon.reported_frames, soft.shown_frames);
	EXPECT(balloon.messages <= FEW_MESSAGES);
	EXPECT_EQ(arena_usage(a).transit, 0);
	EXPECT_EQ(soft.faults, 0);
	for (u32 i = 0; i < soft.shown_count; i++)
		for (u32 j = 0; j < i; j++)
			EXPECT(soft.shown[i].start + soft.shown[i].bytes <= soft.shown[j].start ||
			       soft.shown[j].start + soft.shown[j].bytes <= soft.shown[i].start);
	soft.shown_frames = 0;
	rounds();
	EXPECT_EQ(soft.shown_frames, 0);
}

/* What programs had in pages of 4 KiB, the last of which lie in lists of this CPU. */
TEST(virtio_balloon, memory_that_was_small_pages_is_shown_with_what_described_it)
{
	enum { PAGES = 8 * BLOCK_FRAMES };
	struct page *chain = NULL, *page;
	u64 meta, gathers;

	rounds();
	meta = arena_usage(a).meta;
	for (unsigned i = 0; i < PAGES; i++) {
		page = mm_page_alloc(&a->mm, 0, USE_MOVABLE, 0, NODE_NONE);
		REQUIRE(page);
		page_chain_push(&chain, page);
	}
	EXPECT(arena_usage(a).meta > meta);
	while (chain)
		mm_page_free(&a->mm, page_chain_pop(&chain));
	soft.shown_frames = 0;
	balloon.gather_ns = 0; /* it is time */
	rounds();
	EXPECT(soft.shown_frames >= PAGES);
	EXPECT_EQ(arena_usage(a).meta, meta);
	EXPECT_EQ(arena_usage(a).per_cpu, 0);
	gathers = balloon.gathers;
	for (unsigned i = 0; i < ASKED; i++) {
		balloon.gather_ns = 0;
		rounds();
	}
	EXPECT(balloon.gathers <= gathers + 1); /* a machine at rest has rest */
}

TEST(virtio_balloon, it_inflates_and_deflates_as_the_host_asks)
{
	const u64 before = arena_available(a);

	soft.pages = ASKED * BLOCK_FRAMES;
	rounds();
	EXPECT_EQ(balloon.held_count, ASKED);
	EXPECT_EQ(soft.actual, ASKED * BLOCK_FRAMES);
	EXPECT_EQ(soft.told_in, ASKED * BLOCK_FRAMES);
	EXPECT(arena_available(a) + ASKED * BLOCK_FRAMES <= before);
	EXPECT(arena_accounted(a));
	soft.pages = 2 * BLOCK_FRAMES;
	rounds();
	EXPECT_EQ(balloon.held_count, 2);
	EXPECT_EQ(soft.told_out, (ASKED - 2) * BLOCK_FRAMES);
	EXPECT_EQ(soft.actual, 2 * BLOCK_FRAMES);
	EXPECT_EQ(soft.faults, 0);
}

TEST(virtio_balloon, a_host_that_wants_everything_leaves_a_part)
{
	u64 ram = 0;

	for (unsigned z = 0; z < a->mm.zones; z++)
		ram += a->mm.zone[z].ram;
	soft.pages = ~0U;
	rounds();
	EXPECT(balloon.held_count > 0);
	EXPECT(arena_showable(a) + BLOCK_FRAMES >= ram / 8);
	EXPECT(arena_accounted(a));
	soft.pages = 0;
	rounds();
	EXPECT_EQ(balloon.held_count, 0);
}

/* The kernel waits for a bad device for some periods. Their usual length is for busy machines. */
static void wait_shortly(void)
{
	wait_period_ms = 20;
}

/* The device is given up in the first round that shows something; all it was shown comes back. */
static void expect_given_up(enum soft_manner manner, const char *rule)
{
	u64 offered, agreed;

	soft.manner = manner;
	said_begin();
	rounds();
	said_end();
	EXPECT(soft.dev.given_up);
	EXPECT(said_says(rule));
	EXPECT_EQ(soft.status, 0);
	EXPECT_EQ(arena_usage(a).transit, 0);
	EXPECT_EQ(balloon.reported_frames, 0);
	soft.shown_frames = 0;
	rounds();
	EXPECT_EQ(soft.shown_frames, 0); /* it is not asked again */
	EXPECT_EQ(virtio_begin(&soft.dev, 0, &offered, &agreed), -ENODEV);
	EXPECT_EQ(soft.status, 0);
}

TEST(virtio_balloon, a_device_that_answers_what_nobody_asked_is_given_up)
{
	expect_given_up(SOFT_AHEAD, "*answers requests that were not made*");
}

TEST(virtio_balloon, a_device_that_answers_with_another_buffer_is_given_up)
{
	expect_given_up(SOFT_WRONG_NAME, "*a buffer that it was not given*");
}

TEST(virtio_balloon, a_device_that_does_not_answer_is_given_up)
{
	wait_shortly();
	expect_given_up(SOFT_SILENT, "*does not answer*");
}

TEST(virtio_balloon, a_device_that_does_not_reset_keeps_what_it_was_shown)
{
	const u64 free = arena_showable(a);

	wait_shortly();
	soft.manner = SOFT_WRONG_NAME;
	soft.stubborn = true;
	rounds();
	EXPECT(soft.dev.given_up && !soft.dev.was_reset);
	EXPECT(balloon.kept_frames > 0);
	EXPECT_EQ(arena_usage(a).transit, balloon.kept_frames);
	EXPECT_EQ(arena_showable(a) + balloon.kept_frames, free);
	EXPECT(arena_accounted(a));
}

TEST(virtio_balloon, pages_of_a_device_that_was_given_up_are_free_again)
{

	soft.pages = ASKED * BLOCK_FRAMES;
	rounds();
	soft.pages = 2 * ASKED * BLOCK_FRAMES;
	soft.manner = SOFT_AHEAD;
	rounds();
	EXPECT(soft.dev.given_up);
	rounds();
	EXPECT_EQ(balloon.held_count, 0);
	EXPECT_EQ(arena_usage(a).in_use, 0);
}

/* Several messages are needed. None follows the one after which the device was given up. */
TEST(virtio_balloon, a_device_that_fails_while_pages_leave_is_asked_nothing_more)
{

	soft.pages = 2 * ASKED * BLOCK_FRAMES;
	rounds();
	EXPECT_EQ(balloon.held_count, 2 * ASKED);
	soft.pages = 0;
	soft.manner = SOFT_AHEAD;
	soft.told_out = 0;
	rounds();
	EXPECT(soft.dev.given_up);
	EXPECT(soft.told_out > 0 && soft.told_out <= 2 * BLOCK_FRAMES);
}

/* Tags of the specification: 4 free, 5 total, 6 available. */
TEST(virtio_balloon, the_host_is_told_true_figures_when_it_asks)
{
	u64 ram = 0;

	for (unsigned z = 0; z < a->mm.zones; z++)
		ram += a->mm.zone[z].ram;
	rounds();
	EXPECT_EQ(soft.messages_of_figures, 1); /* the host did not ask for another */
	EXPECT_EQ(soft.figures, 6);
	EXPECT_EQ(soft.figure[5], ram << PAGE_SHIFT);
	soft.pages = ASKED * BLOCK_FRAMES;
	rounds();
	soft_balloon_ask_figures(&soft);
	rounds();
	EXPECT_EQ(soft.messages_of_figures, 2);
	EXPECT_EQ(soft.figure[5], (ram - ASKED * BLOCK_FRAMES) << PAGE_SHIFT);
	EXPECT(soft.figure[4] >= arena_showable(a) << PAGE_SHIFT &&
	       soft.figure[4] < soft.figure[5]);
	EXPECT_EQ(soft.figure[6], soft.figure[4]);
	EXPECT_EQ(soft.faults, 0);
}

/* Neither REPORT_GIBS without free memory nor an earlier pass that found nothing ends it early. */
TEST(virtio_balloon, showing_all_finds_what_lies_behind_many_gibs_without)
{
	EXPECT(balloon_end(&balloon));
	arena_return(a);
	a = arena_borrow(MIB(4), .phantom = GIB(REPORT_GIBS + 2));
	if (!a)
		return;
	plug_in();
	REQUIRE(balloon_begin(&balloon) == 0);
	balloon.out.gib = 1;
	balloon.out.looked = a->mm.gibs;
	balloon_report_all(&balloon);
	EXPECT(soft.shown_frames > 0);
	EXPECT_EQ(soft.shown_frames, arena_showable(a));
}

static struct pool *busy_pool;

/* Memory changes hands while it is shown. A device that is asked for ever ends the case. */
static void change_hands(void)
{
	enum { MESSAGES_MOST = 2000 };
	const struct hvo_mode *on = hvo_mode_find("on");

	pool_shrink(busy_pool, on, pool_grow(busy_pool, on, 1));
	if (balloon.messages > MESSAGES_MOST)
		soft.manner = SOFT_AHEAD;
}

TEST(virtio_balloon, showing_all_ends_while_memory_changes_hands)
{
	const u64 free = arena_showable(a);

	busy_pool = &a->pool;
	soft.meanwhile = change_hands;
	balloon_report_all(&balloon);
	soft.meanwhile = NULL;
	EXPECT(!soft.dev.given_up);
	EXPECT(balloon.reported_frames >= free / 2);
}

/* A host that asks for no reports can still inflate. */
TEST(virtio_balloon, without_the_feature_nothing_is_shown)
{
	struct mm_usage with, without;

	mm_usage(&with);
	EXPECT(balloon_end(&balloon));
	mm_usage(&without);
	EXPECT_EQ(with.in_use - without.in_use, 4 + 2); /* frames of queues and of messages */
	plug_in();
	soft.offers &= ~(1ULL << 5);
	EXPECT_EQ(balloon_begin(&balloon), 0);
	soft.pages = ASKED * BLOCK_FRAMES;
	rounds();
	EXPECT_EQ(balloon.held_count, ASKED);
	EXPECT_EQ(soft.shown_frames, 0);
}

/* ---- any bytes from a device ---- */

static void random_rounds(struct random_source *random, unsigned count)
{
	const struct hvo_mode *on = hvo_mode_find("on");
	int err;

	soft.manner = SOFT_RANDOM;
	soft.random = random;
	soft.wild = random_below(random, 2);
	soft.stubborn = soft.wild && random_below(random, 8) == 0;
	err = balloon_begin(&balloon);
	EXPECT(err <= 0 && (err == 0) == balloon.started);
	for (unsigned i = 0; i < count && !random_is_used_up(random); i++) {
		if (random_below(random, 4) == 0)
			pool_shrink(&a->pool, on, pool_grow(&a->pool, on, random_below(random, 8)));
		balloon_round(&balloon);
		EXPECT_EQ(arena_usage(a).transit, balloon.kept_frames);
	}
	EXPECT(arena_accounted(a));
}

void random_balloon(const u8 *data, size_t len)
{
	struct random_source random = {.data = data, .len = len};

	wait_period_ms = 2; /* the fuzzer's machine has one CPU, which waits for no other */
	if (borrow_arena())
		random_rounds(&random, 1000);
	give_back();
	wait_period_ms = 0;
}

TEST(virtio_balloon, any_bytes_from_the_device_lose_no_frame)
{
	enum { SEEDS = 32, ROUNDS = 30 };

	wait_shortly();
	for (u64 seed = 1; seed <= SEEDS; seed++) {
		struct random_source random = {.state = seed * 0x9e3779b97f4a7c15ULL};

		give_back();
		REQUIRE(borrow_arena());
		random_rounds(&random, ROUNDS);
	}
}
