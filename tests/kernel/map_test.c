/*
 * Mappings for programs: they show the same memory through leaves of either size, and nothing after
 * unmapping. A misuse of mappings is refused by name and changes nothing.
 */
#include <arch/peek.h>

#include "mm/map/vmap.h"
#include "mm/mapping/map.h"
#include "tests/kernel/huge_check.h"
#include "tests/kernel/mm_test.h"

/* ---- misuse ---- */

/* From now on a misuse is only refused, and the machine goes on. */
static u64 refused;

static void refusals_begin(void)
{
	refused = page_misuses();
	test_option("debug.bad_free", "keep");
}

/* Expect one more refusal than at the last look, with a message that matches `what` (a glob). */
static void expect_refused(const char *what)
{
	said_end();
	refused++;
	EXPECT_EQ(page_misuses(), refused);
	if (!said_says(what))
		test_fail(__FILE__, __LINE__, "not said: %s; but: %s", what, said_text);
}

/* Expect a refusal that names the frame and the mapping. */
static void expect_not_freed(struct page *page, const void *mapping, u32 references)
{
	char what[128];

	format(what, sizeof(what), "free of frame %llx, which page_map() has mapped at %llx",
	       page_pfn(page), (virt_t)mapping);
	expect_refused(what);
	EXPECT_EQ(page->refcount, references);
}

/* Free the page by either call while it is mapped, and then in the order that mm.h asks for. */
static void free_mapped(unsigned order, bool movable)
{
	struct page *page = page_alloc(order, USE_MOVABLE, 0, NODE_NONE);
	void *mapping = page ? page_map(page, PAGE_SIZE) : NULL;

	if (!mapping) {
		if (page)
			page_free(page);
		return; /* no memory, so nothing to check */
	}
	if (movable)
		page_set_movable(page, &mover_refuses);
	said_begin();
	page_free(page);
	expect_not_freed(page, mapping, 2);
	if (test_failed())
		return; /* the page may belong to another user now */
	said_begin();
	page_free_bulk(&page, 1);
	expect_not_freed(page, mapping, 2);
	page_unmap(mapping);
	page_free(page);
	EXPECT_EQ(page_misuses(), refused);
	EXPECT_EQ(page->refcount, 0);
}

TEST(mm_map, a_mapped_page_is_not_freed)
{
	refusals_begin();
	for (unsigned order = 0; order <= BLOCK_ORDER && !test_failed(); order += 3) {
		free_mapped(order, false);
		free_mapped(order, true);
	}
}

/*
 * A mapping has a reference. When the holder drops its own, the page lives on until it is unmapped,
 * and is freed then.
 */
TEST(mm_map, a_mapping_keeps_its_page)
{
	struct page *freed = page_alloc(3, USE_UNMOVABLE, 0, NODE_NONE), *page;
	u64 *mapping;

	refusals_begin();
	REQUIRE(freed);
	page_free(freed);
	page = page_alloc(3, USE_UNMOVABLE, 0, NODE_NONE);
	mapping = page ? page_map(page, PAGE_SIZE) : NULL;
	REQUIRE(mapping);
	mapping[PAGE_SIZE / 8] = 77;
	page_put(page);
	EXPECT_EQ(page->refcount, 1);
	EXPECT_EQ(mapping[PAGE_SIZE / 8], 77);
	said_begin();
	page_put(page); /* one time too many */
	expect_not_freed(page, mapping, 1);
	/* an earlier page in the same frame was freed; that must not be told of this one */
	EXPECT(page != freed || page->owner == 0 || said_says("freed by an unknown owner"));
	page_unmap(mapping);
	EXPECT_EQ(page->refcount, 0);
	EXPECT_EQ(page_misuses(), refused);
}

/*
 * A page of a pool that its holder gave back while it was mapped returns to the pool, once, when it
 * is unmapped.
 */
TEST(mm_map, a_mapping_keeps_a_page_of_a_pool)
{
	struct page *page;
	void *mapping;

	refusals_begin();
	if (!pool_borrow(&pool_2m, 1))
		return;
	page = pool_page_take(&pool_2m, NODE_NONE, POOL_ANY);
	mapping = page ? page_map(page, MIB(2)) : NULL;
	REQUIRE(mapping);
	pool_page_give(&pool_2m, page);
	EXPECT_EQ(pool_2m.in_use, 1);
	said_begin();
	pool_page_give(&pool_2m, page);
	expect_refused("given back to the pool of order 9, but it is given back already, and still "
		       "mapped");
	EXPECT_EQ(pool_2m.in_use, 1);
	page_unmap(mapping);
	EXPECT_EQ(pool_2m.in_use, 0);
	pool_return(&pool_2m, 1);
}

