/*
 * Fences. On x86 stores are not reordered with stores nor loads with loads (Intel SDM vol. 3A, 9.2 "Memory ordering");
 * the one reordering that needs an instruction is a store followed by a load: fence_full().
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

/* Earlier stores are visible before later ones: a page table's content before the entry that points to it. */
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
