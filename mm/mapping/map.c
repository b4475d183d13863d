/*
 * Mappings for programs: the calls of mm.h over vmap.h.
 *
 *   VMAP_PAGES_BASE  | slot 0: a GiB for a page | a GiB of guard | slot 1 ...
 *
 * A page gets a GiB of addresses to itself, so all tables below one PUD entry belong to it and can
 * be freed with it. The entry is cleared, every CPU flushes (idle ones too, because the table pages
 * are about to have another user), and then the tables are freed and the slot is given back. A slot
 * thus has no translation in any TLB when another page gets it. Slots are taken in a circle, so an
 * address is used again as late as possible.
 *
 * Any number of CPUs may map and unmap. The bitmap of slots is written under slots_lock. The CPU
 * that unmaps claims the PUD entry, so of two that unmap one address one finds no mapping.
 *
 * A mapping holds a reference to its page, and the page's head counts its mappings (PAGE_MAPPINGS)
 * in the word that says how the page is freed. page_free() of a mapped page therefore leaves its
 * fast path by a comparison that it makes anyway. The address is recorded nowhere: page_unmap()
 * finds the page through the tables, and a second call finds none.
 */
#include "mm/mapping/map.h"

#include <arch/cpu.h>

#include "kernel/core/context.h"
#include "kernel/core/lock.h"
#include "kernel/core/printk.h"
#include "kernel/core/reason_set.h"
#include "kernel/core/shootdown.h"
#include "mm/map/memblock.h"
#include "mm/page/page_check.h"
#include "mm/page/page_fast.h"

static u64 page_bytes(const struct page *page)
{
	return PAGE_SIZE << page_order(page);
}

static void free_table(pte_t entry)
{
	page_free(pfn_to_page(pte_pfn(entry)));
	vmap_table_freed();
}

/* Free the tables below a PUD entry, which no CPU uses any more. */
static void free_tables(pte_t pud)
{
	const pte_t *table = pte_table(pud);

	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		const pte_t entry = pte_load(&table[i]);

		if (pte_present(entry) && !pte_is_leaf(entry, PT_PMD))
			free_table(entry);
	}
	free_table(pud);
}

/* Remove what is mapped in the slot at `virt`, whose entry the caller owns, on every CPU. */
static void clear_slot(pte_t *entry, virt_t virt)
{
	const pte_t pud = pte_load(entry);

	pte_store(entry, virt, PT_PUD, 0);
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	if (pte_present(pud) && !pte_is_leaf(pud, PT_PUD))
		free_tables(pud);
}

static pte_t *slot_entry(virt_t virt)
{
	return pgtable_entry(pgtable_root(), virt, PT_PUD, NULL, NULL);
}

/* ---- slots ---- */

/* a bit for each; written under the lock and read without it */
static u64 slots_taken[DIV_ROUND_UP(MAP_SLOTS, 64)];
u32 map_slots_next;
static struct spinlock slots_lock = SPINLOCK_INIT(LOCK_LEAF);

static bool slot_is_taken(u32 slot)
{
	return atomic_load_relaxed(&slots_taken[slot / 64]) >> slot % 64 & 1;
}

/* slots_lock held, so that no other CPU writes the word meanwhile. */
static void slot_flip(u32 slot)
{
	u64 *word = &slots_taken[slot / 64];

	atomic_store_relaxed(word, *word ^ 1ULL << slot % 64);
}

/* Returns the address of a slot, or 0 if all are taken. */
static virt_t slot_take(void)
{
	virt_t virt = 0;

	spin_lock(&slots_lock);
	for (u32 i = 0; i < MAP_SLOTS && !virt; i++) {
		const u32 slot = (atomic_load_relaxed(&map_slots_next) + i) % MAP_SLOTS;

		if (slot_is_taken(slot))
			continue;
		slot_flip(slot);
		atomic_store_relaxed(&map_slots_next, (slot + 1) % MAP_SLOTS);
		virt = VMAP_PAGES_BASE + slot * MAP_SLOT_BYTES;
	}
	spin_unlock(&slots_lock);
	return virt;
}

