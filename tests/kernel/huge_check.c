/*
 * Checks of huge mappings: see huge_check.h. Only one case runs at a time, so there is
 * only one state.
 */
#include "tests/kernel/huge_check.h"

#include "tests/kernel/mm_test.h"
#include "tests/kernel/space_look.h"

static struct huge_usage before;
static u64 rounds_before;

void huge_count_from_here(void)
{
	huge_usage(&before);
	rounds_before = rounds_so_far();
}

u64 huge_faults(enum pt_level level)
{
	struct huge_usage now;

	huge_usage(&now);
	return now.faults[level] - before.faults[level];
}

u64 huge_mapped(enum pt_level level)
{
	struct huge_usage now;

	huge_usage(&now);
	return now.mapped[level] - before.mapped[level];
}

u64 huge_rounds(void)
{
	const u64 then = rounds_before;

	rounds_before = rounds_so_far();
	return rounds_before - then;
}

u64 dirty_words(void *addr, u64 offset, u64 bytes)
{
	u64 dirty = 0;

	for (u64 at = 0; at < bytes; at += sizeof(u64))
		dirty += *word_at(addr, offset + at) != 0;
	return dirty;
}

bool huge_leaf(const void *addr, enum pt_level *level)
{
	phys_t phys;
	pte_t pte;

	return pgtable_translate(pgtable_root(), (virt_t)addr, &phys, &pte, level);
}

bool huge_writable(const void *addr)
{
	return pte_writable(space_leaf(&huge_space, (virt_t)addr));
}
