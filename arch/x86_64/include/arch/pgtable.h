/*
 * Page-table entries: four levels of 512 entries, one format (Intel SDM vol. 3A, 4.5).
 *
 * Choices:
 * - All kernel mappings are global. Those of a program (ring 3, <arch/user.h>) are not.
 * - Accessed and dirty are preset so that no walk writes, except that dirty is clear in read-only
 *   entries (W=0, D=1 would mean shadow stack).
 * - Everything of the kernel but the image's text is no-execute.
 * - Every entry on the way to a program's page has the user bit. The page's own entry lacks it if
 *   the program has no right to the page at all, which thus stays in place.
 */
#pragma once

#include <arch/atomic.h>
#include <arch/memory.h>

#include "kernel/lib/types.h"

typedef u64 pte_t; /* an entry of any level */

/* The level of an entry decides how much it maps: 4 KiB, 2 MiB, 1 GiB or 512 GiB. */
enum pt_level { PT_PAGE = 0, PT_PMD = 1, PT_PUD = 2, PT_PGD = 3 };
enum { PTRS_PER_TABLE = 512, PTES_PER_LINE = 8 };

enum pt_prot { PT_RO, PT_RW, PT_RX, PT_UNCACHED, PT_WRITE_COMBINING };

#define PTE_PRESENT  (1ULL << 0)
#define PTE_WRITE    (1ULL << 1)
#define PTE_USER     (1ULL << 2)
#define PTE_PWT      (1ULL << 3)
#define PTE_PCD      (1ULL << 4)
#define PTE_ACCESSED (1ULL << 5)
#define PTE_DIRTY    (1ULL << 6)
#define PTE_LARGE    (1ULL << 7)
#define PTE_GLOBAL   (1ULL << 8)
#define PTE_NX       (1ULL << 63)
/* for the kernel's use: the processor ignores bits 9 to 11, present or not */
#define PTE_CLAIMED (1ULL << 9)
/* in entries of a space (mm/vm/pages.h): a piece of a large page; a page of a file; a page of a
   pool that was promised to its area (bits 52 to 58 are ignored, too) */
#define PTE_PIECE    (1ULL << 10)
#define PTE_FILE     (1ULL << 11)
#define PTE_PROMISED (1ULL << 52)
#define PTE_PFN_MASK 0x000ffffffffff000ULL

static inline u64 pt_prot_bits(enum pt_prot prot)
{
	const u64 base = PTE_PRESENT | PTE_ACCESSED | PTE_GLOBAL;

	switch (prot) {
	case PT_RO:
		return base | PTE_NX;
	case PT_RX:
		return base;
	case PT_UNCACHED:
		return base | PTE_WRITE | PTE_DIRTY | PTE_NX | PTE_PCD | PTE_PWT;
	case PT_WRITE_COMBINING: /* PAT entry 1 is set to WC: arch/x86_64/cpu/cpu.c */
		return base | PTE_WRITE | PTE_DIRTY | PTE_NX | PTE_PWT;
	case PT_RW:
		break;
	}
	return base | PTE_WRITE | PTE_DIRTY | PTE_NX;
}

/*
 * An entry that maps memory: a 4 KiB page at PT_PAGE, a large page above. `pfn` must be aligned to
 * the page's size.
 */
static inline pte_t pte_make(pfn_t pfn, enum pt_level level, enum pt_prot prot)
{
	return pfn << PAGE_SHIFT | pt_prot_bits(prot) | (level == PT_PAGE ? 0 : PTE_LARGE);
}

/* An entry that points to the next table. */
static inline pte_t pte_make_table(pfn_t pfn)
{
	return pfn << PAGE_SHIFT | PTE_PRESENT | PTE_WRITE | PTE_ACCESSED | PTE_DIRTY;
}

/* The rights of a program to a page, with the values of PROT_READ, PROT_WRITE and PROT_EXEC. */
enum user_rights { USER_RIGHT_READ = 1, USER_RIGHT_WRITE = 2, USER_RIGHT_EXEC = 4 };

/*
 * An entry that maps memory of a program with these rights (bits of enum user_rights). The format
 * cannot refuse reads alone, so any right includes USER_RIGHT_READ. With no rights the entry is
 * present, and ring 3 faults on each access. `pfn` is aligned as for pte_make().
 */
