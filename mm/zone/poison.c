/* Writing and checking the poison pattern: see poison.h. */
#include "mm/zone/poison.h"

#include <arch/check.h>

void poison_fill(pfn_t pfn, u64 frames)
{
	u64 *word = phys_to_virt(pfn << PAGE_SHIFT);

	for (u64 i = 0; i < frames * PAGE_SIZE / sizeof(*word); i++)
		word[i] = PAGE_POISON;
}

CHECK_READS_ANYTHING
const u64 *poison_broken(pfn_t pfn, u64 frames)
{
	const u64 *word = phys_to_virt(pfn << PAGE_SHIFT);

	for (u64 i = 0; i < frames * PAGE_SIZE / sizeof(*word); i++)
		if (word[i] != PAGE_POISON)
			return &word[i];
	return NULL;
}

void poison_forget(struct mm *mm, u32 index, u32 blocks)
{
	for (u32 i = 0; (atomic_load_relaxed(&mm->watch) & WATCH_POISON) && i < blocks; i++)
		block_clear_flags(block_at(mm, index + i), BLOCK_POISONED);
}
