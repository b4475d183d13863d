/*
 * Monitor commands for huge mappings and contiguous ranges: map, touch, unmap, contig.
 *
 * `touch` calls huge_populate(), which merely reports that there is no page; a real touch without a
 * page would end the program. Only mappings made here can be touched and unmapped.
 */
#include <arch/clock.h>

#include "kernel/console/command.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "mm/contig/contig.h"
#include "mm/contig/contig_search.h"
#include "mm/memmap/page.h"
#include "mm/mm.h"

enum { MAPS_MAX = 8 };

static struct mapping {
	char *start; /* NULL: the slot is free */
	u64 size, page;
} maps[MAPS_MAX];

static struct mapping *mapping_of(u64 addr)
{
	for (unsigned i = 0; i < MAPS_MAX; i++)
		if (maps[i].start && addr - (virt_t)maps[i].start < maps[i].size)
			return &maps[i];
	return NULL;
}

static int show_maps(void)
{
	struct huge_usage usage;

	huge_usage(&usage);
	print("  pages mapped: %llu of 4K, %llu of 2M, %llu of 1G; faults: %llu, %llu, %llu\n",
	      usage.mapped[0], usage.mapped[1], usage.mapped[2], usage.faults[0], usage.faults[1],
	      usage.faults[2]);
	for (unsigned i = 0; i < MAPS_MAX; i++)
		if (maps[i].start)
			print("  0x%llx: %llu MiB in pages of %llu KiB\n", (virt_t)maps[i].start,
			      maps[i].size >> 20, maps[i].page >> 10);
	return 0;
}

/* Flags are the plain words from the third on. */
static const char flag_names[] = "pool|reserve|fallback|low";
static const unsigned flag_bits[] = {HUGE_POOL, HUGE_RESERVE, HUGE_FALLBACK, HUGE_LOW};

static int flags_of(const struct words *words, unsigned *flags)
{
	*flags = 0;
	for (unsigned i = 3; words_plain(words, i); i++) {
		const int flag = cmd_choice(words, i, "flag", flag_names);

		if (flag < 0)
			return flag;
		*flags |= flag_bits[flag];
	}
	return 0;
}

static int cmd_map(const struct words *words)
{
	struct mapping *slot = maps;
	u64 size, page = MIB(2), node = NODE_NONE;
	unsigned flags = 0;
	int err;

	if (words_plain_count(words) == 1)
		return show_maps();
	err = cmd_u64(words, 1, "SIZE", 1, TIB(1), &size);
	if (!err && words_plain_count(words) > 2)
		err = cmd_u64(words, 2, "PAGE", PAGE_SIZE, GIB(1), &page);
	if (!err)
		err = flags_of(words, &flags);
	if (!err)
		err = cmd_key_u64(words, "node", 0, mm_kernel.nodes - 1, &node);
	if (err)
		return err;
	if (page != KIB(4) && page != MIB(2) && page != GIB(1))
		return cmd_error(words, "\"%s\" is no page size (expected 4K, 2M or 1G)",
				 words_plain(words, 2));
	while (slot < maps + MAPS_MAX && slot->start)
		slot++;
	if (slot == maps + MAPS_MAX) {
		print("map: refused: the monitor keeps at most %u mappings; unmap one first\n",
		      MAPS_MAX);
		return -ENOSPC;
	}
	size = ALIGN_UP(size, page);
	if (node != NODE_NONE)
		flags |= HUGE_BIND;
	*slot = (struct mapping){
		.start = huge_map_with(&(struct huge_request){
			.size = size, .page = page, .flags = flags, .node = (node_t)node}),
		.size = size,
		.page = page};
	if (!slot->start) {
		print("map: failed: no free addresses, no memory, or too few pages to promise\n");
		return -ENOMEM;
	}
	print("  mapped at 0x%llx; its pages appear when they are touched\n", (virt_t)slot->start);
	return 0;
}

static int not_ours(const struct words *words, const char *verb)
{
	print("%s: refused: no mapping of the monitor %s %s; map lists them\n", words->word[0],
	      verb, words_plain(words, 1));
	return -EPERM;
}