static inline pte_t pte_make_user(pfn_t pfn, enum pt_level level, unsigned rights)
{
	pte_t pte = pfn << PAGE_SHIFT | PTE_PRESENT | PTE_ACCESSED;

	if (rights & (USER_RIGHT_READ | USER_RIGHT_WRITE | USER_RIGHT_EXEC))
		pte |= PTE_USER;
	if (rights & USER_RIGHT_WRITE)
		pte |= PTE_WRITE | PTE_DIRTY;
	if (!(rights & USER_RIGHT_EXEC))
		pte |= PTE_NX;
	return pte | (level == PT_PAGE ? 0 : PTE_LARGE);
}

/* An entry that points to the next table, on the way to pages of a program. */
static inline pte_t pte_make_table_user(pfn_t pfn)
{
	return pte_make_table(pfn) | PTE_USER;
}

static inline bool pte_present(pte_t pte)
{
	return pte & PTE_PRESENT;
}

/* May ring 3 use this entry, as far as the entry itself decides it? */
static inline bool pte_user(pte_t pte)
{
	return (pte & (PTE_PRESENT | PTE_USER)) == (PTE_PRESENT | PTE_USER);
}

/* The rights (enum user_rights) that a leaf gives to ring 3; 0 if it gives none. */
static inline unsigned pte_rights(pte_t pte)
{
	if (!pte_user(pte))
		return 0;
	return USER_RIGHT_READ | (pte & PTE_WRITE ? USER_RIGHT_WRITE : 0) |
	       (pte & PTE_NX ? 0 : USER_RIGHT_EXEC);
}

static inline bool pte_writable(pte_t pte)
{
	return (pte & (PTE_PRESENT | PTE_WRITE)) == (PTE_PRESENT | PTE_WRITE);
}

static inline bool pte_dirty(pte_t pte)
{
	return pte & PTE_DIRTY;
}

static inline bool pte_executable(pte_t pte)
{
	return (pte & (PTE_PRESENT | PTE_NX)) == PTE_PRESENT;
}

/* The entry maps a device, where even a read may have an effect. */
static inline bool pte_uncached(pte_t pte)
{
	return pte_present(pte) && (pte & PTE_PCD);
}

/*
 * Addresses have 48 bits, sign-extended (Intel SDM vol. 1, 3.3.7.1). Any other address cannot be
 * walked and faults when it is used.
 */
static inline bool virt_is_canonical(virt_t virt)
{
	return (virt_t)((s64)(virt << 16) >> 16) == virt;
}

/* True if an entry of `level` maps memory itself instead of pointing to a table. */
static inline bool pte_is_leaf(pte_t pte, enum pt_level level)
{
	return pte_present(pte) && (level == PT_PAGE || (pte & PTE_LARGE));
}

/* True if an entry above PT_PAGE points to a table and nobody claims it. */
static inline bool pte_is_table(pte_t pte)
{
	return (pte & (PTE_PRESENT | PTE_CLAIMED | PTE_LARGE)) == PTE_PRESENT;
}

static inline pfn_t pte_pfn(pte_t pte)
{
	return (pte & PTE_PFN_MASK) >> PAGE_SHIFT;
}

/* The table that an entry points to, in the direct map. */
static inline pte_t *pte_table(pte_t pte)
{
	return phys_to_virt(pte_pfn(pte) << PAGE_SHIFT);
}

static inline u64 pt_level_size(enum pt_level level)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): a table has a level */
	return PAGE_SIZE << (9 * level);
}

static inline unsigned pt_index(virt_t virt, enum pt_level level)
{
	return (virt >> (PAGE_SHIFT + 9 * level)) % PTRS_PER_TABLE;
}

/*
 * Read and write entries. A store is one 8-byte write; the caller is responsible for ordering and
 * flushing. `virt` is the first address that the entry translates; the hosted arch needs it, the
 * hardware does not.
 */
static inline pte_t pte_load(const pte_t *entry)
{
	return atomic_load_relaxed(entry);
}

static inline void pte_store(pte_t *entry, virt_t virt, enum pt_level level, pte_t value)
{
	atomic_store_relaxed(entry, value);
}

/*
 * Claim an entry. Of several CPUs that read it as `old`, one succeeds and may change the entry; its
 * pte_store() ends the claim. The translation is unchanged while the claim lasts.
 */
static inline bool pte_claimed(pte_t pte)
{
	return pte & PTE_CLAIMED;
}

static inline bool pte_claim(pte_t *entry, pte_t old)
{
	return !pte_claimed(old) && atomic_cas(entry, old, old | PTE_CLAIMED);
}

/* Root table of the kernel's address space, as a physical frame number. */
pfn_t pgtable_root(void);
