/*
 * The report of a search, see search.h, and mem why, which names the frame that keeps a GiB from
 * becoming a page. As a request for such pages does, it first gives back what only serves free
 * memory, so it does not name that. Other CPUs go on meanwhile, so the answer may soon be out of
 * date.
 */
#include "mm/debug/search.h"

#include <arch/clock.h>

#include "kernel/console/command.h"
#include "kernel/console/input.h"
#include "kernel/core/printk.h"
#include "mm/contig/contig_search.h"
#include "mm/contig/contig_why.h"
#include "mm/memmap/zone.h"
#include "mm/page/page_alloc.h"
#include "mm/page/page_owner.h"
#include "mm/zone/section_close.h"

enum { LINES_MAX = 32 };

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

/* ---- why there are no more ---- */

static void print_gib(struct mm *mm, u64 number, const struct contig_why *why)
{
	struct page page = {.refcount = 0};
	char owner[96];

	print("  GiB %llu: ", number);
	if (why->frame != PFN_NONE) {
		mm_page_peek(mm, why->frame, &page);
		print("frame 0x%llx: ", why->frame);
	}
	print("%s", why->text + 3); /* behind the letter */
	if (page.refcount > 0 && page.owner) {
		page_owner_text(page.owner, owner, sizeof(owner));
		print(", of %s", owner);
	}
	print("\n");
}

void search_explain(node_t node)
{
	struct mm *mm = &mm_kernel;
	u64 can = 0, cannot = 0, movable = 0;

	sections_give_back(mm, hvo_style(hvo_mode_selected()));
	for (u64 i = 0; i < mm->gibs && !input_stop_asked(); i++) {
		const struct contig_why why = contig_why(mm, mm->first_gib + i);

		if (why.node == NODE_NONE || (node != NODE_NONE && why.node != node))
			continue;
		can += !why.text;
		movable += why.text ? 0 : why.movable;
		if (why.text && why.text[0] != 'G' && cannot++ < LINES_MAX)
			print_gib(mm, mm->first_gib + i, &why);
	}
	print("  now %llu GiB cannot become pages, %llu can, with %llu frames to be moved%s\n",
	      cannot, can, movable,
	      contig_gigabyte_is_free(mm) ? "" : ", but less than 1 GiB is free in all");
}

static int cmd_why(const struct words *words)
{
	if (cmd_choice(words, 1, "page size", "1G") < 0)
		return -EINVAL;
	search_explain(NODE_NONE);
	return input_stop_asked() ? -EINTR : 0;
}

COMMAND(mem why, .usage = "1G", .min = 1, .max = 1, .run = cmd_why, .choices = {"1G"},
	.help = "each GiB that cannot become a page now, the first frame in the way, and with "
		"debug.page_owner=on its holder");
