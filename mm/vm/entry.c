/* Entries and tables of a space: see entry.h. */
#include "mm/vm/entry.h"

#include <arch/atomic.h>
#include <arch/barrier.h>

#include "kernel/core/reason_set.h"
#include "kernel/core/wait.h"
#include "mm/memmap/page.h"
#include "mm/memmap/zone.h"
#include "mm/mm.h"
#include "mm/page/page_alloc.h"

u64 entries_waited, entry_tables_kept;

pte_t entry_wait_unclaimed(const pte_t *entry)
{
	struct wait wait = wait_begin(WAIT_TOUCH, "a huge page that another CPU clears");
	pte_t pte;

	atomic_add_relaxed(&entries_waited, 1);
	for (pte = pte_load(entry); pte_claimed(pte); pte = pte_load(entry))
		wait_spin(&wait, CPU_NONE);
	return pte;
}

struct page *entry_table_frame(unsigned request)
{
	if (fail_here(&mm_kernel.fail, FAIL_PTE))
		return reason_null(REASON_NO_MEMORY);
	return mm_page_alloc(&mm_kernel, 0, USE_UNMOVABLE, request, NODE_NONE);
}

bool entry_bring_table(const struct space *space, pte_t *entry, u64 addr, enum pt_level level)
{
	struct page *page = entry_table_frame(PAGE_ZERO);

	if (!page)
		return false;
	fence_store(); /* the table is zero before any entry points to it */
	if (!entry_put(entry, ALIGN_DOWN(addr, pt_level_size(level)), level,
		       entry_make_table(space, page_pfn(page))))
		page_free(page);
	else if (level == PT_PGD && !space->user)
		atomic_add_relaxed(&entry_tables_kept, 1);
	return true;
}