static int cmd_touch(const struct words *words)
{
	const struct mapping *map;
	u64 addr, bytes = 0, start;
	int err = cmd_u64(words, 1, "ADDRESS", 0, ~0ULL, &addr);

	if (!err && words_plain_count(words) > 2)
		err = cmd_u64(words, 2, "BYTES", 1, TIB(1), &bytes);
	if (err)
		return err;
	map = mapping_of(addr);
	if (!map)
		return not_ours(words, "contains");
	addr = ALIGN_DOWN(addr, map->page);
	bytes = MIN(ALIGN_UP(MAX(bytes, 1), map->page), (virt_t)map->start + map->size - addr);
	start = clock_ns();
	err = huge_populate((void *)(virt_t)addr, bytes);
	start = clock_ns() - start;
	if (err) {
		print("touch: no page is left; the pages touched until then stay\n");
		return err;
	}
	print("  %llu pages of %llu KiB are there and zero, after %llu us\n", bytes / map->page,
	      map->page >> 10, start / NS_PER_US);
	return 0;
}

static void unmap_all(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MAPS_MAX; i++) {
		if (!maps[i].start)
			continue;
		huge_unmap(maps[i].start);
		maps[i].start = NULL;
		n++;
	}
	print("  %u mappings given back\n", n);
}

static int cmd_unmap(const struct words *words)
{
	struct mapping *map;
	u64 addr;
	int err;

	if (choice_index("all", words_plain(words, 1)) == 0) {
		unmap_all();
		return 0;
	}
	err = cmd_u64(words, 1, "ADDRESS", 0, ~0ULL, &addr);
	if (err)
		return err;
	map = mapping_of(addr);
	if (!map || (virt_t)map->start != addr)
		return not_ours(words, "begins at");
	huge_unmap(map->start);
	map->start = NULL;
	return 0;
}

static bool map_candidate(const struct words *words, unsigned at, unsigned n, char *buf,
			  size_t size)
{
	(void)words;
	return (at == 2 && choice_name("4K|2M|1G", n, buf, size)) ||
	       (at > 2 && choice_name(flag_names, n, buf, size));
}

/* Offer the existing mappings where an address is expected. */
static bool address_candidate(const struct words *words, unsigned at, unsigned n, char *buf,
			      size_t size)
{
	(void)words;
	for (unsigned i = 0; i < MAPS_MAX && at == 1; i++) {
		if (!maps[i].start || n-- > 0)
			continue;
		format(buf, size, "0x%llx", (virt_t)maps[i].start);
		return true;
	}
	return false;
}

COMMAND(map, .usage = "[SIZE [4K|2M|1G [pool] [reserve] [fallback] [low]]] [node=N]",
	.help = "map memory whose pages appear when they are touched; without a word, list the "
		"mappings",
	.more = "  pool: take pages from the pool only; reserve: promise them now;\n"
		"  fallback: use smaller pages where none of this size is free;\n"
		"  low: in the lower half of the addresses, where programs have theirs;\n"
		"  node=N: pages of this node only.\n",
	.keys = "node", .max = 6, .run = cmd_map, .candidate = map_candidate);
COMMAND(map touch, .usage = "ADDRESS [BYTES]",
	.help = "bring in the pages of a mapping now, from ADDRESS on", .min = 1, .max = 2,
	.run = cmd_touch, .candidate = address_candidate);
COMMAND(map unmap, .usage = "ADDRESS | all", .help = "give a mapping back, in one flush round",
	.min = 1, .max = 1, .run = cmd_unmap, .candidate = address_candidate);

/* ---- contiguous ranges ---- */

static void print_search(const struct contig_stats *before, u64 ns)
{
	print("  search %s: %llu struct pages read, %llu ranges tried, %llu us\n",
	      contig_search_selected()->name, contig_totals.scanned - before->scanned,
	      contig_totals.candidates - before->candidates, ns / NS_PER_US);
}

/* The range is made and given back at once; the command shows the search for it. */
static int cmd_contig(const struct words *words)
{
	const struct contig_stats before = contig_totals;
	u64 order, node = NODE_NONE, start;
	struct page *page;
	pfn_t pfn;
	int err = cmd_u64(words, 1, "ORDER", 0, MAX_ORDER, &order);

	if (!err)
		err = cmd_key_u64(words, "node", 0, mm_kernel.nodes - 1, &node);
	if (err)
		return err;
	start = clock_ns();
	page = contig_alloc((unsigned)order, (node_t)node);
	start = clock_ns() - start;
	print_search(&before, start);
	if (!page) {
		print("  found no range of 2^%llu frames: too many pages cannot be moved, or too "
		      "little memory\n",
		      order);
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
