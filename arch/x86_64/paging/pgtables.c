/*
 * The kernel's own page tables for the image. Each part has its own permissions, in 4 KiB pages.
 *
 *	__image_text_start    text      read, execute
 *	__image_rodata_start  rodata    read
 *	__image_data_start    data+bss  read, write, no execute; the guard pages below the boot
 *	                        CPU's stacks are not mapped
 *	__image_end
 *
 * The entry code below the text (.boot) is not mapped here. It runs only on the boot page tables,
 * which stay unchanged in .data.
 */
#include <arch/boot.h>
#include <arch/memory.h>
#include <arch/pgtable.h>
#include <arch/tlb.h>

#include "arch/x86_64/consoles/console_screen.h"
#include "arch/x86_64/cpu/leftovers.h"
#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/cpu/mtrr_cpu.h"
#include "arch/x86_64/traps/descriptors.h"
#include "mm/map/memblock.h"
#include "mm/map/pgtable.h"

/* linker.ld */
extern const char __image_phys_start[], __image_text_start[], __image_text_end[],
	__image_rodata_start[], __image_rodata_end[], __image_data_start[], __image_end[];

static pfn_t root = PFN_NONE;

pfn_t pgtable_root(void)
{
	return root;
}

static phys_t image_phys(const void *addr)
{
	return (virt_t)addr - IMAGE_BASE;
}

static void map_image(virt_t start, virt_t end, enum pt_prot prot)
{
	if (pgtable_map_range(root, start, start - IMAGE_BASE, end - start, prot, PT_PAGE,
			      pgtable_alloc_boot, NULL) < 0)
		memblock_too_little("the page tables of the kernel image");
}

/* Map the data in pieces between the guard pages. */
static void map_data(void)
{
	virt_t start = (virt_t)__image_data_start;

	for (unsigned i = 0; i < IST_COUNT; i++) {
		map_image(start, boot_guard(i), PT_RW);
		start = boot_guard(i) + PAGE_SIZE;
	}
	map_image(start, (virt_t)__image_end, PT_RW);
}

void arch_page_tables_init(void)
{
	root = pgtable_alloc_boot(NULL);
	if (root == PFN_NONE)
		memblock_too_little("the root page table");
	map_image((virt_t)__image_text_start, (virt_t)__image_text_end, PT_RX);
	map_image((virt_t)__image_rodata_start, (virt_t)__image_rodata_end, PT_RO);
	map_data();
}

/*
 * The screen cannot be written between console_screen_leave() and console_screen_map(). It is
 * mapped only on the new tables, because the frames for its page tables may come from any memory by
 * now, and the boot tables do not reach above EARLY_PHYS_LIMIT.
 */
void arch_page_tables_load(void)
{
	console_screen_leave();
	write_cr3(root << PAGE_SHIFT);
	tlb_flush_local_all();
	console_screen_map();
}

/*
 * Reserve the image, the first MiB (real-mode vectors, BIOS data, trampoline page, legacy devices)
 * and the screen. Then drop the RAM that firmware's MTRRs leave uncached, before anything maps it.
 */
void arch_reserve_memory(void)
{
	memblock_reserve((phys_t)(virt_t)__image_phys_start, image_phys(__image_end), OWNER_IMAGE);
	memblock_reserve(0, MIB(1), OWNER_FIRMWARE);
	console_screen_reserve();
	leftovers_stop();
	if (mtrrs_read(&mtrrs_boot))
		mtrr_drop_uncached(&mtrrs_boot, &memblock_memory, &memblock_reserved);
}

bool arch_image_range(phys_t *start, phys_t *end_readonly)
{
	*start = (phys_t)(virt_t)__image_phys_start;
	*end_readonly = image_phys(__image_rodata_end);
	return true;
}
