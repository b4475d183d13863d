/* The machine's own struct mm, and the sums of the per-CPU counts of an mm: see zone.h, enter.h. */
#include "mm/memmap/zone.h"

#include "mm/memmap/enter.h"

struct mm mm_kernel;

u64 mm_counted(const struct mm *mm, unsigned which)
{
	u64 sum = 0;

	for (cpu_t cpu = 0; cpu < cpu_count; cpu++)
		sum += atomic_load_relaxed(&mm->pcp[cpu]->counts->count[which]);
	return sum;
}

u64 node_ram(const struct node *node)
{
	u64 ram = 0;

	for (unsigned kind = 0; kind < ZONE_KINDS; kind++)
		if (node_zone(node, kind))
			ram += node_zone(node, kind)->ram;
	return ram;
}