/* After the round: from now on another page may have the addresses. */
static void slot_give(virt_t virt)
{
	spin_lock(&slots_lock);
	slot_flip((u32)((virt - VMAP_PAGES_BASE) / MAP_SLOT_BYTES));
	spin_unlock(&slots_lock);
}

virt_t map_find(pfn_t pfn)
{
	enum pt_level level;
	phys_t phys;
	pte_t entry;

	for (u32 slot = 0; slot < MAP_SLOTS; slot++) {
		const virt_t at = VMAP_PAGES_BASE + slot * MAP_SLOT_BYTES;
		irq_flags_t flags;
		bool found;

		if (!slot_is_taken(slot))
			continue;
		/* the round of page_unmap() waits for this CPU before it frees a table */
		flags = irq_save();
		found = pgtable_translate(pgtable_root(), at, &phys, &entry, &level) &&
			phys >> PAGE_SHIFT == pfn;
		irq_restore(flags);
		if (found)
			return at;
	}
	return 0;
}

/* ---- pages ---- */

/*
 * Does `page` head a page in use? Mapping anything else is a mistake of the caller's and is
 * reported.
 */
static bool can_be_mapped(struct page *page)
{
	struct page seen;

	if (!page_has_place(&mm_kernel, page) || !page_peek(page_to_pfn(page), &seen)) {
		page_misused(NULL, NULL, "mapping of %p, which is no struct page",
			     (const void *)page);
		return false;
	}
	if (seen.refcount > 0 &&
	    !(seen.flags & (PAGE_BUDDY | PAGE_PCP | PAGE_TAIL | PAGE_RESERVED)))
		return true;
	page_misused(&mm_kernel, page, "mapping of frame %llx, which heads no page in use",
		     page_to_pfn(page));
	return false;
}

/* Count one more mapping and its reference. False if there is no room to count it. */
static bool hold(struct page *page)
{
	u64 state;

	do {
		state = atomic_load_relaxed(&page->state);
		if (state_mappings(state) == PAGE_MAPPINGS / PAGE_MAPPING)
			return false;
	} while (!atomic_cas(&page->state, state, state + PAGE_REFERENCE + PAGE_MAPPING));
	return true;
}

/*
 * Drop the mapping's count first; once its reference is gone, nothing of the page may be looked at.
 */
static void release(struct page *page, virt_t caller)
{
	atomic_fetch_sub(&page->state, (u64)PAGE_MAPPING);
	page_put_head(&mm_kernel, page, caller);
}

void *page_map(struct page *page, u64 leaf)
{
	enum pt_level level = PT_PAGE;
	virt_t virt;

	context_assert(CONTEXT_ORDINARY);
	if (!can_be_mapped(page))
		return reason_null(REASON_BAD_PAGE);
	while (level < PT_PUD && pt_level_size(level) < leaf)
		level++;
	if (pt_level_size(level) != leaf || leaf > page_bytes(page))
		return reason_null(REASON_BAD_PAGE_SIZE);
	if (level == PT_PUD && !cpu_has_1g_mappings())
		return reason_null(REASON_CPU_LACKS);
	if (!hold(page))
		return reason_null(REASON_NO_MAPPINGS);
	virt = slot_take();
	if (virt &&
	    vmap_map(virt, page_to_pfn(page) << PAGE_SHIFT, page_bytes(page), PT_RW, level) == 0)
		return (void *)virt;
	if (virt) {
		pte_t *entry = slot_entry(virt);

		if (entry)
			clear_slot(entry, virt);
		slot_give(virt);
	}
	release(page, CALLER);
	return reason_null(virt ? REASON_NO_MEMORY : REASON_NO_ADDRESSES);
}

/* The page that page_map() has mapped at `virt`, the address of a slot; NULL if there is none. */
static struct page *page_mapped_at(virt_t virt)
{
	enum pt_level level;
	struct page *page, seen;
	phys_t phys;
	pte_t entry;

