/* Counts of pages: see pages_count.h. */
#include "mm/vm/pages_count.h"

#include <arch/atomic.h>

#include "mm/vm/space.h"

/* Only the CPU itself writes its counts. */
void pages_count_leaves(const struct space *space, enum pt_level level, u64 more)
{
	u64 *leaves = &space_here(space)->leaves[level];

	atomic_store_relaxed(leaves, *leaves + more);
}

void pages_count(const struct space *space, struct pages_count *count)
{
	*count = (struct pages_count){.leaves = {0}};
	for (cpu_t cpu = 0; cpu < cpu_count; cpu++)
		for (unsigned i = 0; i < ARRAY_LEN(count->leaves); i++)
			count->leaves[i] += atomic_load_relaxed(&space->cpu[cpu].leaves[i]);
}

static u64 bytes_of(const u64 leaves[3])
{
	return leaves[PT_PAGE] * PAGE_SIZE + leaves[PT_PMD] * MIB(2) + leaves[PT_PUD] * GIB(1);
}

u64 pages_resident(const struct space *space)
{
	struct pages_count count;

	pages_count(space, &count);
	return bytes_of(count.leaves);
}

/* Two CPUs that note at once may lose one of the values, which differ little. */
void pages_resident_note(struct space *space)
{
	const u64 bytes = pages_resident(space);

	if (bytes > atomic_load_relaxed(&space->resident_most))
		atomic_store_relaxed(&space->resident_most, bytes);
}

u64 pages_resident_most(struct space *space)
{
	pages_resident_note(space);
	return atomic_load_relaxed(&space->resident_most);
}
