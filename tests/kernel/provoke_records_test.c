/*
 * Provokers for block records: CPUs that own records change them while other CPUs, which do not own
 * them, read them and decide by them. Phantom memory is enough.
 */

#include "mm/zone/buddy_small.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/provoke.h"

struct records {
	struct arena *a;
	u32 roles, changed, taken;
};

/* ---- sections close and 1 GiB pages are made while other CPUs take blocks ---- */

static void close_and_open(struct records *r, u64 section)
{
	if (section_close(&r->a->mm, section) == 0) {
		section_open(&r->a->mm, section, SECTION_ON_DEMAND);
		atomic_fetch_add(&r->changed, 1);
	}
}

/* Bare blocks become parts of a page, without the zone's lock. */
static void make_and_unmake_giga(struct records *r)
{
	struct zone *zone = arena_phantom_zone(r->a);

	if (pool_grow_on(&r->a->giga, hvo_on(), zone->node, 1) == 1) {
		atomic_fetch_add(&r->changed, 1);
		pool_shrink(&r->a->giga, hvo_on(), 1);
	}
	hvo_bare_free_huge(zone, ~0ULL);
}

static void take_and_give(struct records *r)
{
	struct zone *zone = arena_phantom_zone(r->a);
	const u32 first = arena_phantom_block(r->a);

	for (u32 at = first; at < first + 2 * GIB_BLOCKS; at += SECTION_BLOCKS / 2) {
		const u32 index = block_take_in(zone, at, SECTION_BLOCKS / 2,
						1u << FREE_BARE | 1u << FREE_FULL, BLOCK_FULL);

		if (index == BLOCK_NONE)
			continue;
		atomic_fetch_add(&r->taken, 1);
		block_publish_free(zone, index, BLOCK_ORDER);
	}
}

static void change_or_take(void *arg)
{
	struct records *r = arg;
	const u32 role = atomic_fetch_add(&r->roles, 1);
	const struct provoke p = provoke_begin();
	const u64 section = arena_phantom_block(r->a) / SECTION_BLOCKS;

	for (u32 turn = 0; provoke_goes_on(&p); turn++) {
		if (role == 0) {
			close_and_open(r, section + turn % 2);
			make_and_unmake_giga(r);
		} else {
			take_and_give(r);
		}
	}
}

TEST_ARENA(mm_provoke, blocks_are_taken_while_sections_close_and_pages_are_made,
	   arena_borrow(MIB(16), .phantom = GIB(2)))
{
	struct records r = {.a = a};

	arena_open_all(a);
	cpus_run_together(change_or_take, &r);
	cpus_note_met(r.changed, "changes");
	EXPECT_EQ(a->giga.pages, 0);
}

/* ---- a block in transit changes its state while another CPU looks for a free one ---- */

enum { TURNS = 2, BYTES = MIB(16) };

static void change_one(struct arena *a)
{
	const u32 index = block_take_one(arena_zone(a, 0), FREE_BARE, BLOCK_META);

	if (index == BLOCK_NONE)
		return;
	block_set_state(&a->mm, index, BLOCK_META); /* such a block cannot be free */
	block_set_state(&a->mm, index, BLOCK_BARE);
	block_publish_free(arena_zone(a, 0), index, BLOCK_ORDER);
}

static void take_one(struct arena *a)
{
	const u32 index = block_take_in(arena_zone(a, 0), arena_block(a), BYTES / MIB(2), TAKE_BARE,
					BLOCK_BARE);

	if (index != BLOCK_NONE)
		block_publish_free(arena_zone(a, 0), index, BLOCK_ORDER);
}

static void change_or_look(void *arena)
{
	for (unsigned turn = 0; turn < TURNS; turn++) {
		if (this_cpu()->id % 2)
			change_one(arena);
		else
			take_one(arena);
	}
}

TEST_ARENA(mm_provoke, a_block_in_transit_changes_while_another_cpu_looks_for_a_free_one,
	   arena_borrow(BYTES))
{
	arena_open_all(a);
	cpus_run_together(change_or_look, a);
	EXPECT(arena_accounted(a));
}

