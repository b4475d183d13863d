/*
 * Monitor commands that show memory as the allocator sees it: by owner, by node and by
 * zone, and the counts of its work.
 *
 * Figures are read as they are, without stopping any CPU. `mem check` proves them; it needs the
 * other CPUs idle, as they are whenever a command runs.
 */
#include "kernel/console/command.h"
#include "kernel/core/printk.h"
#include "kernel/core/shootdown.h"
#include "mm/debug/account.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/zone.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/watermark.h"

#include <arch/boot.h>

/* Print a number of 4 KiB frames, also in MiB with one decimal. */
static void print_frames(const char *what, u64 frames)
{
	const u64 tenths = frames * 10 / 256;

	print("  %-10s %12llu frames %10llu.%llu MiB\n", what, frames, tenths / 10, tenths % 10);
}

static int cmd_mem(const struct words *words)
{
	struct mm_usage u;

	if (words_plain_count(words) > 1) {
		if (cmd_choice(words, 1, "kind of output", "check") < 0)
			return -EINVAL;
		if (!account_machine())
			return -EIO;
		print("  every frame accounted for, owner by owner\n");
		return 0;
	}
	mm_usage(&u);
	print_frames("free", u.free);
	print_frames("unopened", u.unopened);
	print_frames("per-cpu", u.per_cpu);
	print_frames("pool", u.pool_free);
	print_frames("in use", u.in_use);
	print_frames("meta", u.meta);
	print_frames("gated", u.gated);
	print_frames("transit", u.transit);
	print_frames("bad", u.bad);
	print_frames("reserved", u.reserved);
	print_frames("= RAM", u.ram);
	print("  struct pages and their tables take %llu KiB of meta\n", u.memmap_bytes >> 10);
	return 0;
}

COMMAND(mem, .usage = "[check]", .help = "all RAM by owner; check: walk everything and prove it",
	.max = 1, .run = cmd_mem, .choices = {"check"});

/* ---- nodes ---- */

static void print_ram_of(const struct mm *mm, node_t node)
{
	for (size_t i = 0; i < mm->memory->count; i++)
		if (mm->memory->range[i].node == node)
			print("    RAM 0x%llx to 0x%llx\n", mm->memory->range[i].start,
			      mm->memory->range[i].end);
}

static int cmd_nodes(const struct words *words)
{
	const struct mm *mm = &mm_kernel;

	for (node_t n = 0; n < mm->nodes; n++) {
		const struct meta *meta = &mm->node[n].meta;

		print("  node %u: %llu MiB, metadata memory of node %u: %llu blocks, %llu frames "
		      "used, %llu of them gated\n    distance:",
		      n, memblock_node_bytes(n) >> 20, mm->node[n].meta_node,
		      atomic_load_relaxed(&meta->blocks), atomic_load_relaxed(&meta->used),
		      atomic_load_relaxed(&meta->gated));
		for (node_t to = 0; to < mm->nodes; to++)
			print(" %u", arch_node_distance(n, to));
		print("\n");
		print_ram_of(mm, n);
	}
	return 0;
}

COMMAND(mem nodes, .help = "NUMA nodes: RAM, metadata memory, distances", .run = cmd_nodes);

/* ---- zones and free lists ---- */

static int cmd_zones(const struct words *words)
{
	zones_print(&mm_kernel, mm_kernel.zones);
	print("  in frames; huge, bare, full, mapped: free in whole blocks, by the form of their "
	      "struct pages\n");
	for (unsigned z = 0; z < mm_kernel.zones; z++) {
		const struct zone *zone = &mm_kernel.zone[z];
		const u64 *class = zone->free_class;

		print("  zone %u: frames 0x%llx to 0x%llx, max_order %u\n"
		      "    huge %llu, bare %llu, full %llu, mapped %llu, small %llu\n"
		      "    per-cpu %llu, transit %llu, bad %llu, reserved %llu, boot %llu\n",
		      z, zone->start_pfn, zone->end_pfn, zone->max_order,
		      atomic_load_relaxed(&class[FREE_HUGE]),
		      atomic_load_relaxed(&class[FREE_BARE]),
		      atomic_load_relaxed(&class[FREE_FULL]),
		      atomic_load_relaxed(&class[FREE_MAPPED]),
		      atomic_load_relaxed(&zone->free_small), pcp_count(&mm_kernel, zone),
		      atomic_load_relaxed(&zone->transit), atomic_load_relaxed(&zone->bad),
		      atomic_load_relaxed(&zone->reserved), atomic_load_relaxed(&zone->boot));
	}
	return 0;
}

COMMAND(mem zones, .help = "zones: what is free by type, net of opening, what is kept back",
	.run = cmd_zones);

/* ---- work done since boot ---- */

static void print_changes(const struct mm *mm)
{
	for (unsigned from = 0; from < BLOCK_STATES; from++)
		for (unsigned to = 0; to < BLOCK_STATES; to++)
			if (mm_counted(mm, COUNT_CHANGE(from, to)) > 0)
				print("  %-9s -> %-9s %12llu\n", block_state_name(from),
				      block_state_name(to), mm_counted(mm, COUNT_CHANGE(from, to)));
}

static int cmd_stats(const struct words *words)
{
	struct shootdown_stats s;

	shootdown_stats_read(&s);
	print("  shootdown: %llu asked for, %llu rounds (%llu full, %llu ranged), %llu messages, "
	      "%llu CPUs skipped idle\n",
	      s.ops, s.flushes, s.full, s.ranged, s.ipis, s.skipped);
	print("  quiet CPUs: skipped %llu times, asked to flush for frames %llu times\n",
	      s.skipped_quiet, s.asked);
	print("  drains of per-CPU lists: %llu, %llu messages\n",
	      atomic_load_relaxed(&mm_kernel.drains),
	      atomic_load_relaxed(&mm_kernel.drain_messages));
	print("  sections: %llu opened, %llu closed; PMDs split: %llu\n",
	      mm_counted(&mm_kernel, COUNT_SECTIONS_OPENED),
	      mm_counted(&mm_kernel, COUNT_SECTIONS_CLOSED),
	      mm_counted(&mm_kernel, COUNT_PMD_SPLITS));
	print("  blocks of 2 MiB that changed their state:\n");
	print_changes(&mm_kernel);
	return 0;
}

COMMAND(mem stats, .help = "work done since boot: flushes, splits, changes of block states",
	.run = cmd_stats);
