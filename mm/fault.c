/*
 * What a page fault of the kernel means: see kernel/fault.h.
 */
#include "kernel/fault.h"

#include <arch/pgtable.h>

#include "kernel/printk.h"
#include "mm/huge_map.h"
#include "mm/pgtable.h"
#include "mm/vmap.h"
#include "mm/zone.h"

enum fault_result fault_resolve(virt_t addr, bool write, bool exec, bool interruptible)
{
	enum pt_level level;
	phys_t phys;
	pte_t entry;

	if (huge_map_covers(addr) && !exec)
		return huge_fault(addr, write, interruptible);
	/* Another CPU may have finished what made this access illegal: then the tables allow it now. */
	if (!exec && pgtable_translate(pgtable_root(), addr, &phys, &entry, &level) && (!write || pte_writable(entry)))
		return FAULT_RETRY;
	return FAULT_BUG;
}

static void describe_vmemmap(virt_t addr, bool write, char *buf, size_t size)
{
	const struct page *page = (const struct page *)ALIGN_DOWN(addr, sizeof(struct page));
	const pfn_t pfn = page_to_pfn(page);
	const struct block *block = addr < VMEMMAP_BASE + VMEMMAP_WINDOW_SIZE ? block_of(&mm_kernel, pfn) : NULL;
	const char *state = block ? block_state_name(block_look(block).state) : "unknown to the machine's own table";
	enum pt_level level;
	phys_t phys;
	pte_t entry;

	if (write && pgtable_translate(pgtable_root(), addr, &phys, &entry, &level) && !pte_writable(entry))
		format(buf, size, "write to a read-only tail of the huge page at frame %llx (struct page of frame %llx)",
		       (unsigned long long)ALIGN_DOWN(pfn, BLOCK_FRAMES), (unsigned long long)pfn);
	else
		format(buf, size, "%s the struct page of frame %llx, which does not exist: its block is %s",
		       write ? "write to" : "read of", (unsigned long long)pfn, state);
}

void fault_describe(virt_t addr, bool write, bool exec, char *buf, size_t size)
{
	const char *verb = exec ? "execution of" : write ? "write to" : "read of";
	unsigned stack;

	if (vmap_guard_hit(addr, &stack))
		format(buf, size, "%s the guard below stack %u: stack overflow", verb, stack);
	else if (addr >= VMEMMAP_BASE && addr < VMEMMAP_BASE + VMEMMAP_WINDOWS * VMEMMAP_WINDOW_SIZE)
		describe_vmemmap(addr, write, buf, size);
	else if (addr >= DIRECT_MAP_BASE && addr < DIRECT_MAP_BASE + DIRECT_MAP_SIZE)
		format(buf, size, "%s physical address %llx through the direct map: %s", verb,
		       (unsigned long long)(addr - DIRECT_MAP_BASE),
		       exec ? "nothing in it is executable" : "no RAM, or read-only there");
	else if (huge_map_covers(addr))
		huge_fault_describe(addr, write, exec, buf, size);
	else if (addr < PAGE_SIZE)
		format(buf, size, "%s address %llx: a NULL pointer and an offset", verb, (unsigned long long)addr);
	else
		format(buf, size, "%s unmapped address %llx", verb, (unsigned long long)addr);
}
