/* Counts of pages: see pages_count.h. */
#include "kernel/program/pages_count.h"

#include <arch/atomic.h>

#include "kernel/core/percpu.h"
#include "kernel/program/thread.h"

static u64 resident_most;

/* Only the CPU itself writes its counts. */
void pages_count_leaves(enum pt_level level, u64 more)
{
	u64 *leaves = &thread_current()->leaves[level];

	atomic_store_relaxed(leaves, *leaves + more);
}

void pages_count(struct pages_count *count)
{
	*count = (struct pages_count){.leaves = {0}};
	for (cpu_t cpu = 0; cpu < cpu_count; cpu++) {
		const struct thread *thread = thread_on(cpu);

		for (unsigned i = 0; thread && i < ARRAY_LEN(count->leaves); i++)
			count->leaves[i] += atomic_load_relaxed(&thread->leaves[i]);
	}
}

static u64 bytes_of(const u64 leaves[3])
{
	return leaves[PT_PAGE] * PAGE_SIZE + leaves[PT_PMD] * MIB(2) + leaves[PT_PUD] * GIB(1);
}

u64 pages_resident(void)
{
	struct pages_count count;

	pages_count(&count);
	return bytes_of(count.leaves);
}

/* Two CPUs that note at once may lose one of the values, which differ little. */
void pages_resident_note(void)
{
	const u64 bytes = pages_resident();

	if (bytes > atomic_load_relaxed(&resident_most))
		atomic_store_relaxed(&resident_most, bytes);
}

u64 pages_resident_most(void)
{
	pages_resident_note();
	return atomic_load_relaxed(&resident_most);
}

void pages_count_begin(void)
{
	resident_most = 0;
}
