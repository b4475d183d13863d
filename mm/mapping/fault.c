/* Meaning of a page fault in the kernel: see mm/mapping/fault.h. */
#include "mm/mapping/fault.h"

#include <arch/pgtable.h>

#include "kernel/core/context.h"
#include "kernel/core/quiet.h"
#include "kernel/lib/format.h"
#include "mm/map/pgtable.h"
#include "mm/map/vmap.h"
#include "mm/mapping/huge_map.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/zone.h"

static enum fault_result resolve(virt_t addr, bool write, bool exec, bool interruptible)
{
	enum pt_level level;
	phys_t phys;
	pte_t entry;

	if (huge_map_covers(addr))
		return huge_fault(addr, write, exec, interruptible);
	/*
	 * Another CPU may have finished the change that this access ran into, in which case the
	 * tables allow the access now.
	 */
	if (!exec && pgtable_translate(pgtable_root(), addr, &phys, &entry, &level) &&
	    (!write || pte_writable(entry)))
		return FAULT_RETRY;
	return FAULT_BUG;
}

enum fault_result fault_resolve(virt_t addr, bool write, bool exec, bool interruptible)
{
	const bool quiet = quiet_suspend(); /* a quiet program enters the kernel here */
	const enum fault_result result = resolve(addr, write, exec, interruptible);

	quiet_resume(quiet);
	return result;
}

static void describe_vmemmap(virt_t addr, bool write, char *buf, size_t size)
{
	const struct page *page = (const struct page *)ALIGN_DOWN(addr, sizeof(struct page));
	const pfn_t pfn = page_to_pfn(page);
	const struct block *block =
		addr < VMEMMAP_BASE + VMEMMAP_WINDOW_SIZE ? block_of(&mm_kernel, pfn) : NULL;
	const char *state = block ? block_state_name(block_look(block).state)
				  : "unknown to the machine's own table";
	enum pt_level level;
	phys_t phys;
	pte_t entry;

	if (write && pgtable_translate(pgtable_root(), addr, &phys, &entry, &level) &&
	    !pte_writable(entry))
		format(buf, size,
		       "write to a read-only tail of the huge page at frame %llx (struct page of "
		       "frame %llx)",
		       ALIGN_DOWN(pfn, BLOCK_FRAMES), pfn);
	else
		format(buf, size,
		       "%s the struct page of frame %llx, which does not exist: its block is %s",
		       write ? "write to" : "read of", pfn, state);
}

static void describe_huge(enum fault_result why, virt_t addr, const char *verb, char *buf,
			  size_t size)
{
	char context[CONTEXT_REASON_MAX];

	if (why == FAULT_HUGE_CONTEXT) {
		context_reason(context, sizeof(context));
		format(buf, size, "first touch of a page of a huge mapping %s", context);
	} else if (why == FAULT_HUGE_READ_ONLY || why == FAULT_HUGE_EXEC ||
		   why == FAULT_HUGE_NO_ACCESS) {
		format(buf, size, "%s a huge mapping%s", verb,
		       why == FAULT_HUGE_READ_ONLY   ? " that is read-only"
		       : why == FAULT_HUGE_NO_ACCESS ? ", where access is not allowed"
						     : "");
	} else {
		format(buf, size, "%s %llx, %s", verb, addr,
		       why == FAULT_HUGE_BEYOND ? "beyond the end of a huge mapping"
						: "where there is no huge mapping");
	}
}

void fault_describe(enum fault_result why, virt_t addr, bool write, bool exec, char *buf,
		    size_t size)
{
	const char *verb = exec ? "execution of" : write ? "write to" : "read of";
	unsigned stack;

	if (vmap_guard_hit(addr, &stack))
		format(buf, size, "%s the guard below stack %u: stack overflow", verb, stack);
	else if (addr >= VMEMMAP_BASE &&
		 addr < VMEMMAP_BASE + VMEMMAP_WINDOWS * VMEMMAP_WINDOW_SIZE)
		describe_vmemmap(addr, write, buf, size);
	else if (addr >= DIRECT_MAP_BASE && addr < DIRECT_MAP_BASE + DIRECT_MAP_SIZE)
		format(buf, size, "%s physical address %llx through the direct map: %s", verb,
		       addr - DIRECT_MAP_BASE,
		       exec ? "nothing in it is executable"
			    : "there is no RAM, or it is read-only there");
	else if (huge_map_covers(addr))
		describe_huge(why, addr, verb, buf, size);
	else if (addr < PAGE_SIZE)
		format(buf, size, "%s address %llx: a NULL pointer and an offset", verb, addr);
	else
		format(buf, size, "%s unmapped address %llx", verb, addr);
}
