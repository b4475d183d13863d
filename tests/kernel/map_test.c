/*
 * Mappings for programs: they show the same memory through leaves of either size, and nothing after
 * unmapping. A misuse of mappings is refused by name and changes nothing.
 */
#include <arch/peek.h>

#include "kernel/core/printk.h"
#include "kernel/core/reason.h"
#include "kernel/core/shootdown.h"
#include "kernel/run/test.h"
#include "mm/hugetlb/pool.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/map/vmap.h"
#include "mm/mapping/map.h"
#include "mm/memmap/page.h"
#include "mm/mm.h"
#include "mm/page/migrate.h"
#include "mm/page/page_check.h"
#include "tests/kernel/pool_check.h"
#include "tests/kernel/said.h"

TEST(mm_map, impossible_leaves_are_refused)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);

	REQUIRE(page);
	EXPECT(!page_map(page, MIB(2)));
	EXPECT(!page_map(page, 0));
	EXPECT(!page_map(page, 3 * PAGE_SIZE));
	page_free(page);
}

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

static int never_moves(struct page *from, struct page *to)
{
	(void)from;
	(void)to;
	return -EBUSY;
}

static const struct page_mover stays = {.name = "a page that stays", .move = never_moves};

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
		page_set_movable(page, &stays);
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
	struct page *page = page_alloc(3, USE_UNMOVABLE, 0, NODE_NONE);
	u64 *mapping = page ? page_map(page, PAGE_SIZE) : NULL;

	refusals_begin();
	REQUIRE(mapping);
	mapping[PAGE_SIZE / 8] = 77;
	page_put(page);
	EXPECT_EQ(page->refcount, 1);
	EXPECT_EQ(mapping[PAGE_SIZE / 8], 77);
	said_begin();
	page_put(page); /* one time too many */
	expect_not_freed(page, mapping, 1);
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
	page_set_movable(page, &stays);
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
 * and leaves them to a smaller one.
 */
TEST(mm_map, registers_are_refused_when_their_addresses_are_used_up)
{
	const virt_t next = vmap_devices_next;
	volatile void __iomem *last;

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
