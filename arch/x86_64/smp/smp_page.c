/*
 * The first page and page tables of an AP: a page to begin in and page tables to run on.
 *
 * The page has the first code of an AP (trampoline.S). It comes from conventional memory below 1
 * MiB, because a start-up message carries 8 bits of page number. Page 0 (the BIOS's), the EBDA
 * (which the map excludes from RAM, checked again here) and everything from 0xA0000 are not used.
 * The page is filled with INT3 before the code is copied, so that a stray jump traps.
 *
 * The page tables are not the kernel's, because a CPU must not walk those before it is counted in
 * rounds (kernel/core/shootdown.h). The boot tables alone are not enough, as they do not map stacks
 * and memory above 4 GiB. The start-up root is therefore made of both:
 *
 *	0x0000000000000000   boot tables' identity map: the entry code
 *	direct map, stacks,  the kernel's own lower tables, which are never freed or replaced
 *	MMIO, image
 *	vmemmap windows      nothing, as in the kernel's root until all CPUs have started: these are
 *	                     the tables that change while the machine runs
 *
 * Neither the page nor the root is ever freed, because an AP may start late.
 */
#include "arch/x86_64/smp/smp_page.h"

#include <arch/memory.h>
#include <arch/pgtable.h>

#include "arch/x86_64/smp/smp.h"
#include "kernel/core/panic.h"
#include "kernel/lib/string.h"
#include "mm/map/memblock.h"

enum { INT3 = 0xcc, LOW_END = 0xa0000 };

extern pte_t boot_pgd[PTRS_PER_TABLE]; /* boot/entry.S */
extern const char trampoline_start[], trampoline_end[];

u32 ap_root;

static phys_t page_phys;

/*
 * Low memory as a whole may be reserved for firmware; those pages may still be used here. A page
 * with any other owner is taken.
 */
static bool page_is_free(phys_t page)
{
	const phys_t end = page + PAGE_SIZE;

	return memblock_list_bytes(&memblock_memory, page, end, OWNER_ANY) == PAGE_SIZE &&
	       memblock_list_bytes(&memblock_reserved, page, end, OWNER_ANY) ==
		       memblock_list_bytes(&memblock_reserved, page, end, OWNER_FIRMWARE);
}

/* The highest free page, or 0. */
static phys_t find_low_page(phys_t ebda)
{
	phys_t page = ALIGN_DOWN(ebda ? MIN(ebda, (phys_t)LOW_END) : LOW_END, PAGE_SIZE);

	do
		page -= PAGE_SIZE;
	while (page > 0 && !page_is_free(page));
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
	pte_t *root;

	if (!phys)
		return 0;
	root = phys_to_virt(phys);
	/* mm_init() comes later, so the windows' entries are empty: a look at the first will do */
	ASSERT(!kernel[pt_index(VMEMMAP_BASE, PT_PGD)], "struct pages before all CPUs started");
	memcpy(root, kernel, PAGE_SIZE);
	root[0] = boot_pgd[0];
	return phys;
}

int smp_page_make(phys_t ebda)
{
	u8 *page;

	page_phys = find_low_page(ebda);
	if (!page_phys)
		return -ENOMEM;
	memblock_reserve(page_phys, page_phys + PAGE_SIZE, OWNER_IMAGE);
	ap_root = (u32)make_root();
	if (!ap_root)
		return -ENOMEM;
	page = phys_to_virt(page_phys);
	memset(page, INT3, PAGE_SIZE);
	memcpy(page, trampoline_start, (size_t)(trampoline_end - trampoline_start));
	return 0;
}

u8 smp_page_vector(void)
{
	return (u8)(page_phys >> PAGE_SHIFT);
}