/* The holder could move its page, but not while the page is also mapped at another address. */
TEST(mm_map, a_mapped_page_is_not_moved)
{
	struct page *page = page_alloc(0, USE_MOVABLE, 0, NODE_NONE);
	void *mapping;

	REQUIRE(page);
	page_set_movable(page, &mover_refuses);
	mapping = page_map(page, PAGE_SIZE);
	REQUIRE(mapping);
	EXPECT(!page_get_movable(page));
	page_unmap(mapping);
	EXPECT(page_get_movable(page));
	page_put(page);
	page_free(page);
}

TEST(mm_map, a_page_has_so_many_mappings)
{
	enum { MAPPINGS = PAGE_MAPPINGS / PAGE_MAPPING };
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	void *mapping[MAPPINGS];

	refusals_begin();
	REQUIRE(page);
	for (unsigned i = 0; i < MAPPINGS; i++)
		REQUIRE((mapping[i] = page_map(page, PAGE_SIZE)));
	EXPECT(!page_map(page, PAGE_SIZE));
	EXPECT_EQ(page->refcount, 1 + MAPPINGS);
	for (unsigned i = 0; i < MAPPINGS; i++) {
		/* it has a GiB to itself, with all its tables */
		EXPECT(IS_ALIGNED((virt_t)mapping[i], GIB(1)));
		said_begin();
		page_free(page);
		expect_refused("free of frame *, which page_map() has mapped at *");
		page_unmap(mapping[i]);
	}
	EXPECT_EQ(page_misuses(), refused);
	page_free(page);
	EXPECT_EQ(page->refcount, 0);
}

static void expect_not_unmapped(void *address)
{
	said_begin();
	page_unmap(address);
	expect_refused("page_unmap() of *, where no page is mapped");
}

TEST(mm_map, what_is_not_mapped_is_not_unmapped)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	char *mapping = page ? page_map(page, PAGE_SIZE) : NULL;
	refusals_begin();
	REQUIRE(mapping);
	page_unmap(mapping);
	expect_not_unmapped(mapping); /* a second time */
	if (!test_failed()) {         /* otherwise it would unmap some other page */
		mapping = page_map(page, PAGE_SIZE);
		REQUIRE(mapping);
		expect_not_unmapped(mapping + PAGE_SIZE);
		expect_not_unmapped(mapping + GIB(1));
		expect_not_unmapped(page_address(page));
		expect_not_unmapped(page);
		expect_not_unmapped(NULL);
		mapping[5] = 1;
		EXPECT_EQ(page->refcount, 2);
		page_unmap(mapping);
		EXPECT_EQ(page_misuses(), refused);
	}
	page_free(page);
}

TEST(mm_map, what_is_no_page_in_use_is_not_mapped)
{
	struct page *page = page_alloc(1, USE_UNMOVABLE, 0, NODE_NONE);

	refusals_begin();
	REQUIRE(page);
	EXPECT(!page_map(page, MIB(2)));
	EXPECT(!page_map(page, 0));
	EXPECT(!page_map(page, 3 * PAGE_SIZE));
	said_begin();
	EXPECT(!page_map(page + 1, PAGE_SIZE));
	expect_refused("mapping of frame *, which heads no page in use");
	page_free(page);
	said_begin();
	EXPECT(!page_map(page, PAGE_SIZE));
	expect_refused("mapping of frame *, which heads no page in use");
	said_begin();
	EXPECT(!page_map((struct page *)(virt_t)&page, PAGE_SIZE));
	expect_refused("mapping of *, which is no struct page");
}

/* ---- registers ---- */

static void expect_no_registers(phys_t phys, u64 size)
{
	said_begin();
	EXPECT(!mmio_map(phys, size));
	said_end();
	if (!said_says("mmio_map() of * is refused: frame * is RAM"))
		test_fail(__FILE__, __LINE__, "mmio_map() of %llx is not refused: %s", phys,
			  said_text);
}

/*
 * RAM has no registers, whether it is in use or free, in whole or by a byte. Frame 0 belongs to the
 * firmware.
 */
TEST(mm_map, ram_is_not_mapped_as_registers)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	volatile void __iomem *regs = mmio_map(0, 8);
	phys_t phys;

	REQUIRE(page && regs);
	mmio_unmap(regs, 8);
	phys = page_pfn(page) << PAGE_SHIFT;
	expect_no_registers(phys, PAGE_SIZE);
	expect_no_registers(phys + 12, 1);
	expect_no_registers(phys - 1, 2);
	page_free(page);
	expect_no_registers(phys, PAGE_SIZE);
	expect_no_registers(0, GIB(1));
}

