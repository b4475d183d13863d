/*
 * Page-table entries, hosted. The format is the real one and entries are ordinary data; only the
 * store differs. In the checked backend it also makes the mapping real (tests/host/pages.c) and
 * tells the watcher (tests/host/check.c). In the fast one it copies the frame to the address where
 * it is mapped. Loads acquire and stores release, as every access does on x86.
 *
 * Entries for addresses of programs (below USER_END, <arch/user.h>) are data only. Such addresses
 * belong to the process itself, and no code follows them.
 */
#pragma once

#include <arch/memory.h>

#define pte_load  x86_pte_load
#define pte_store x86_pte_store
#include "arch/x86_64/include/arch/pgtable.h"
#undef pte_load
#undef pte_store

static inline pte_t pte_load(const pte_t *entry)
{
	return atomic_load_acquire(entry);
}

void host_pte_store(pte_t *entry, virt_t virt, enum pt_level level, pte_t old, pte_t value);

static inline void pte_store(pte_t *entry, virt_t virt, enum pt_level level, pte_t value)
{
	/*
	 * The entry is read here and not in the backend, so that a profile by functions gives the
	 * miss of its cache line to the code that stores.
	 */
	host_pte_store(entry, virt, level, pte_load(entry), value);
}
