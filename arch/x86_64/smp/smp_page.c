/*
 * The first page and page tables of an AP: a page to begin in and page tables to run on.
 *
 * The page has code and data (trampoline.h). It comes from conventional memory below 1 MiB, because
 * a start-up message carries 8 bits of page number. Page 0 (the BIOS's), the EBDA (which the map
 * excludes from RAM, checked again here) and everything from 0xA0000 are not used. The page is
 * filled with INT3 before the code is copied, so that a stray jump traps.
 *
 * The page tables are not the kernel's, because a CPU must not walk those before it is counted in
 * rounds (kernel/core/shootdown.h). The boot tables alone are not enough, as they do not map stacks
 * and memory above 4 GiB. The start-up root is therefore made of both:
 *
 *	0x0000000000000000   boot tables' identity map: the trampoline
 *	direct map, stacks,  the kernel's own lower tables, which are never freed or replaced
 *	MMIO, image
 *	vmemmap windows      nothing: these are the tables that change while the machine runs
 *
 * Neither the page nor the root is ever freed, because an AP may start late.
 */
#include "arch/x86_64/smp/smp_page.h"

#include <arch/memory.h>
#include <arch/pgtable.h>

#include "arch/x86_64/smp/trampoline.h"
#include "kernel/core/panic.h"
#include "kernel/lib/string.h"
#include "mm/map/memblock.h"

enum { INT3 = 0xcc, LOW_END = 0xa0000 };

extern pte_t boot_pgd[PTRS_PER_TABLE]; /* boot/entry.S */

static phys_t page_phys;

static const u64 trampoline_gdt[4] = {
	[TRAMPOLINE_CODE64 / 8] = 0x00af9b000000ffff,
	[TRAMPOLINE_DATA / 8] = 0x00cf93000000ffff,
	[TRAMPOLINE_CODE32 / 8] = 0x00cf9b000000ffff,
};

static bool page_is_ram(phys_t page)
{
	return memblock_list_bytes(&memblock_memory, page, page + PAGE_SIZE) == PAGE_SIZE;
}

/*
 * Low memory as a whole may be reserved for firmware; those pages may still be used here. A page
 * with any other owner is taken.
 */
static bool page_is_taken(phys_t page)
{
	for (size_t i = 0; i < memblock_reserved.count; i++) {
		const struct memblock_range *range = &memblock_reserved.range[i];

		if (range->owner != OWNER_FIRMWARE && range->start < page + PAGE_SIZE &&
		    page < range->end)
			return true;
	}
	return false;
}

/* The highest free page, or 0. */
static phys_t find_low_page(phys_t ebda)
{
	phys_t page = ALIGN_DOWN(ebda ? MIN(ebda, (phys_t)LOW_END) : LOW_END, PAGE_SIZE);

	do
		page -= PAGE_SIZE;
	while (page > 0 && (!page_is_ram(page) || page_is_taken(page)));
	return page;
}

/*
 * Make the start-up root. Returns its physical address, which is below 4 GiB so that 32-bit code
 * can load it, or 0.
 */
static phys_t make_root(void)
{
	const phys_t phys = memblock_alloc(PAGE_SIZE, PAGE_SIZE, EARLY_PHYS_LIMIT, NODE_NONE);
	const pte_t *kernel = phys_to_virt(pgtable_root() << PAGE_SHIFT);
	const unsigned first = pt_index(VMEMMAP_BASE, PT_PGD);
	const unsigned last =
		pt_index(VMEMMAP_BASE + VMEMMAP_WINDOWS * VMEMMAP_WINDOW_SIZE - 1, PT_PGD);
	pte_t *root;

	if (!phys)
		return 0;
	root = phys_to_virt(phys);
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++)
		root[i] = i >= first && i <= last ? 0 : kernel[i];
	root[0] = boot_pgd[0];
	return phys;
}

static void fill_page(u8 *page, phys_t phys, phys_t root)
{
	struct trampoline_data *data = (struct trampoline_data *)(page + TRAMPOLINE_DATA_AT);

	ASSERT(trampoline_end - trampoline_start <= TRAMPOLINE_DATA_AT,
	       "the trampoline's code reaches its data");
	memset(page, INT3, PAGE_SIZE);
	memcpy(page, trampoline_start, (size_t)(trampoline_end - trampoline_start));
	*data = (struct trampoline_data){
		.jump32_offset = (u32)(phys + (u64)(trampoline_code32 - trampoline_start)),
		.jump32_selector = TRAMPOLINE_CODE32,
		.jump64_offset = (u32)(phys + (u64)(trampoline_code64 - trampoline_start)),
		.jump64_selector = TRAMPOLINE_CODE64,
		.root = (u32)root,
		.gdt_limit = sizeof(trampoline_gdt) - 1,
		.gdt_base =
			(u32)(phys + TRAMPOLINE_DATA_AT + offsetof(struct trampoline_data, gdt)),
		.entry = (u64)(virt_t)ap_entry64,
	};
	memcpy(data->gdt, trampoline_gdt, sizeof(trampoline_gdt));
}

int smp_page_make(phys_t ebda)
{
	phys_t root;

	page_phys = find_low_page(ebda);
	if (!page_phys)
		return -ENOMEM;
	memblock_reserve(page_phys, page_phys + PAGE_SIZE, OWNER_IMAGE);
	root = make_root();
	if (!root)
		return -ENOMEM;
	fill_page(phys_to_virt(page_phys), page_phys, root);
	return 0;
}

u8 smp_page_vector(void)
{
	return (u8)(page_phys >> PAGE_SHIFT);
}
