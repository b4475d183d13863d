/*
 * Monitor commands for huge mappings and contiguous ranges: map, map unmap, page contig.
 *
 * `map` populates what it maps, which merely reports that there is no page; a touch without a page
 * would end the program.
 */
#include <arch/clock.h>

#include "kernel/console/command.h"
#include "kernel/core/printk.h"
#include "kernel/core/reason.h"
#include "mm/debug/search.h"
#include "mm/memmap/page.h"
#include "mm/mm.h"

enum { MAPS_MAX = 8 };

static void *maps[MAPS_MAX];
static unsigned maps_count;

static int show_maps(void)
{
	struct huge_usage usage;

	huge_usage(&usage);
	print("  pages mapped: %llu of 4K, %llu of 2M, %llu of 1G; faults: %llu, %llu, %llu\n",
	      usage.mapped[0], usage.mapped[1], usage.mapped[2], usage.faults[0], usage.faults[1],
	      usage.faults[2]);
	return 0;
}

static int map_memory(u64 size, u64 page, unsigned flags)
{
	u64 ns = clock_ns();
	void *start = huge_map(size, page, flags | HUGE_POPULATE);

	ns = clock_ns() - ns;
	if (!start) {
		print("map: failed: %s\n", reason_text(last_reason()));
		return -ENOMEM;
	}
	maps[maps_count++] = start;
	print("  mapped at 0x%llx: %llu pages of %llu KiB are there and zero, after %llu us\n",
	      (virt_t)start, DIV_ROUND_UP(size, page), page >> 10, ns / NS_PER_US);
	return 0;
}

static int cmd_map(const struct words *words)
{
	static const u64 sizes[] = {KIB(4), MIB(2), GIB(1)};
	const unsigned plain = words_plain_count(words);
	int err, page = 1;
	u64 size;

	if (plain == 1)
		return show_maps();
	err = cmd_u64(words, 1, "SIZE", 1, TIB(1), &size);
	if (!err && plain > 2)
		err = page = cmd_choice(words, 2, "page size", "4K|2M|1G");
	if (err >= 0 && plain > 3)
		err = cmd_choice(words, 3, "source", "pool");
	if (err < 0)
		return err;
	if (maps_count == MAPS_MAX) {
		print("map: refused: the monitor keeps at most %u mappings; map unmap ends them\n",
		      MAPS_MAX);
		return -ENOSPC;
	}
	return map_memory(size, sizes[page], plain > 3 ? HUGE_POOL : 0);
}

static int cmd_unmap(const struct words *words)
{
	print("  %u mappings given back\n", maps_count);
	while (maps_count > 0)
		huge_unmap(maps[--maps_count]);
	return 0;
}

COMMAND(map, .usage = "[SIZE [4K|2M|1G [pool]]]",
	.help = "map memory and touch all of it, from the pool only or from anywhere; without a "
		"word, count pages",
	.max = 3, .run = cmd_map, .choices = {NULL, "4K|2M|1G", "pool"});
COMMAND(map unmap, .help = "give all mappings back, each in one flush round", .run = cmd_unmap);

/* ---- contiguous ranges ---- */

/* The range is made and given back at once; the command shows the search for it. */
static int cmd_contig(const struct words *words)
{
	u64 order, node = NODE_NONE;
	struct search_seen before;
	struct page *page;
	pfn_t pfn;
	int err = cmd_u64(words, 1, "ORDER", 0, MAX_ORDER, &order);

	if (!err)
		err = cmd_key_u64(words, "node", 0, mm_kernel.nodes - 1, &node);
	if (err)
		return err;
	before = search_begin();
	page = contig_alloc((unsigned)order, (node_t)node);
	search_print(&before);
	if (!page) {
		print("  found no range of 2^%llu frames: too many pages cannot be moved, or too "
		      "little memory\n",
		      order);
		if (order == GIGA_ORDER)
			search_explain((node_t)node);
		return -ENOMEM;
	}
	pfn = page_to_pfn(page);
	print("  frames 0x%llx to 0x%llx, given back again\n", pfn,
	      pfn + order_pages((unsigned)order));
	if (order > BLOCK_ORDER && order < GIGA_ORDER)
		contig_free_range(pfn, order_pages((unsigned)order));
	else
		page_free(page);
	return 0;
}

COMMAND(page contig, .usage = "ORDER [node=N]",
	.help = "make room for 2^ORDER frames in one piece, with the search of contig=, and give "
		"them back",
	.min = 1, .max = 1, .keys = "node", .run = cmd_contig);
