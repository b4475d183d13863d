/*
 * Huge mappings that several CPUs work on at once: the recorded rights and promises of a mapping
 * must match its entries and its pool.
 */
#include <arch/peek.h>

#include "mm/vm/mapping.h"
#include "tests/kernel/brim.h"
#include "tests/kernel/huge_check.h"
#include "tests/kernel/mm_test.h"

enum { SMALL_PAGES = 512, ROUNDS = 12, PAGES = 8 };
#define SIZE MIB(2)

/* ---- rights ---- */

static u32 turn;

/* Half of the CPUs protect the mapping, and the other half allow writing. */
static void protect(void *addr)
{
	huge_protect(addr, SMALL_PAGES * PAGE_SIZE,
		     atomic_fetch_add(&turn, 1) & 1 ? HUGE_READ_ONLY : HUGE_READ_WRITE);
}

/*
 * The number of entries that do not have the recorded rights. If an entry is read-only although the
 * mapping is recorded as writable, a write would fault for ever.
 */
static unsigned wrong_entries(char *addr)
{
	struct area area;
	unsigned wrong = 0;

	if (!area_tree_from(&huge_space.tree, (virt_t)addr, &area))
		return SMALL_PAGES;
	for (unsigned i = 0; i < SMALL_PAGES; i++)
		wrong += huge_writable(addr + i * PAGE_SIZE) !=
			 ((area.rights & USER_RIGHT_WRITE) != 0);
	return wrong;
}

TEST(mm_huge_map, of_two_who_protect_at_once_one_is_obeyed_everywhere)
{
	char *addr;

	if (cpus_find_other() == CPU_NONE)
		SKIP("needs two CPUs");
	addr = huge_map(SMALL_PAGES * PAGE_SIZE, PAGE_SIZE, HUGE_POPULATE);
	REQUIRE(addr);
	for (unsigned round = 0; round < ROUNDS; round++) {
		cpus_run_together(protect, addr);
		EXPECT_EQ(wrong_entries(addr), 0);
	}
	huge_unmap(addr);
}

static void protect_or_populate(void *addr)
{
	if (atomic_fetch_add(&turn, 1) == 0)
		huge_protect(addr, PAGE_SIZE, HUGE_READ_ONLY);
	else
		huge_populate(addr, PAGE_SIZE);
}

TEST(mm_huge_map, a_page_that_comes_while_its_mapping_is_protected_is_protected)
{
	char *addr = huge_map(PAGE_SIZE, PAGE_SIZE, HUGE_POPULATE);

	REQUIRE(addr);
	EXPECT_EQ(huge_release(addr, PAGE_SIZE), 0); /* the tables stay */
	turn = 0;
	cpus_run_together(protect_or_populate, addr);
	EXPECT(!huge_writable(addr));
	huge_unmap(addr);
}

/* ---- pins ---- */

enum { LOOKS = 64 };

static struct {
	char *addr;
	cpu_t unmaps, pins;
	u32 changes, pinned; /* changes: protected, unmapped */
} leave;

/* What a CPU has pinned is neither protected nor gone, however late the pin came. */
static void pin_or_unmap(void *unused)
{
	struct space *space = &huge_space;
	struct area area;

	if (cpu_id() == leave.unmaps) {
		huge_protect(leave.addr, PAGE_SIZE, HUGE_READ_ONLY);
		atomic_store_release(&leave.changes, 1);
		huge_unmap(leave.addr);
		atomic_store_release(&leave.changes, 2);
	}
	if (cpu_id() != leave.pins)
		return;
	if (!space_pin(space, (virt_t)leave.addr, PT_PAGE, &area))
		return;
	for (unsigned i = 0; i < LOOKS; i++) {
		EXPECT(atomic_load_acquire(&leave.changes) <=
		       (area.rights & USER_RIGHT_WRITE ? 0 : 1));
		cpu_relax();
	}
	leave.pinned++;
	space_unpin(space);
}

TEST(mm_huge_map, a_mapping_that_is_pinned_is_not_gone)
{
	const cpu_t other = cpus_find_other();

	if (other == CPU_NONE)
		SKIP("needs two CPUs");
	leave.pinned = 0;
	for (unsigned i = 0; i < ROUNDS && !test_failed(); i++) {
		leave.pins = i % 2 ? other : cpu_id();
		leave.unmaps = i % 2 ? cpu_id() : other;
		leave.changes = 0;
		leave.addr = huge_map(PAGE_SIZE, PAGE_SIZE, i % 4 < 2 ? HUGE_POPULATE : 0);
		REQUIRE(leave.addr);
		cpus_run_together(pin_or_unmap, NULL);
	}
	cpus_note_met(leave.pinned, "pinned before it went");
}

static void unmap_it(void *addr)
{
	huge_unmap(addr);
}

/*
 * A mapping in two parts is unmapped without memory, while two other calls have claims, and waits
 * for its second part, which is busy. What is mapped at its first addresses meanwhile stays.
 */
