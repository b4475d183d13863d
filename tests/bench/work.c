/* The work of a leg; see work.h. */
#include "tests/bench/work.h"

#include "kernel/core/printk.h"
#include "mm/memmap/zone.h"
#include "tests/kernel/rounds.h"

/* Blocks that came into a state from another. */
static u64 blocks_became(enum block_state to)
{
	u64 count = 0;

	for (enum block_state from = 0; from < BLOCK_STATES; from++)
		if (from != to)
			count += mm_counted(&mm_kernel, COUNT_CHANGE(from, to));
	return count;
}

/* All work since boot. */
static struct work work_now(void)
{
	return (struct work){.opened = mm_counted(&mm_kernel, COUNT_SECTIONS_OPENED),
			     .splits = mm_counted(&mm_kernel, COUNT_PMD_SPLITS),
			     .formed = blocks_became(BLOCK_FULL),
			     .shared = blocks_became(BLOCK_HUGE) + blocks_became(BLOCK_NOHEAD),
			     .meta = blocks_became(BLOCK_META),
			     .rounds = rounds_so_far()};
}

/* Add to `sum` what was done since `then`. */
static void add_since(struct work *sum, const struct work *then)
{
	const struct work now = work_now();

	sum->opened += now.opened - then->opened;
	sum->splits += now.splits - then->splits;
	sum->formed += now.formed - then->formed;
	sum->shared += now.shared - then->shared;
	sum->meta += now.meta - then->meta;
	sum->rounds += now.rounds - then->rounds;
}

struct pcp_stats pcp_stats_since(const struct pcp_stats *then)
{
	const struct pcp_stats now = pcp_stats(&mm_kernel);

	return (struct pcp_stats){.lookups = now.lookups - then->lookups,
				  .fetch_lookups = now.fetch_lookups - then->fetch_lookups,
				  .drain_lookups = now.drain_lookups - then->drain_lookups,
				  .drained = now.drained - then->drained,
				  .evictions = now.evictions - then->evictions};
}

void work_print(const char *prefix, const struct work *work)
{
	print(" %sopened=%llu %ssplits=%llu %sformed=%llu %sshared=%llu %smeta=%llu "
	      "%srounds=%llu",
	      prefix, work->opened, prefix, work->splits, prefix, work->formed, prefix,
	      work->shared, prefix, work->meta, prefix, work->rounds);
}

void leg_work_prepare(struct leg_work *work)
{
	work->mark = work_now();
}

void leg_work_begin(struct leg_work *work)
{
	add_since(&work->before, &work->mark);
	work->mark = work_now();
}

void leg_work_end(struct leg_work *work)
{
	add_since(&work->inside, &work->mark);
}

bool leg_work_warm(struct leg_work *work, u64 *most, u64 needs)
{
	work->warm = needs <= *most;
	*most = MAX(*most, needs);
	return work->warm;
}

void leg_work_print(const struct leg_work *work)
{
	work_print("", &work->inside);
	work_print("before_", &work->before);
	print(" warm=%s", work->warm ? "yes" : "no");
}
