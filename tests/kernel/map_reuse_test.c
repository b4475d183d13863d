/*
 * Addresses of page_map(): they are used again, however often, by one CPU or by many, and only
 * after every CPU has dropped the old translation.
 */
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/peek.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/percpu.h"
#include "kernel/core/shootdown.h"
#include "kernel/run/test.h"
#include "mm/map/pgtable.h"
#include "mm/map/vmap.h"
#include "mm/mapping/map.h"
#include "mm/memmap/page.h"
#include "mm/mm.h"
#include "mm/page/page_check.h"
#include "tests/kernel/cpus.h"

enum { TURNS = 200 };

static u64 map_turns;
OPTION_U64(test.map_turns, map_turns, 0, 1ULL << 32,
	   "mappings that mm.map.addresses_are_used_again makes and removes; 0: some hundreds");

/* Begin shortly before the end of the addresses, so that they are used again soon. */
TEST(mm_map, addresses_are_used_again)
{
	enum { BEFORE_THE_END = 10 };
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	const u64 turns = map_turns ? map_turns : 400;
	u64 tables, done, wrong = 0;
	void *first = NULL;

	REQUIRE(page);
	map_slots_next = MAP_SLOTS - BEFORE_THE_END;
	tables = vmap_tables();
	for (done = 0; done < turns; done++) {
		u64 *at = page_map(page, PAGE_SIZE);

		if (!at)
			break;
		if (done == 0)
			first = at;
		EXPECT(done != BEFORE_THE_END || (void *)at < first);
		*at = done;
		wrong += *(u64 *)page_address(page) != done;
		page_unmap(at);
	}
	EXPECT_EQ(done, turns);
	EXPECT_EQ(wrong, 0);
	/* upper tables stay, one for 512 GiB; everything else was freed */
	EXPECT(vmap_tables() - tables <= VMAP_PAGES_SIZE / pt_level_size(PT_PGD) + 1);
	page_free(page);
}

/* ---- the round ---- */

struct slow {
	void *mapping;
	u32 ended;
};

static void unmap_it(void *arg)
{
	struct slow *slow = arg;

	page_unmap(slow->mapping);
	atomic_store_release(&slow->ended, 1);
}

static bool is_mapped(const void *at)
{
	enum pt_level level;
	phys_t phys;
	pte_t entry;

	return pgtable_translate(pgtable_root(), (virt_t)at, &phys, &entry, &level);
}

/*
 * Another CPU has cleared the entry, and its round waits for this CPU, which takes no interrupt.
 * Returns the address that a mapping gets at that moment; NULL if the round has ended meanwhile.
 */
static void *map_before_the_round(struct slow *slow, struct page *page)
{
	const irq_flags_t flags = irq_save();
	void *at;
	u64 tag;

	CPUS_AWAIT(!is_mapped(slow->mapping));
	tag = shootdown_tag();
	map_slots_next = 0;
	at = page_map(page, PAGE_SIZE);
	/* a wait inside of page_map() may have answered the round */
	if (at && (shootdown_done() >= tag || atomic_load_acquire(&slow->ended))) {
		page_unmap(at);
		at = NULL;
	}
	irq_restore(flags);
	return at;
}

TEST(mm_map, addresses_are_not_used_again_before_the_round)
{
	struct page *pages[2];
	const cpu_t other = cpus_find_other();
	unsigned seen = 0;

	if (other == CPU_NONE)
		SKIP("needs two CPUs");
	REQUIRE(page_alloc_bulk(USE_UNMOVABLE, 0, NODE_NONE, pages, 2) == 2);
	for (unsigned turn = 0; turn < 3; turn++) {
		struct slow slow = {.ended = 0};
		void *at;

		map_slots_next = 0;
		slow.mapping = page_map(pages[0], PAGE_SIZE);
		REQUIRE(slow.mapping);
		REQUIRE(work_start(other, unmap_it, &slow) == 0);
		at = map_before_the_round(&slow, pages[1]);
		EXPECT(at != slow.mapping);
		work_wait(other, WORK_ENDLESS);
		if (at) {
			seen++;
			page_unmap(at);
		}
	}
	cpus_note_met(seen, "mappings before the end of the round");
	page_free_bulk(pages, 2);
}

