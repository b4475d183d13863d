/*
 * Physical memory and what page-table stores do to the process.
 *
 * Checked backend: an entry that translates part of a vmemmap window, or of the vmap region, is also made real with
 * mmap() of the memfd, so that a write to a read-only tail or a load through a cleared entry faults as on hardware.
 * Only tables that hang in the tree count: before it does, a table's entries are data, and hanging it in maps all of
 * them at once. Tables are ordinary frames.
 *
 * Fast backend: a window is plain memory in huge pages, as the real vmemmap never costs a system call either. Mapping a
 * frame there copies it in, so struct pages and shared tails hold what they would; that tails are shared, read-only or
 * gone is not modelled. A translation that stays the same copies nothing: the window's contents are the newer ones.
 *
 * mmap() is called behind the sanitizers' backs: for them it would be an access to the whole range, and remapping a
 * tail under a concurrent reader is precisely what the design allows.
 *
 * Source of the rules: Intel SDM vol. 3A, 4.5 (4-level paging), 4.10 (caching translation information).
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <arch/memory.h>
#include <arch/pgtable.h>

#include "tests/host/host.h"

u64 host_memory_bytes;
int host_memory_fd = -1;

static pfn_t root_pfn = PFN_NONE;

void host_pgtable_set_root(pfn_t root)
{
	atomic_store_release(&root_pfn, root);
}

pfn_t pgtable_root(void)
{
	return atomic_load_acquire(&root_pfn);
}

static void map_raw(virt_t virt, u64 bytes, int prot, int flags, int fd, u64 offset)
{
	long got = syscall(SYS_mmap, virt, bytes, prot, flags, fd, offset);

	if (got != (long)virt)
		host_die("mmap of %llu bytes at 0x%llx failed (mappings are limited to vm.max_map_count)",
			 (unsigned long long)bytes, (unsigned long long)virt);
}

/* Addresses with nothing behind them yet. */
static void reserve(virt_t start, u64 bytes, int prot)
{
	long got = syscall(SYS_mmap, start, bytes, prot,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (got != (long)start)
		host_die("addresses 0x%llx..0x%llx are taken in this process", (unsigned long long)start,
			 (unsigned long long)(start + bytes));
}

void host_memory_init(u64 bytes)
{
#ifdef HOST_FAST
	const int window_prot = PROT_READ | PROT_WRITE;
#else
	const int window_prot = PROT_NONE;
#endif

	host_memory_bytes = bytes;
	host_memory_fd = memfd_create("ashlar-ram", MFD_CLOEXEC);
	if (host_memory_fd < 0 || ftruncate(host_memory_fd, (off_t)bytes) < 0)
		host_die("no memfd of %llu bytes", (unsigned long long)bytes);
	host_shadow_init(bytes);
	reserve(DIRECT_MAP_BASE, bytes, PROT_NONE);
	host_shadow_map(DIRECT_MAP_BASE, bytes, 0);
	map_raw(DIRECT_MAP_BASE, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
		host_memory_fd, 0);
	reserve(VMEMMAP_BASE, VMEMMAP_WINDOW_SIZE * VMEMMAP_WINDOWS, window_prot);
#ifdef HOST_FAST
	madvise((void *)VMEMMAP_BASE, VMEMMAP_WINDOW_SIZE * VMEMMAP_WINDOWS, MADV_HUGEPAGE);
#endif
	reserve(VMALLOC_BASE, VMALLOC_SIZE, PROT_NONE);
	reserve(HUGE_MAP_BASE, HUGE_MAP_SIZE, PROT_NONE);
}

bool host_is_window(virt_t virt)
{
	return virt - VMEMMAP_BASE < VMEMMAP_WINDOW_SIZE * VMEMMAP_WINDOWS;
}

static bool is_huge_map(virt_t virt)
{
	return virt - HUGE_MAP_BASE < HUGE_MAP_SIZE;
}

static bool is_real(virt_t virt)
{
	return virt - VMALLOC_BASE < VMALLOC_SIZE || is_huge_map(virt) || host_is_window(virt);
}

static pte_t *table_at(pfn_t pfn)
{
	if (pfn >= host_memory_bytes >> PAGE_SHIFT)
		host_die("page-table entry points beyond RAM: frame 0x%llx", (unsigned long long)pfn);
	return phys_to_virt(pfn << PAGE_SHIFT);
}

/* True if hardware walking from the root would use this very entry for `virt`. */
static bool entry_is_live(const pte_t *entry, virt_t virt, enum pt_level level)
{
	pfn_t table = pgtable_root();

	if (table == PFN_NONE)
		return false;
	for (int l = PT_PGD; l > (int)level; l--) {
		pte_t pte = pte_load(table_at(table) + pt_index(virt, l));

		if (!pte_present(pte) || pte_is_leaf(pte, l))
			return false;
		table = pte_pfn(pte);
	}
	return table_at(table) + pt_index(virt, level) == entry;
}

/* The fast backend's window: always there, so that only new contents make a difference. */
static bool is_plain(virt_t virt)
{
#ifdef HOST_FAST
	return host_is_window(virt);
#else
	(void)virt;
	return false;
#endif
}

static void unmap(virt_t virt, u64 bytes)
{
	if (is_plain(virt))
		return;
	host_shadow_unmap(virt, bytes);
	map_raw(virt, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static void map_leaf(virt_t virt, enum pt_level level, pte_t pte)
{
	u64 bytes = pt_level_size(level);
	phys_t phys = pte_pfn(pte) << PAGE_SHIFT;

	/* Beyond RAM there are only devices, and the hosted machine has none. */
	if (phys + bytes > host_memory_bytes)
		host_die("mapping of 0x%llx bytes at physical 0x%llx, beyond RAM", (unsigned long long)bytes,
			 (unsigned long long)phys);
	if (is_plain(virt)) {
		memcpy((void *)virt, phys_to_virt(phys), bytes);
		return;
	}
	host_shadow_map(virt, bytes, phys);
	map_raw(virt, bytes, pte_writable(pte) ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED | MAP_FIXED,
		host_memory_fd, phys);
}

/* Make [virt, ...) what this entry says, tables below included. What was there before is gone already. */
static void make_real(virt_t virt, enum pt_level level, pte_t pte)
{
	if (!pte_present(pte))
		return;
	if (pte_is_leaf(pte, level)) {
		map_leaf(virt, level, pte);
		return;
	}
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++)
		make_real(virt + i * pt_level_size(level - 1), level - 1, pte_load(table_at(pte_pfn(pte)) + i));
}

/* What 4 KiB page `i` below an entry of `level` translates to, as if it had an entry of its own; 0 if nothing. */
static pte_t page_below(pte_t pte, enum pt_level level, unsigned i)
{
	if (!pte_present(pte))
		return 0;
	if (level == PT_PAGE)
		return pte;
	if (!pte_is_leaf(pte, level))
		return pte_load(table_at(pte_pfn(pte)) + i);
	return pte_make(pte_pfn(pte) + i, PT_PAGE, pte_writable(pte) ? PT_RW : PT_RO);
}

static bool same_translation(pte_t a, pte_t b)
{
	return pte_present(a) == pte_present(b) &&
	       (!pte_present(a) || (pte_pfn(a) == pte_pfn(b) && pte_writable(a) == pte_writable(b)));
}

/* Page by page, only where something differs: a leaf split into a table of the same frames changes nothing. */
static void replace_real(virt_t virt, enum pt_level level, pte_t old, pte_t value)
{
	unsigned pages = level == PT_PAGE ? 1 : PTRS_PER_TABLE;

	if (level == PT_PUD && !host_is_window(virt) && pte_present(old)) {
		unmap(virt, pt_level_size(level)); /* nothing of ours looks meanwhile: leaves that change rights are claimed */
		make_real(virt, level, value);
		return;
	}
	if (level >= PT_PUD) {
		/* Windows are never torn down at this level; only new tables are hung in. */
		if (pte_present(old))
			host_die("entry of level %d at 0x%llx replaced: not simulated", level,
				 (unsigned long long)virt);
		make_real(virt, level, value);
		return;
	}
	if (is_plain(virt) && pte_is_leaf(old, level) && pte_is_leaf(value, level) && pte_present(old) &&
	    pte_pfn(old) == pte_pfn(value))
		return; /* other rights to the same frame */
	if (pte_is_leaf(value, level)) {
		map_leaf(virt, level, value); /* in one step: no moment without a translation */
		return;
	}
	if (pte_is_leaf(old, level) && !pte_present(value)) {
		unmap(virt, pt_level_size(level));
		return;
	}
	for (unsigned i = 0; i < pages; i++) {
		pte_t was = page_below(old, level, i), is = page_below(value, level, i);

		if (same_translation(was, is))
			continue;
		if (pte_present(is))
			map_leaf(virt + i * PAGE_SIZE, PT_PAGE, is);
		else
			unmap(virt + i * PAGE_SIZE, PAGE_SIZE);
	}
}

#ifndef HOST_FAST
/* Tell the watcher which frames some CPU may still reach although the tables no longer say so. */
static void watch(virt_t virt, enum pt_level level, pte_t old, pte_t value, const void *place)
{
	unsigned pages = level == PT_PAGE ? 1 : PTRS_PER_TABLE;
	struct watch_change change = {.place = place, .idle_is_safe = level == PT_PAGE};

	if (!pte_present(old) || level > PT_PMD)
		return;
	for (unsigned i = 0; i < pages; i++) {
		pte_t was = page_below(old, level, i), is = page_below(value, level, i);
		bool kept = pte_present(is) && pte_pfn(is) == pte_pfn(was) && (pte_writable(is) || !pte_writable(was));

		if (!pte_present(was) || kept)
			continue;
		change.virt = virt + i * PAGE_SIZE;
		change.pfn = pte_pfn(was);
		change.writable = pte_writable(was);
		watch_changed(&change);
	}
	if (level == PT_PMD && !pte_is_leaf(old, level) && pte_pfn(old) != pte_pfn(value)) {
		change.virt = virt;
		change.pfn = pte_pfn(old);
		change.is_table = true;
		watch_changed(&change);
	}
	if (level == PT_PMD && pte_present(value) && pte_is_leaf(old, level) != pte_is_leaf(value, level))
		watch_size_changed(virt, place);
}
#endif

#ifndef HOST_FAST
/* Huge mappings: a leaf of any size is one memory, of its first frame; a table that goes away is another. */
static void watch_huge(virt_t virt, enum pt_level level, pte_t old, pte_t value, const void *place)
{
	struct watch_change change = {.virt = virt, .pfn = pte_pfn(old), .writable = pte_writable(old), .place = place};

	if (!pte_present(old) || (pte_present(value) && pte_pfn(value) == pte_pfn(old) && pte_writable(value)))
		return;
	change.is_table = !pte_is_leaf(old, level);
	change.idle_is_safe = !change.is_table;
	watch_changed(&change);
}
#endif

/* What the entry translates becomes real; then the watcher learns what some CPU may still reach. */
static void change_real(virt_t virt, enum pt_level level, pte_t old, pte_t value, const void *place)
{
	replace_real(virt, level, old, value);
#ifdef HOST_FAST
	(void)place;
#else
	if (host_is_window(virt))
		watch(virt, level, old, value, place);
	if (is_huge_map(virt))
		watch_huge(virt, level, old, value, place);
#endif
}

/*
 * The store ends a claim: so what is claimed is made real before it, or the next who claims the entry might have his change made
 * real first and ours would undo it.
 */
void host_pte_store(pte_t *entry, virt_t virt, enum pt_level level, pte_t value)
{
	const void *place = __builtin_return_address(0);
	const pte_t old = pte_load(entry);

	if (!is_real(virt) || !entry_is_live(entry, virt, level)) {
		atomic_store_release(entry, value);
		return;
	}
	if (pte_claimed(old)) {
		change_real(virt, level, old, value, place);
		atomic_store_release(entry, value);
		return;
	}
#ifndef HOST_FAST
	if (level == PT_PAGE && host_is_window(virt))
		watch_size_settled(virt, place);
#endif
	atomic_store_release(entry, value);
	change_real(virt, level, old, value, place);
}