TEST(mm_huge_map, a_mapping_that_waits_for_its_end_takes_nothing_of_its_neighbour)
{
	const cpu_t other = cpus_find_other();
	struct area part, next = {.rights = USER_RIGHT_READ, .flags = AREA_NO_RESERVE};
	struct hull claim[2];
	struct space *space;
	char *high;
	virt_t free;
	bool placed;
	u64 at;

	if (other == CPU_NONE)
		SKIP("needs two CPUs");
	high = huge_map(GIB(2), PAGE_SIZE, 0);
	REQUIRE(high);
	space = &huge_space;
	free = (virt_t)high + GIB(8);
	at = (virt_t)high + GIB(1);
	EXPECT_EQ(huge_protect(high, GIB(1), HUGE_READ_ONLY), 0);
	EXPECT_EQ(space_take(space, &at, free, &part), 1);
	for (unsigned i = 0; i < ARRAY_LEN(claim); i++)
		EXPECT_EQ(space_claim(space, free + i * GIB(1), free + (i + 1) * GIB(1),
				      SPACE_MUST_BE_FREE, &claim[i]),
			  0);
	brim_begin(FAIL_ALLOC, 1, FAIL_AGAIN);
	REQUIRE(work_start(other, unmap_it, high) == 0);
	clock_delay_ns(20 * NS_PER_MS);
	brim_end();
	next.start = (virt_t)high;
	next.end = next.start + GIB(1);
	placed = space_add(space, &next) == 0;
	space_put_back(space, &part);
	work_wait(other, 0);
	for (unsigned i = 0; i < ARRAY_LEN(claim); i++)
		space_release(space, &claim[i]);
	EXPECT(!placed || space_look(space, (virt_t)high, &next));
	if (placed)
		EXPECT_EQ(mapping_remove(space, next.start, next.end), 0);
}

/* ---- promises ---- */

static void populate_and_release(void *addr)
{
	huge_populate(addr, SIZE);
	huge_release(addr, SIZE);
}

/* The pool knows of as many promises as the mapping. */
TEST(mm_huge_map, promises_of_a_page_that_several_cpus_populate_and_release_are_counted)
{
	char *addr;

	if (!pool_borrow(&pool_2m, PAGES))
		return;
	addr = huge_map(SIZE, SIZE, HUGE_RESERVE);
	REQUIRE(addr);
	cpus_run_together(populate_and_release, addr);
	EXPECT_EQ(pool_2m.reserved + pool_2m.in_use,
		  huge_map_at((virt_t)addr)->object.bytes / SIZE);
	huge_unmap(addr);
	EXPECT_EQ(pool_2m.in_use, 0);
	EXPECT_EQ(pool_2m.reserved, 0);
	pool_return(&pool_2m, PAGES);
}

static void populate(void *addr)
{
	huge_populate(addr, SIZE);
}

/*
 * A promised page is in parts, and one touch of it finds no frame for the table of its pieces. The
 * promise is back before another touch may want it.
 */
TEST(mm_huge_map, a_promise_that_could_not_be_used_is_there_for_the_next_touch)
{
	char *addr;

	if (!pool_borrow(&pool_2m, 2))
		return;
	addr = huge_map(2 * SIZE, SIZE, HUGE_RESERVE);
	REQUIRE(addr);
	EXPECT_EQ(huge_protect(addr + PAGE_SIZE, PAGE_SIZE, HUGE_READ_ONLY), 0);
	EXPECT_EQ(huge_populate(addr + SIZE, SIZE), 0); /* brings the tables above */
	EXPECT_EQ(pool_2m.reserved, 1);
	fail_arm(&mm_kernel.fail, FAIL_PTE, 1, FAIL_ONCE);
	cpus_run_together(populate, addr);
	EXPECT(fail_disarm(&mm_kernel.fail));
	EXPECT_EQ(pool_2m.reserved + pool_2m.in_use, 2);
	huge_unmap(addr);
	EXPECT_EQ(pool_2m.in_use, 0);
	EXPECT_EQ(pool_2m.reserved, 0);
	pool_return(&pool_2m, 2);
}

/* ---- a page that several areas share ---- */

static cpu_t protects;

static void protect_or_touch(void *addr)
{
	if (cpu_id() == protects)
		EXPECT_EQ(huge_protect(addr, PAGE_SIZE, HUGE_NONE), 0);
	else
		atomic_store_relaxed((u32 *)addr + 8 * PAGE_SIZE / sizeof(u32), 1);
}

/* The page comes by a touch of one area while the rights of another are being changed. */
TEST(mm_huge_map, a_part_protected_while_its_page_comes_is_protected)
{
	char *addr = huge_map(MIB(2), MIB(2), 0);
	u64 value;

	REQUIRE(addr);
	*(volatile char *)(addr + 8 * PAGE_SIZE) = 1;
	EXPECT_EQ(huge_release(addr, MIB(2)), 0); /* the tables stay */
	protects = cpu_id();
	cpus_run_together(protect_or_touch, addr);
	EXPECT(!peek_u64((const u64 *)addr, &value));
	huge_unmap(addr);
}