static void expect_registers_kept(volatile void __iomem *address, u64 size)
{
	said_begin();
	mmio_unmap(address, size);
	expect_refused("mmio_unmap() of * bytes at *, which is no mapping of mmio_map()");
}

/*
 * Addresses of registers are used once. A call that needs more than are left is refused, says so,
 * and leaves them to a smaller one. A call that finds no page for a table is refused as well.
 */
TEST(mm_map, registers_are_refused_when_their_addresses_are_used_up)
{
	const virt_t next = vmap_devices_next;
	volatile void __iomem *last;

	vmap_devices_next = VMAP_PAGES_BASE - GIB(1);
	fail_arm(&mm_kernel.fail, FAIL_PTE, 1, FAIL_ONCE);
	EXPECT(!mmio_map(0, 8));
	EXPECT(fail_disarm(&mm_kernel.fail));
	EXPECT_EQ(last_reason(), REASON_NO_MEMORY);
	vmap_devices_next = VMAP_PAGES_BASE - 2 * PAGE_SIZE;
	for (unsigned i = 0; i < 100; i++) {
		EXPECT(!vmap_phys(0, GIB(1), PT_UNCACHED));
		EXPECT(!vmap_phys(0, 2 * PAGE_SIZE, PT_UNCACHED));
	}
	EXPECT_EQ(last_reason(), REASON_NO_ADDRESSES);
	last = mmio_map(0, 8);
	EXPECT_EQ((virt_t)(void __force *)last, VMAP_PAGES_BASE - 2 * PAGE_SIZE);
	EXPECT(!mmio_map(0, 8));
	EXPECT_EQ(last_reason(), REASON_NO_ADDRESSES);
	if (last)
		mmio_unmap(last, 8);
	shootdown_full(SHOOTDOWN_ALL_CPUS); /* the case may run again, with the same address */
	vmap_devices_next = next;
}

/*
 * Three pages of registers are unmapped as a whole, and once. As no device exists on every machine,
 * vmap_phys() maps a page in place of registers.
 */
TEST(mm_map, registers_are_unmapped_whole_and_once)
{
	struct page *page = page_alloc(2, USE_UNMOVABLE, 0, NODE_NONE);
	volatile char __iomem *regs;
	u64 value;

	refusals_begin();
	REQUIRE(page);
	regs = (volatile char __iomem *)vmap_phys(page_pfn(page) << PAGE_SHIFT, 3 * PAGE_SIZE,
						  PT_UNCACHED);
	REQUIRE(regs);
	expect_registers_kept(regs, 2 * PAGE_SIZE);
	expect_registers_kept(regs, 4 * PAGE_SIZE);
	expect_registers_kept(regs, 0);
	expect_registers_kept(regs + PAGE_SIZE, 2 * PAGE_SIZE);
	expect_registers_kept((volatile char __iomem *)page_address(page), PAGE_SIZE);
	for (unsigned i = 0; i < 3; i++)
		EXPECT(peek_u64((u64 __force *)(regs + i * PAGE_SIZE), &value));
	mmio_unmap(regs, 3 * PAGE_SIZE);
	EXPECT_EQ(page_misuses(), refused);
	expect_registers_kept(regs, 3 * PAGE_SIZE);
	page_free(page);
}

/* ---- addresses ---- */

/*
 * Addresses of page_map(): they are used again, however often, by one CPU or by many, and only
 * after every CPU has dropped the old translation.
 */

enum { TURNS = 200 };

/* From now on the lowest addresses are used, if they are free. */
static void begin_again(void)
{
	spin_lock(&map_space.lock);
	map_space.next = map_space.range.start;
	spin_unlock(&map_space.lock);
}

/*
 * Begin shortly before the end of the addresses, so that they are used again soon. A mapping that
 * lasts has the lowest one, and still those that were used last wait for all others.
 */
