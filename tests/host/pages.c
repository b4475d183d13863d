/*
 * Physical memory, and the effect of page-table stores on the process.
 *
 * Checked backend: an entry that translates part of a vmemmap window, or of the vmap region, is
 * also made real with mmap() of the memfd. A write to a read-only tail or a load through a cleared
 * entry then faults as on hardware. Only tables that are linked into the tree count. Before that a
 * table's entries are data; linking it maps all of them at once. Tables are ordinary frames.
 *
 * Fast backend: a window is plain memory in huge pages, because the real vmemmap never costs a
 * system call either. Mapping a frame there copies it in, so struct pages and shared tails have
 * their proper contents. That tails are shared, read-only or unmapped is not modelled. A
 * translation that stays the same copies nothing, because the window's contents are newer than the
 * frame's.
 *
 * Struct pages are mapped with MAP_POPULATE where time is measured. Their first use then takes no
 * page fault of the host, which would count as time of the kernel's code (simulate.c).
 *
 * mmap() is called without the sanitizers' knowledge. They would take it for an access to the whole
 * range, and remapping a tail under a concurrent reader is exactly what the design allows.
 *
 * Source of the rules: Intel SDM vol. 3A, 4.5 (4-level paging), 4.10 (caching translation
 * information).
 */
#define _GNU_SOURCE
#include <arch/pgtable.h>
#include <arch/user.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "tests/host/host.h"

u64 host_memory_bytes;
int host_memory_fd = -1;

#ifndef MADV_COLLAPSE /* headers before glibc 2.37 */
#define MADV_COLLAPSE 25
#endif

#ifdef HOST_SANITIZED
#define WINDOW_FLAGS 0
#else
#define WINDOW_FLAGS MAP_POPULATE
#endif

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
		host_die("mmap of %llu bytes at 0x%llx failed (mappings are limited to "
			 "vm.max_map_count)",
			 bytes, virt);
}