/* ---- many CPUs ---- */

struct race {
	u32 mapped, wrong, none;
};

/* Map a page of this CPU's own at the lowest free address, and look through the mapping. */
static void map_and_look(void *arg)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	struct race *race = arg;

	for (u32 turn = 0; page && turn < TURNS; turn++) {
		u64 *at, *direct = page_address(page);

		map_slots_next = 0;
		at = page_map(page, PAGE_SIZE);
		if (!at) {
			atomic_fetch_add(&race->none, 1);
			continue;
		}
		*direct = (u64)cpu_id() << 32 | turn;
		atomic_fetch_add(&race->mapped, 1);
		if (*at != ((u64)cpu_id() << 32 | turn) || page->refcount != 2)
			atomic_fetch_add(&race->wrong, 1);
		page_unmap(at);
	}
	if (page)
		page_free(page);
}

TEST(mm_map, many_cpus_map_and_unmap_at_once)
{
	struct race race = {0};
	const cpu_t cpus = cpus_run_together(map_and_look, &race);

	EXPECT(race.mapped > 0 && race.mapped <= cpus * TURNS);
	EXPECT_EQ(race.wrong, 0);
	EXPECT_EQ(race.none, 0);
}

struct pair {
	void *mapping;
	u32 arrived;
};

static void unmap_the_same(void *arg)
{
	struct pair *pair = arg;

	atomic_fetch_add(&pair->arrived, 1);
	page_unmap(pair->mapping);
}

/* Of several CPUs that unmap one address, one does. The others are told. */
TEST(mm_map, one_of_two_that_unmap_at_once_is_refused)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	const u64 before = page_misuses();
	u64 extra = 0;

	test_option("debug.bad_free", "keep");
	REQUIRE(page);
	for (u32 turn = 0; turn < 20 && !test_failed(); turn++) {
		struct pair pair = {.mapping = page_map(page, PAGE_SIZE)};

		REQUIRE(pair.mapping);
		extra += cpus_run_together(unmap_the_same, &pair) - 1;
		EXPECT_EQ(page->refcount, 1);
		EXPECT_EQ(page_misuses(), before + extra);
	}
	page_free(page);
}

static void share(void *page)
{
	void *at;

	page_get(page);
	if (page_try_get(page))
		page_put(page);
	at = page_map(page, PAGE_SIZE);
	page_put(page);
	if (at)
		page_unmap(at);
}

TEST(mm_map, a_page_that_several_cpus_share_for_a_while_has_one_reference_afterwards)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	u64 tables;

	REQUIRE(page);
	map_slots_next = 0;
	share(page); /* now there is the table for the slots */
	tables = vmap_tables();
	cpus_run_together(share, page);
	EXPECT_EQ(page->refcount, 1);
	EXPECT_EQ(state_mappings(page->state), 0);
	EXPECT_EQ(vmap_tables(), tables);
	page_free(page);
}

static struct {
	volatile void __iomem *at[CPUS_TOGETHER];
	u32 roles;
} registers;

static void map_registers(void *unused)
{
	const u32 role = atomic_fetch_add(&registers.roles, 1);

	(void)unused;
	if (role < CPUS_TOGETHER)
		registers.at[role] = mmio_map(0, 8);
}

/* Where no CPU has mapped anything yet, one of them makes each table for all. */
TEST(mm_map, registers_that_several_cpus_map_have_addresses_of_their_own)
{
	const virt_t next = vmap_devices_next;
	unsigned mapped = 0;

	vmap_devices_next = VMAP_PAGES_BASE - GIB(1);
	registers.roles = 0;
	cpus_run_together(map_registers, NULL);
	for (u32 i = 0; i < MIN(registers.roles, (u32)CPUS_TOGETHER); i++) {
		void *at = (void __force *)registers.at[i];

		mapped += at && is_mapped(at);
		mmio_unmap(registers.at[i], 8);
	}
	EXPECT_EQ(mapped, MIN(registers.roles, (u32)CPUS_TOGETHER));
	shootdown_full(SHOOTDOWN_ALL_CPUS); /* the case may run again, with the same addresses */
	vmap_devices_next = next;
}