/* ---- pages of one block that lies in two zones ---- */

struct straddling {
	struct arena *a;
	u32 roles;
	pfn_t border;
};

static void take_and_free_frames(void *arg)
{
	struct straddling *s = arg;
	const u32 role = atomic_fetch_add(&s->roles, 1);
	struct zone *zone = arena_zone(s->a, role % 2);
	const pfn_t pfn = role % 2 ? s->border + role / 2 : s->border - 1 - role / 2;
	const struct provoke p = provoke_begin();

	while (provoke_goes_on(&p)) {
		struct page *page = pfn_page(&s->a->mm, pfn);
		bool taken;

		zone_lock(zone);
		taken = buddy_take_frame(zone, page);
		zone_unlock(zone);
		if (!taken)
			continue;
		zone_lock(zone);
		buddy_free_pages(zone, page, 0);
		zone_unlock(zone);
	}
}

TEST_ARENA(mm_provoke, frames_of_a_block_of_two_zones_come_and_go,
	   arena_borrow(MIB(16), .nodes = 2, .skew = MIB(1)))
{
	struct straddling s = {.a = a, .border = (a->start + MIB(9)) >> PAGE_SHIFT};
	struct block_word word;

	arena_open_all(a);
	EXPECT(arena_accounted(a));
	cpus_run_together(take_and_free_frames, &s);
	word = block_look_at(&a->mm, (u32)(s.border >> BLOCK_ORDER));
	EXPECT_EQ(word.state, BLOCK_RESERVED);
	EXPECT_EQ(word.free_pages, BLOCK_FRAMES);
}

/* ---- ranges are isolated while their section closes and opens ---- */

enum { SECTIONS = 2, ISOLATED = SECTION_BLOCKS / 2 };

struct isolators {
	struct arena *a;
	u32 roles, closed, isolated, lost;
};

/*
 * CPUs with odd roles isolate a range that reaches over the border of two sections, and the other
 * CPUs a range beside it.
 */
static void isolate_one_range(struct isolators *s, u32 role)
{
	struct zone *zone = arena_phantom_zone(s->a);
	const u32 first =
		arena_phantom_block(s->a) + (role % 2 ? SECTION_BLOCKS - ISOLATED / 2 : 0);
	struct isolation token;

	if (isolate_range(zone, first, ISOLATED, &token) < 0)
		return;
	atomic_fetch_add(&s->isolated, 1);
	for (unsigned pause = 0; pause < 100; pause++) {
		for (u32 i = first; i < first + ISOLATED; i++)
			if (!block_word_is_isolated(block_look(block_at(&s->a->mm, i))))
				atomic_fetch_add(&s->lost, 1);
		cpu_relax();
	}
	isolate_undo(zone, &token);
}

static void close_or_isolate(void *arg)
{
	struct isolators *s = arg;
	const u32 role = atomic_fetch_add(&s->roles, 1);
	const u64 first = arena_phantom_block(s->a) / SECTION_BLOCKS;
	const struct provoke p = provoke_begin();

	for (u32 turn = 0; provoke_goes_on(&p); turn++) {
		for (u64 section = first; role == 0 && section < first + SECTIONS; section++) {
			atomic_fetch_add(&s->closed, section_close(&s->a->mm, section) == 0);
			section_open(&s->a->mm, section, SECTION_ON_DEMAND);
		}
		if (role > 0)
			isolate_one_range(s, role);
	}
}

TEST_ARENA(mm_provoke, ranges_are_isolated_while_their_section_closes, borrow_gigabyte())
{
	struct isolators s = {.a = a};

	cpus_run_together(close_or_isolate, &s);
	cpus_note_met(s.closed, "sections closed");
	EXPECT_EQ(s.lost, 0);
	EXPECT_EQ(listed(arena_phantom_zone(a), MIGRATE_ISOLATE), 0);
	EXPECT(one_free_gigabyte(arena_phantom_zone(a)));
}
