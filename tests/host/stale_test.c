/*
 * Page-table stores in the store buffer. A CPU takes a page away and tags it, while another starts
 * a round by itself. The round covers the tag only if it began after the entry was cleared for all:
 *
 *	CPU 0                                  CPU 1
 *	clear the entry    (buffered)
 *	[fence of shootdown_tag()]             G = 1, flush: may read the entry as it was
 *	tag = G + 1        (1 or 2)            done = 1
 *	done >= tag? the frame is used again
 *
 * Without the fence the tag is 1 although CPU 1 may still use the page, and the watcher of stale
 * translations (check.c) ends the machine. The explorer of schedules (explore/) finds this.
 */
#include <arch/check.h>
#include <arch/user.h>

#include "mm/map/pgtable.h"
#include "mm/mm.h"
#include "tests/kernel/test.h"

#define VIRT (USER_END / 2)

enum { TABLES = 3 };

static struct {
	struct page *table[TABLES], *page;
	u32 tables;
	pte_t *entry;
} mapped;

static pfn_t next_table(void *unused)
{
	return page_pfn(mapped.table[mapped.tables++]);
}

static struct page *zeroed_page(void)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);

	if (page)
		memset(page_address(page), 0, PAGE_SIZE);
	return page;
}

static bool map_one_page(void)
{
	mapped.tables = 0;
	for (u32 i = 0; i < TABLES; i++)
		if (!(mapped.table[i] = zeroed_page()))
			return false;
	mapped.page = zeroed_page();
	mapped.entry = pgtable_entry(pgtable_root(), VIRT, PT_PAGE, next_table, NULL);
	if (!mapped.page || !mapped.entry || mapped.tables != TABLES)
		return false;
	pte_store(mapped.entry, VIRT, PT_PAGE,
		  pte_make_user(page_pfn(mapped.page), PT_PAGE, USER_RIGHT_READ));
	return true;
}

static void unmap_tables(void)
{
	pte_t *top = pgtable_entry(pgtable_root(), VIRT, PT_PGD, NULL, NULL);

	pte_store(top, VIRT, PT_PGD, 0);
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	for (u32 i = 0; i < TABLES; i++)
		page_free(mapped.table[i]);
	page_free(mapped.page);
}

static void take_away_or_flush(void *unused)
{
	if (cpu_id() == 1)
		shootdown_full(SHOOTDOWN_ALL_CPUS);
	if (cpu_id() == 0) {
		pte_store(mapped.entry, VIRT, PT_PAGE, 0);
		shootdown_wait(shootdown_tag());
		check_frames_reused(page_pfn(mapped.page), 1);
	}
}

TEST(host_stale, a_frame_is_used_again_after_flushes_that_saw_its_entry_cleared)
{
	REQUIRE(map_one_page());
	cpus_run_together(take_away_or_flush, NULL);
	unmap_tables();
}
