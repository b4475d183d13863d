/*
 * Translations that CPUs keep. At each page-table store that takes a 4 KiB or 2 MiB leaf away, or
 * changes it, a choice decides for each other CPU whether it has the old translation in its TLB.
 * Once the store is final, that CPU runs with the old page mapped, until it flushes:
 *
 *	CPU 0                             CPU 1, as mapped while it runs
 *	entry = A                         A
 *	entry = B, CPU 1 keeps A          A    what CPU 1 stores there goes to A
 *	entry = C                         A
 *	                                  flush: C
 *
 * So a missing round shows in what CPUs read and write, even if no frame is given back, which is
 * all that the watcher (check.c) looks at. A CPU keeps at most KEPT_MAX translations. It drops one
 * when it flushes or stores that entry itself.
 *
 * Source: Intel SDM vol. 3A, 4.10.4 (invalidation of TLBs).
 */
#include <arch/pgtable.h>

#include "tests/host/explore/explore.h"

enum { KEPT_MAX = 16 };

static struct kept {
	struct host_pte pte;
	u64 old;
} kept[EXPLORE_CPUS_MAX][KEPT_MAX]; /* of each CPU, disjoint */
static u32 kept_count[EXPLORE_CPUS_MAX];

/* The latest translation that the CPU keeps and that overlaps these addresses, or NULL. */
static struct kept *overlapping(cpu_t cpu, virt_t at, u64 bytes)
{
	for (u32 i = kept_count[cpu]; i-- > 0;) {
		struct kept *k = &kept[cpu][i];

		if (k->pte.virt - at < bytes || at - k->pte.virt < pt_level_size(k->pte.level))
			return k;
	}
	return NULL;
}

u64 stale_choose(const struct host_pte *pte, u64 value)
{
	const u64 all = (1ULL << host_config.cpus) - 1;

	return host_pte_outdates(pte, value) ? choose_stale(all & ~(1ULL << explore_here)) : 0;
}

void stale_keep(u64 keepers, const struct host_pte *pte, u64 old)
{
	for (; keepers; keepers &= keepers - 1) {
		const cpu_t cpu = (cpu_t)__builtin_ctzll(keepers);

		if (cpu != explore_here && kept_count[cpu] < KEPT_MAX &&
		    !overlapping(cpu, pte->virt, pt_level_size(pte->level)))
			kept[cpu][kept_count[cpu]++] = (struct kept){*pte, old};
	}
}

void stale_show(bool shown)
{
	for (u32 i = 0; i < kept_count[explore_here]; i++) {
		const struct kept *k = &kept[explore_here][i];

		if (shown)
			host_map_stale(&k->pte, k->old);
		else
			host_map_current(&k->pte);
	}
}

void stale_drop(virt_t at, u64 bytes)
{
	struct kept *k;

	while ((k = overlapping(explore_here, at, bytes))) {
		host_map_current(&k->pte);
		*k = kept[explore_here][--kept_count[explore_here]];
	}
}

void *stale_alias(void *addr)
{
	const struct kept *k = overlapping(explore_here, (virt_t)addr, 1);

	if (!k)
		return host_alias(addr);
	return phys_to_virt((pte_pfn(k->old) << PAGE_SHIFT) + (virt_t)addr - k->pte.virt);
}