/* Reserve addresses, with no memory behind them yet. */
static void reserve(virt_t start, u64 bytes, int prot)
{
	long got =
		syscall(SYS_mmap, start, bytes, prot,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (got != (long)start)
		host_die("addresses 0x%llx..0x%llx are taken in this process", start,
			 start + bytes);
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
		host_die("no memfd of %llu bytes", bytes);
	host_shadow_init(bytes);
	reserve(DIRECT_MAP_BASE, bytes, PROT_NONE);
	host_shadow_map(DIRECT_MAP_BASE, bytes, 0);
	map_raw(DIRECT_MAP_BASE, bytes, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_FIXED | MAP_NORESERVE, host_memory_fd, 0);
	/* page_address(NULL) is frame 0, which is firmware's */
	mprotect((void *)DIRECT_MAP_BASE, PAGE_SIZE, PROT_NONE);
	reserve(VMEMMAP_BASE, VMEMMAP_WINDOW_SIZE * VMEMMAP_WINDOWS, window_prot);
#ifdef HOST_FAST
	madvise((void *)VMEMMAP_BASE, VMEMMAP_WINDOW_SIZE * VMEMMAP_WINDOWS, MADV_HUGEPAGE);
#endif
	reserve(VMALLOC_BASE, VMALLOC_SIZE, PROT_NONE);
	reserve(HUGE_MAP_BASE, HUGE_MAP_SIZE, PROT_NONE);
}

/* Is the address inside a vmemmap window? */
static bool host_is_window(virt_t virt)
{
	return virt - VMEMMAP_BASE < VMEMMAP_WINDOW_SIZE * VMEMMAP_WINDOWS;
}

static bool is_huge_map(virt_t virt)
{
	return virt - HUGE_MAP_BASE < HUGE_MAP_SIZE;
}

/* Addresses of programs are not real: their entries are data, and the kernel walks them itself. */
static bool is_real(virt_t virt)
{
	return virt - VMALLOC_BASE < VMALLOC_SIZE || is_huge_map(virt) || host_is_window(virt);
}

static pte_t *table_at(pfn_t pfn)
{
	if (pfn >= host_memory_bytes >> PAGE_SHIFT)
		host_die("page-table entry points beyond RAM: frame 0x%llx", pfn);
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

void *host_alias(void *addr)
{
	const virt_t virt = (virt_t)addr;
	pfn_t table = pgtable_root();

	if (!is_real(virt))
		return addr;
	for (int l = PT_PGD; l >= PT_PAGE && table != PFN_NONE; l--) {
		const pte_t pte = pte_load(table_at(table) + pt_index(virt, l));

		if (!pte_present(pte))
			return NULL;
		if (pte_is_leaf(pte, l))
			return phys_to_virt((pte_pfn(pte) << PAGE_SHIFT) + virt % pt_level_size(l));
		table = pte_pfn(pte);
	}
	return NULL;
}

/*
 * Is this address in the fast backend's window? That window is always mapped, so only new contents
 * matter.
 */
static bool is_plain(virt_t virt)
{
#ifdef HOST_FAST
	return host_is_window(virt);
#else
	return false;
#endif
}

static void unmap(virt_t virt, u64 bytes)
{
	if (is_plain(virt))
		return;
	host_shadow_unmap(virt, bytes);
	map_raw(virt, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		0);
}

/* Map a leaf's frames, with these flags besides those that every leaf has. */
static void map_memory(virt_t virt, u64 bytes, pte_t pte, int flags)
{
	map_raw(virt, bytes, pte_writable(pte) ? PROT_READ | PROT_WRITE : PROT_READ,
		MAP_SHARED | MAP_FIXED | flags, host_memory_fd, pte_pfn(pte) << PAGE_SHIFT);
}

/* Map what a leaf maps, or several leaves of neighbouring frames, from its first frame on. */
static void map_leaf(virt_t virt, u64 bytes, pte_t pte)
{
	phys_t phys = pte_pfn(pte) << PAGE_SHIFT;

	/* Beyond RAM there are only devices, and the hosted machine has none. */
	if (phys + bytes > host_memory_bytes)
		host_die("mapping of 0x%llx bytes at physical 0x%llx, beyond RAM", bytes, phys);
	if (is_plain(virt)) {
		memcpy((void *)virt, phys_to_virt(phys), bytes);
		return;
	}
	host_shadow_map(virt, bytes, phys);
	if (WINDOW_FLAGS && host_is_window(virt)) {
		const u64 faults = host_faults();

		map_memory(virt, bytes, pte, WINDOW_FLAGS);
		host_simulate_faulted(host_faults() - faults);
	} else {
		map_memory(virt, bytes, pte, 0);
	}
}

/*
 * Translation of the `i`-th 4 KiB page below an entry of `level`, as if that page had an entry of
 * its own; 0 if there is none.
 */
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
	       (!pte_present(a) ||
		(pte_pfn(a) == pte_pfn(b) && pte_writable(a) == pte_writable(b)));
}

/* Does this translation of a page follow `first`, that of the page `n` pages before it? */
static bool follows(pte_t first, unsigned n, pte_t pte)
{
	return pte_present(first) ? pte_present(pte) && pte_pfn(pte) == pte_pfn(first) + n &&
					    pte_writable(pte) == pte_writable(first)
				  : !pte_present(pte);
}

/* Replace the mappings that differ, page by page; neighbours that change alike in one call. */
static void change_pages(virt_t virt, enum pt_level level, pte_t old, pte_t value)
{
	const unsigned pages = level == PT_PAGE ? 1 : PTRS_PER_TABLE;

	for (unsigned i = 0, n; i < pages; i += n) {
		const pte_t first = page_below(value, level, i);

		for (n = 0; i + n < pages; n++) {
			const pte_t is = page_below(value, level, i + n);

			if (same_translation(page_below(old, level, i + n), is) ||
			    !follows(first, n, is))
				break;
		}
		if (n == 0)
			n = 1; /* stays */
		else if (pte_present(first))
			map_leaf(virt + i * PAGE_SIZE, n * PAGE_SIZE, first);
		else
			unmap(virt + i * PAGE_SIZE, n * PAGE_SIZE);
	}
}

/*
 * Map [virt, ...) as this entry says, including the tables below it. The caller has already
 * unmapped what was there before.
 */
static void make_real(virt_t virt, enum pt_level level, pte_t pte)
{
	if (!pte_present(pte))
		return;
	if (pte_is_leaf(pte, level)) {
		map_leaf(virt, pt_level_size(level), pte);
		return;
	}
	if (level == PT_PMD) {
		change_pages(virt, level, 0, pte);
		return;
	}
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++)
		make_real(virt + i * pt_level_size(level - 1), level - 1,
			  pte_load(table_at(pte_pfn(pte)) + i));
}