TEST(mm_map, addresses_are_used_again)
{
	enum { BEFORE_THE_END = 10, AGAIN = 4 * BEFORE_THE_END };
	const virt_t lowest = VMAP_PAGES_BASE + GIB(1);
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	const u64 bytes = map_space.bytes;
	struct huge_usage before, after;
	u64 done, wrong = 0;
	void *last = NULL, *lasts;

	REQUIRE(page);
	begin_again();
	lasts = page_map(page, PAGE_SIZE);
	EXPECT_EQ((virt_t)lasts, VMAP_PAGES_BASE);
	map_space.next = VMAP_PAGES_BASE + VMAP_PAGES_SIZE - BEFORE_THE_END * GIB(1);
	huge_usage(&before);
	for (done = 0; done < AGAIN; done++) {
		u64 *at = page_map(page, PAGE_SIZE);

		if (!at)
			break;
		EXPECT((void *)at > last || (virt_t)at == lowest);
		EXPECT(done != BEFORE_THE_END || (virt_t)at == lowest);
		last = at;
		*at = done;
		wrong += *(u64 *)page_address(page) != done;
		page_unmap(at);
	}
	EXPECT_EQ(done, AGAIN);
	EXPECT_EQ(wrong, 0);
	/* upper tables stay, one for 512 GiB; everything else was freed */
	huge_usage(&after);
	EXPECT(after.tables_kept - before.tables_kept <= 1);
	if (lasts)
		page_unmap(lasts);
	EXPECT_EQ(map_space.bytes, bytes);
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

/*
 * Another CPU has cleared the entry, and its round waits for this CPU, which takes no interrupt.
 * Returns the address that a mapping gets at that moment; NULL if the round has ended meanwhile.
 */
static void *map_before_the_round(struct slow *slow, struct page *page)
{
	const irq_flags_t flags = irq_save();
	enum pt_level level;
	void *at;
	u64 tag;

	CPUS_AWAIT(!huge_leaf(slow->mapping, &level));
	tag = shootdown_tag();
	begin_again();
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

	SKIP_ON_ONE_CPU();
	REQUIRE(page_alloc_bulk(USE_UNMOVABLE, 0, NODE_NONE, pages, 2) == 2);
	for (unsigned turn = 0; turn < 3; turn++) {
		struct slow slow = {.ended = 0};
		void *at;

		begin_again();
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

		begin_again();
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

static void empty_space(void *arg)
{
	struct space *space = arg;
	struct area area;

	for (u64 at = 0; space_take(space, &at, space->range.end, &area) > 0;)
		space_remove_taken(space, &area);
}

/* A space that is empty again frees nodes of its tree, which this CPU may be searching. */
TEST(mm_map, nodes_of_areas_stay_while_a_cpu_searches_them)
{
	static struct space space;
	const cpu_t other = cpus_find_other();
	struct area area = {.rights = USER_RIGHT_READ};
	struct page *memory;

	SKIP_ON_ONE_CPU();
	memory =
		page_alloc(page_order_for(space_boot_bytes()), USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);
	REQUIRE(memory);
	space.range = map_space.range;
	space_init(&space, page_address(memory));
	for (area.start = space.range.start; space.tree.count < 400; area.start += KIB(8)) {
		area.end = area.start + PAGE_SIZE;
		REQUIRE(space_add(&space, &area) == 0);
	}
	space_pin_only(&space, 0, PT_PAGE);
	REQUIRE(work_start(other, empty_space, &space) == 0);
	CPUS_WAIT_FOR(!space_next(&space, 0, &area), other, "a space to be emptied");
	clock_delay_ns(5 * NS_PER_MS);
	EXPECT(!work_done(other));
	space_unpin(&space);
	work_wait(other, 0);
	page_free(memory);
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

/* the order of a page is read plainly beside its count */
#if !defined(__SANITIZE_THREAD__) || defined(HOST_EXPLORE)

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
	struct huge_usage before, after;

	REQUIRE(page);
	begin_again();
	share(page); /* now there is the table for the addresses */
	huge_usage(&before);
	cpus_run_together(share, page);
	EXPECT_EQ(page->refcount, 1);
	EXPECT_EQ(state_mappings(page->state), 0);
	huge_usage(&after);
	EXPECT_EQ(after.tables_kept, before.tables_kept);
	page_free(page);
}

#endif

static struct {
	volatile void __iomem *at[CPUS_TOGETHER];
	u32 roles;
} registers;

static void map_registers(void *unused)
{
	const u32 role = atomic_fetch_add(&registers.roles, 1);

	if (role < CPUS_TOGETHER)
		registers.at[role] = mmio_map(0, 8);
}

/* Where no CPU has mapped anything yet, one of them makes each table for all. */
TEST(mm_map, registers_that_several_cpus_map_have_addresses_of_their_own)
{
	const virt_t next = vmap_devices_next;
	enum pt_level level;
	unsigned mapped = 0;

	vmap_devices_next = VMAP_PAGES_BASE - GIB(1);
	registers.roles = 0;
	cpus_run_together(map_registers, NULL);
	for (u32 i = 0; i < MIN(registers.roles, (u32)CPUS_TOGETHER); i++) {
		void *at = (void __force *)registers.at[i];

		mapped += at && huge_leaf(at, &level);
		mmio_unmap(registers.at[i], 8);
	}
	EXPECT_EQ(mapped, MIN(registers.roles, (u32)CPUS_TOGETHER));
	shootdown_full(SHOOTDOWN_ALL_CPUS); /* the case may run again, with the same addresses */
	vmap_devices_next = next;
}
