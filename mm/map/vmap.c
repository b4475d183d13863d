/*
 * Stacks and device mappings: see vmap.h.
 *
 *   VMALLOC_BASE + n * STACK_SLOT   |......guard......|== stack ==|     n-th stack; the guard is
 *                                                                       the rest of its slot
 *   VMAP_DEVICES_BASE               |mapping|guard|mapping|guard|...    handed out upwards, once
 *
 * Addresses of devices are never reused, so unmapping needs no shootdown to protect a new owner. A
 * stale translation can only show the old contents to code that should no longer use the address.
 * The kernel itself maps each device once and keeps it. A program that maps and unmaps a page of
 * registers again and again has 134 million turns, and is then refused.
 */
#include "mm/map/vmap.h"

#include "kernel/core/panic.h"
#include "kernel/core/reason_set.h"
#include "mm/map/memblock.h"

#define STACK_SLOT KIB(64)

static unsigned stacks;
/* pages of each stack, to decode guard hits; stacks beyond this number are not decoded */
static u64 stack_pages[4096];
virt_t vmap_devices_next = VMAP_DEVICES_BASE;
static pgtable_alloc_fn *table_alloc = pgtable_alloc_boot;
static u64 tables; /* atomic */

static pfn_t make_table(void *ctx)
{
	const pfn_t pfn = table_alloc(ctx);

	if (pfn != PFN_NONE)
		atomic_fetch_add(&tables, 1);
	return pfn;
}

u64 vmap_tables(void)
{
	return atomic_load_relaxed(&tables);
}

void vmap_tables_from(pgtable_alloc_fn *alloc)
{
	table_alloc = alloc;
}

/*
 * Addresses for `size` bytes, whole pages, with an unmapped page after them. Returns 0 if so many
 * are not left; those that are left stay for other callers.
 */
static virt_t reserve(u64 size)
{
	virt_t virt;

	do {
		virt = atomic_load_relaxed(&vmap_devices_next);
		if (size >= VMAP_PAGES_BASE - virt)
			return 0;
	} while (!atomic_cas(&vmap_devices_next, virt, virt + size + PAGE_SIZE));
	return virt;
}

void *vmap_phys(phys_t phys, u64 size, enum pt_prot prot)
{
	const phys_t first = ALIGN_DOWN(phys, PAGE_SIZE);
	const u64 bytes = ALIGN_UP(phys + size, PAGE_SIZE) - first;
	virt_t virt;

	if (size == 0 || !phys_is_possible(phys, size))
		return reason_null(size == 0 ? REASON_BAD_SIZE : REASON_BAD_PHYS);
	virt = reserve(bytes);
	if (!virt)
		return reason_null(REASON_NO_ADDRESSES);
	if (pgtable_map_range(pgtable_root(), virt, first, bytes, prot, PT_PAGE, make_table, NULL) <
	    0)
		return reason_null(REASON_NO_MEMORY);
	return (char *)virt + (phys - first);
}

void vmap_unmap(void *virt, u64 size)
{
	const virt_t end = ALIGN_UP((virt_t)virt + size, PAGE_SIZE);

	for (virt_t at = ALIGN_DOWN((virt_t)virt, PAGE_SIZE); at < end; at += PAGE_SIZE) {
		pte_t *entry = pgtable_entry(pgtable_root(), at, PT_PAGE, NULL, NULL);

		if (entry)
			pte_store(entry, at, PT_PAGE, 0);
	}
}

void *vmap_stack(u64 size, node_t node)
{
	const virt_t top = VMALLOC_BASE + (stacks + 1) * STACK_SLOT;
	phys_t phys = memblock_alloc(size, PAGE_SIZE, 0, node);

	ASSERT(size < STACK_SLOT && VMAP_DEVICES_BASE > top, "no slot fits a stack of %llu bytes",
	       size);
	if (!phys)
		return NULL;
	if (pgtable_map_range(pgtable_root(), top - size, phys, size, PT_RW, PT_PAGE, table_alloc,
			      NULL) < 0)
		return NULL;
	if (stacks < ARRAY_LEN(stack_pages))
		stack_pages[stacks] = size / PAGE_SIZE;
	stacks++;
	return (void *)top;
}

bool vmap_guard_hit(virt_t virt, unsigned *stack_index)
{
	const u64 slot = (virt - VMALLOC_BASE) / STACK_SLOT;

	if (virt < VMALLOC_BASE || slot >= stacks || slot >= ARRAY_LEN(stack_pages))
		return false;
	*stack_index = (unsigned)slot;
	return virt % STACK_SLOT < STACK_SLOT - stack_pages[slot] * PAGE_SIZE;
}
