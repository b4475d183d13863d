/* The report of a search: see search.h. */
#include "mm/debug/search.h"

#include <arch/clock.h>

#include "kernel/core/printk.h"
#include "mm/contig/contig_search.h"
#include "mm/memmap/zone.h"

static u64 meta_used(void)
{
	u64 frames = 0;

	for (node_t n = 0; n < mm_kernel.nodes; n++)
		frames += atomic_load_relaxed(&mm_kernel.node[n].meta.used);
	return frames;
}

struct search_seen search_begin(void)
{
	struct search_seen seen = {.stats = contig_totals, .meta = meta_used()};

	shootdown_stats_read(&seen.rounds);
	seen.ns = clock_ns();
	return seen;
}

void search_print(const struct search_seen *before)
{
	const struct search_seen now = search_begin();

	print("  search %s: %llu struct pages read, %llu ranges tried, %llu pages moved, %llu "
	      "metadata frames emptied, %llu rounds, %llu us\n",
	      contig_search_selected()->name, now.stats.scanned - before->stats.scanned,
	      now.stats.candidates - before->stats.candidates,
	      now.stats.moved.pages - before->stats.moved.pages,
	      saturating_sub(before->meta, now.meta), now.rounds.flushes - before->rounds.flushes,
	      (now.ns - before->ns) / NS_PER_US);
}
