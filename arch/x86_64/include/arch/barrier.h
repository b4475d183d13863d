/*
 * Fences. On x86 stores are not reordered with stores, nor loads with loads (Intel SDM vol. 3A, 9.2
 * "Memory ordering"). The one reordering that takes an instruction to prevent is that of a store
 * with a later load; fence_full() prevents it.
 */
#pragma once

static inline void fence_compiler(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Every earlier store is visible before any later load executes. */
static inline void fence_full(void)
{
	__asm__ volatile("lock; addl $0, -4(%%rsp)" ::: "memory", "cc");
}

/*
 * Make earlier stores visible before later ones, for example a page table's content before the
 * entry that points to the table.
 */
static inline void fence_store(void)
{
	fence_compiler();
}

/* Drain non-temporal stores before later ones. */
static inline void fence_store_nt(void)
{
	__asm__ volatile("sfence" ::: "memory");
}

static inline void cpu_relax(void)
{
	__asm__ volatile("pause" ::: "memory");
}
