/*
 * The arch interface as the rest of the kernel relies on it: peeking, time, names, and no memory
 * that is both writable and executable. The same cases hold for the hosted arch.
 */
#include <arch/clock.h>
#include <arch/console.h>
#include <arch/cpu.h>
#include <arch/memory.h>
#include <arch/peek.h>
#include <arch/pgtable.h>

#include "kernel/lib/string.h"
#include "kernel/run/test.h"
#include "mm/map/pgtable.h"

TEST(arch_peek, reads_what_is_mapped)
{
	u64 word = 0x1122334455667788, value = 0;

	EXPECT(peek_u64(&word, &value));
	EXPECT_EQ(value, word);
}

TEST(arch_peek, refuses_what_is_not)
{
	u64 value;

	/* The first page is never mapped. */
	EXPECT(!peek_u64((void *)8, &value));
	EXPECT(!peek_u64((void *)(virt_t)0x1122334455667788, &value)); /* not a valid address */
}

TEST(arch_clock, goes_forward_and_delays_last)
{
	const u64 start = clock_ns();
	u64 last = start;

	EXPECT(start > 0);
	for (int i = 0; i < 1000; i++) {
		const u64 now = clock_ns();

		EXPECT(now >= last);
		last = now;
	}
	last = clock_ns();
	clock_delay_ns(2 * NS_PER_MS);
	/* The TSC's rate is rounded twice. */
	EXPECT(clock_ns() - last >= 2 * NS_PER_MS - NS_PER_MS / 10);
}

TEST(arch_symbols, names_functions)
{
	u64 offset = 1;
	const char *name = symbol_lookup((virt_t)tests_run, &offset);

	REQUIRE(name != NULL);
	EXPECT(strcmp(name, "tests_run") == 0);
	EXPECT_EQ(offset, 0);
	EXPECT(symbol_lookup(8, &offset) == NULL);
}

TEST(arch_symbols, backtrace_finds_its_callers)
{
	virt_t ret[8];
	u64 offset;

	REQUIRE(backtrace_capture(ret, ARRAY_LEN(ret)) >= 3);
	EXPECT(backtrace_capture(ret, 1) == 1);
	EXPECT(symbol_lookup(ret[0], &offset) != NULL);
}

/* ---- the rights in the kernel's page tables ---- */

struct rights {
	u64 leaves, write_execute, dirty_read_only, writable_constants;
	phys_t constant[2]; /* the addresses of a function and a constant of the image */
};

static bool covers(phys_t start, enum pt_level level, phys_t addr)
{
	return addr && addr - start < pt_level_size(level);
}

static void check_leaf(struct rights *r, pte_t pte, enum pt_level level)
{
	const phys_t start = pte_pfn(pte) << PAGE_SHIFT;

	r->leaves++;
	r->write_execute += pte_writable(pte) && !(pte & PTE_NX);
	r->dirty_read_only += !pte_writable(pte) && pte_dirty(pte);
	for (size_t i = 0; i < ARRAY_LEN(r->constant); i++)
		r->writable_constants += pte_writable(pte) && covers(start, level, r->constant[i]);
}

static void check_table(struct rights *r, pfn_t table, enum pt_level level)
{
	const pte_t *entry = phys_to_virt(table << PAGE_SHIFT);

	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		const pte_t pte = pte_load(&entry[i]);

		if (level != PT_PGD && pte_is_leaf(pte, level))
			check_leaf(r, pte, level);
		else if (level != PT_PAGE && pte_present(pte))
			check_table(r, pte_pfn(pte), (enum pt_level)(level - 1));
	}
}

/*
 * Physical address of an object in the image, or 0 if the image is not in our page tables (hosted).
 */
static phys_t image_phys(const void *addr)
{
	phys_t phys;
	pte_t entry;
	enum pt_level level;

	return pgtable_translate(pgtable_root(), (virt_t)addr, &phys, &entry, &level) ? phys : 0;
}

TEST(arch_pgtable, nothing_is_writable_and_executable)
{
	static const u64 constant = 1;
	struct rights r = {
		.constant = {image_phys((void *)(virt_t)tests_run), image_phys(&constant)}};

	check_table(&r, pgtable_root(), PT_PGD);
	EXPECT(r.leaves > 0);
	EXPECT_EQ(r.write_execute, 0);
	EXPECT_EQ(r.dirty_read_only, 0);
	/* under no address, including those of the direct map */
	EXPECT_EQ(r.writable_constants, 0);
}