	if (!pgtable_translate(pgtable_root(), virt, &phys, &entry, &level))
		return NULL;
	page = pfn_to_page(phys >> PAGE_SHIFT);
	if (!page_has_place(&mm_kernel, page) || !page_peek(phys >> PAGE_SHIFT, &seen))
		return NULL;
	return state_mappings(seen.state) > 0 ? page : NULL;
}

/* Claim the entry of the slot at `virt` if a page is mapped there. *page receives the page. */
static pte_t *claim_mapping(virt_t virt, struct page **page)
{
	pte_t *entry, pud;

	if (virt - VMAP_PAGES_BASE >= VMAP_PAGES_SIZE ||
	    !IS_ALIGNED(virt - VMAP_PAGES_BASE, MAP_SLOT_BYTES))
		return NULL;
	entry = slot_entry(virt);
	if (!entry)
		return NULL;
	pud = pte_load(entry);
	if (!pte_present(pud) || !pte_claim(entry, pud))
		return NULL;
	*page = page_mapped_at(virt);
	if (*page)
		return entry;
	pte_store(entry, virt, PT_PUD, pud);
	return NULL;
}

void page_unmap(void *address)
{
	const virt_t virt = (virt_t)address;
	struct page *page;
	pte_t *entry;

	context_assert(CONTEXT_ORDINARY);
	entry = claim_mapping(virt, &page);
	if (!entry) {
		page_misused(NULL, NULL, "page_unmap() of %p, where no page is mapped", address);
		return;
	}
	clear_slot(entry, virt);
	slot_give(virt);
	release(page, CALLER);
}

/* ---- device registers ---- */

/*
 * Is the range RAM of the kernel's? RAM has no registers, and the owner's cached lines would mix
 * with the writes that bypass the cache.
 */
static bool is_ram(phys_t phys, u64 size)
{
	const pfn_t own =
		memblock_find_own(&memblock_memory, &memblock_reserved, ALIGN_DOWN(phys, PAGE_SIZE),
				  ALIGN_UP(phys + size, PAGE_SIZE));

	if (own == PFN_NONE)
		return false;
	pr_err("mmio_map() of %llu bytes at %llx is refused: frame %llx is RAM", size, phys, own);
	return true;
}

volatile void __iomem *mmio_map(phys_t phys, u64 size)
{
	context_assert(CONTEXT_ORDINARY);
	if (size > 0 && phys_is_possible(phys, size) && is_ram(phys, size))
		return reason_null(REASON_IS_RAM);
	return (volatile void __iomem *)vmap_phys(phys, size, PT_UNCACHED);
}

static bool is_mapped(virt_t virt, pte_t *entry)
{
	enum pt_level level;
	phys_t phys;

	return pgtable_translate(pgtable_root(), virt, &phys, entry, &level) && level == PT_PAGE;
}

/*
 * Are the pages [first, end) mapped registers, and all of one mapping? Nothing is mapped directly
 * before and behind a whole mapping.
 */
static bool is_mapping_of_registers(virt_t first, virt_t end)
{
	pte_t entry;

	if (first < VMAP_DEVICES_BASE || first >= end ||
	    end > atomic_load_relaxed(&vmap_devices_next) || is_mapped(first - PAGE_SIZE, &entry) ||
	    is_mapped(end, &entry))
		return false;
	for (virt_t at = first; at < end; at += PAGE_SIZE)
		if (!is_mapped(at, &entry) || !pte_uncached(entry))
			return false;
	return true;
}

void mmio_unmap(volatile void __iomem *address, u64 size)
{
	const virt_t virt = (virt_t)(void __force *)address;

	context_assert(CONTEXT_ORDINARY);
	if (is_mapping_of_registers(ALIGN_DOWN(virt, PAGE_SIZE), ALIGN_UP(virt + size, PAGE_SIZE)))
		vmap_unmap((void __force *)address, size);
	else
		page_misused(NULL, NULL,
			     "mmio_unmap() of %llu bytes at %p, which is no mapping of mmio_map()",
			     size, (void __force *)address);
}
