/*
 * The direct map in the page tables: it has all RAM and nothing else, is never executable, and uses
 * the largest pages that fit.
 */

#include <arch/boot.h>

#include "mm/map/memblock.h"
#include "mm/map/pgtable.h"
#include "tests/kernel/test.h"

#ifndef ASHLAR_HOSTED /* in the hosted machine the direct map is one host mapping, without tables */

static virt_t mapped_at(phys_t phys)
{
	return DIRECT_MAP_BASE + phys;
}

static phys_t image_start, image_end;

static bool read_only(phys_t phys)
{
	return phys >= image_start && phys < image_end;
}

/* Is all of [start, end) RAM, on any nodes? */
static bool is_ram(phys_t start, phys_t end)
{
	for (size_t i = 0; i < memblock_memory.count && start < end; i++)
		if (memblock_memory.range[i].start <= start && start < memblock_memory.range[i].end)
			start = memblock_memory.range[i].end;
	return start >= end;
}

/* The largest leaf that `phys` could have: it contains RAM of one kind only. */
static enum pt_level largest_fitting(phys_t phys)
{
	for (enum pt_level level = cpu_has_1g_mappings() ? PT_PUD : PT_PMD; level > PT_PAGE;
	     level--) {
		const phys_t start = ALIGN_DOWN(phys, pt_level_size(level)),
			     end = start + pt_level_size(level);

		if (is_ram(start, end) && (end <= image_start || start >= image_end ||
					   (start >= image_start && end <= image_end)))
			return level;
	}
	return PT_PAGE;
}

TEST(mm_directmap, ram_is_mapped_with_the_largest_pages_that_fit)
{
	enum pt_level level;
	phys_t phys;
	pte_t entry;

	arch_image_range(&image_start, &image_end);
	for (size_t i = 0; i < memblock_memory.count; i++) {
		const struct memblock_range *range = &memblock_memory.range[i];

		for (phys_t at = range->start; at < range->end; at += pt_level_size(level)) {
			REQUIRE(pgtable_translate(pgtable_root(), mapped_at(at), &phys, &entry,
						  &level));
			EXPECT_EQ(phys, at);
			EXPECT(entry & PTE_NX);
			EXPECT_EQ(pte_writable(entry), !read_only(at));
			if (level != largest_fitting(at))
				test_fail(__FILE__, __LINE__, "%llx is mapped at level %u", at,
					  level);
			REQUIRE(!test_failed());
		}
	}
}

TEST(mm_directmap, the_image_has_no_writable_alias)
{
	enum pt_level level;
	phys_t phys;
	pte_t entry;

	REQUIRE(arch_image_range(&image_start, &image_end));
	REQUIRE(image_end > image_start);
	for (phys_t at = image_start; at < image_end; at += PAGE_SIZE) {
		REQUIRE(pgtable_translate(pgtable_root(), mapped_at(at), &phys, &entry, &level));
		REQUIRE(!pte_writable(entry));
	}
}

TEST(mm_directmap, holes_are_not_mapped)
{
	enum pt_level level;
	phys_t phys, last = 0;
	pte_t entry;

	for (size_t i = 0; i < memblock_memory.count; i++) {
		const struct memblock_range *range = &memblock_memory.range[i];

		if (range->start > last) {
			EXPECT(!pgtable_translate(pgtable_root(), mapped_at(last), &phys, &entry,
						  &level));
			EXPECT(!pgtable_translate(pgtable_root(),
						  mapped_at(range->start - PAGE_SIZE), &phys,
						  &entry, &level));
		}
		last = range->end;
	}
	EXPECT(last > 0);
	EXPECT(!pgtable_translate(pgtable_root(), mapped_at(last), &phys, &entry, &level));
}

#endif
