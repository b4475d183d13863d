/*
 * The arch interface as the rest of the kernel relies on it: peeking, and no memory that is both
 * writable and executable. The same cases hold for the hosted arch.
 */
#include <arch/peek.h>

#include "tests/kernel/test.h"
#include "mm/map/pgtable.h"

TEST(arch_peek, refuses_what_is_not)
{
	u64 value;

	/* The first page is never mapped. */
	EXPECT(!peek_u64((void *)8, &value));
	EXPECT(!peek_u64((void *)(virt_t)0x1122334455667788, &value)); /* not a valid address */
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