/*
 * Have the host back a block of struct pages, whose section is closed now, with one of its own huge
 * pages. Mapping the block again is then one entry of the host's page tables and not 512, under a
 * lock that the process has once. The first touch has been measured before. If the host has no huge
 * page the block stays as it is. MADV_COLLAPSE (Linux 6.1) takes no notice of shmem_enabled, which
 * is "never" on most hosts. Only the native build asks, because a call takes up to some ms.
 */
static void back_with_huge_page(pfn_t block)
{
#ifdef HOST_BACK_HUGE
	syscall(SYS_madvise, phys_to_virt(block << PAGE_SHIFT), pt_level_size(PT_PMD),
		MADV_COLLAPSE);
#else
#endif
}

/*
 * Replace the mappings page by page, and only where they differ. A leaf split into a table of the
 * same frames changes nothing.
 */
static void replace_real(virt_t virt, enum pt_level level, pte_t old, pte_t value)
{
	if (level == PT_PUD && !host_is_window(virt) && pte_present(old)) {
		/* no code looks in between: leaves whose permissions change are claimed */
		unmap(virt, pt_level_size(level));
		make_real(virt, level, value);
		return;
	}
	if (level >= PT_PUD) {
		/* Windows are never torn down at this level; new tables are only linked in. */
		if (pte_present(old))
			host_die("entry of level %d at 0x%llx replaced: not simulated", level,
				 virt);
		make_real(virt, level, value);
		return;
	}
	if (is_plain(virt) && pte_is_leaf(old, level) && pte_is_leaf(value, level) &&
	    pte_present(old) && pte_pfn(old) == pte_pfn(value))
		return; /* only other permissions for the same frame */
	if (pte_is_leaf(value, level)) {
		/* in one step, so that there is always a translation */
		map_leaf(virt, pt_level_size(level), value);
		return;
	}
	if (pte_is_leaf(old, level) && !pte_present(value)) {
		unmap(virt, pt_level_size(level));
		if (level == PT_PMD && host_is_window(virt))
			back_with_huge_page(pte_pfn(old));
		return;
	}
	change_pages(virt, level, old, value);
}

#ifndef HOST_FAST
/* Tell the watcher which frames a CPU may still reach although the tables no longer map them. */
static void watch(virt_t virt, enum pt_level level, pte_t old, pte_t value, const void *place)
{
	unsigned pages = level == PT_PAGE ? 1 : PTRS_PER_TABLE;
	struct watch_change change = {.place = place, .idle_is_safe = level == PT_PAGE};

	if (!pte_present(old) || level > PT_PMD)
		return;
	for (unsigned i = 0; i < pages; i++) {
		pte_t was = page_below(old, level, i), is = page_below(value, level, i);
		bool kept = pte_present(is) && pte_pfn(is) == pte_pfn(was) &&
			    (pte_writable(is) || !pte_writable(was));

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
	if (level == PT_PMD && pte_present(value) &&
	    pte_is_leaf(old, level) != pte_is_leaf(value, level))
		watch_size_changed(virt, place);
}
#endif

#ifndef HOST_FAST
/*
 * Huge mappings: a leaf of any size is remembered as one change, of its first frame, and a table
 * that is removed as another.
 */
static void watch_huge(virt_t virt, enum pt_level level, pte_t old, pte_t value, const void *place)
{
	struct watch_change change = {
		.virt = virt, .pfn = pte_pfn(old), .writable = pte_writable(old), .place = place};

	if (!pte_present(old) ||
	    (pte_present(value) && pte_pfn(value) == pte_pfn(old) && pte_writable(value)))
		return;
	change.is_table = !pte_is_leaf(old, level);
	change.idle_is_safe = !change.is_table;
	watch_changed(&change);
}
#endif

/*
 * Entries of programs are data, and no CPU of this process uses them. They are watched as if one
 * did.
 */
static void watch_program(const pte_t *entry, virt_t virt, enum pt_level level, pte_t old,
			  pte_t value, const void *place)
{
#ifdef HOST_FAST
	(void)entry, (void)virt, (void)level, (void)old, (void)value, (void)place;
#else
	if (virt < USER_END && !pte_claimed(old) && entry_is_live(entry, virt, level))
		watch_huge(virt, level, old, value, place);
#endif
}

/* Make the entry's new translation real, then tell the watcher what CPUs may still reach. */
static void change_real(virt_t virt, enum pt_level level, pte_t old, pte_t value, const void *place)
{
	replace_real(virt, level, old, value);
#ifdef HOST_FAST
#else
	if (host_is_window(virt))
		watch(virt, level, old, value, place);
	if (is_huge_map(virt))
		watch_huge(virt, level, old, value, place);
#endif
}

/*
 * Store an entry. The store ends a claim, so the change to a claimed entry is made real before the
 * store. Otherwise another thread could claim the entry and make its own change real first, and
 * this one would undo it.
 */
static void store_real(pte_t *entry, virt_t virt, enum pt_level level, pte_t old, pte_t value,
		       const void *place)
{
	if (!is_real(virt) || !entry_is_live(entry, virt, level)) {
		atomic_store_release(entry, value);
		watch_program(entry, virt, level, old, value, place);
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

void host_pte_store(pte_t *entry, virt_t virt, enum pt_level level, pte_t old, pte_t value)
{
	const struct host_pte pte = {entry, virt, (int)level, __builtin_return_address(0)};
	u64 began;

	host_point(HOST_PTE, entry);
	began = host_simulate_begin();
	host_pte_buffer(&pte, value);
	store_real(entry, virt, level, old, value, pte.place);
	host_simulate_end(began);
}

void host_pte_set(const struct host_pte *pte, u64 value)
{
	const u64 began = host_simulate_begin();

	store_real(pte->entry, pte->virt, (enum pt_level)pte->level, pte_load(pte->entry), value,
		   pte->place);
	host_simulate_end(began);
}

bool host_pte_outdates(const struct host_pte *pte, u64 value)
{
	const enum pt_level level = (enum pt_level)pte->level;
	const pte_t old = pte_load(pte->entry);
	const bool kept = pte_present(value) && pte_is_leaf(value, level) &&
			  pte_pfn(value) == pte_pfn(old) &&
			  (pte_writable(value) || !pte_writable(old));

	return level <= PT_PMD && pte_present(old) && pte_is_leaf(old, level) && !kept &&
	       is_real(pte->virt) && entry_is_live(pte->entry, pte->virt, level);
}

void host_map_stale(const struct host_pte *pte, u64 old)
{
	const u64 began = host_simulate_begin();

	map_leaf(pte->virt, pt_level_size((enum pt_level)pte->level), old);
	host_simulate_end(began);
}

/* The entry of its level may be gone, under a larger leaf or with its table. */
void host_map_current(const struct host_pte *pte)
{
	const u64 began = host_simulate_begin();
	const enum pt_level level = (enum pt_level)pte->level;
	pte_t is = pte_make(pgtable_root(), PT_PGD, PT_RW);

	for (int l = PT_PGD; l >= (int)level && pte_present(is); l--) {
		if (l < PT_PGD && pte_is_leaf(is, l + 1)) {
			is = pte_make(pte_pfn(is) + (pte->virt % pt_level_size(l + 1)) / PAGE_SIZE,
				      level, pte_writable(is) ? PT_RW : PT_RO);
			break;
		}
		is = pte_load(table_at(pte_pfn(is)) + pt_index(pte->virt, l));
	}
	unmap(pte->virt, pt_level_size(level));
	make_real(pte->virt, level, is);
	host_simulate_end(began);
}
