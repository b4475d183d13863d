/*
 * The monitor's command for the pools of huge pages: showing, resizing, demoting.
 *
 * Big changes are made in batches, so that progress can be shown and Ctrl-C noticed between two of
 * them. One flush round serves a whole batch.
 */
#include "kernel/console/command.h"
#include "kernel/console/progress.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "mm/debug/search.h"
#include "mm/hugetlb/pool.h"
#include "mm/hugetlb/pool_use.h"

#include <arch/clock.h>

static const char *size_name(const struct pool *pool)
{
	return pool->order == GIGA_ORDER ? "1G" : "2M";
}

/* ---- showing ---- */

static void show_pool(struct pool *pool)
{
	print("  %s: %llu pages, %llu free, %llu in use, %llu promised, %llu surplus (of at most "
	      "%llu), %lld frames of struct pages saved\n",
	      size_name(pool), atomic_load_relaxed(&pool->pages), atomic_load_relaxed(&pool->free),
	      atomic_load_relaxed(&pool->in_use), atomic_load_relaxed(&pool->reserved),
	      atomic_load_relaxed(&pool->surplus), atomic_load_relaxed(&pool->overcommit),
	      pool_frames_saved(pool));
	for (node_t n = 0; n < pool->mm->nodes && pool->mm->nodes > 1; n++) {
		const struct pool_node *node = &pool->node[n];

		print("    node %u: %llu pages, %llu free\n", n, atomic_load_relaxed(&node->pages),
		      atomic_load_relaxed(&node->free.count));
	}
}

/* ---- changing ---- */

enum pool_verb { VERB_GROW, VERB_SHRINK, VERB_DEMOTE, VERB_OVERCOMMIT };
#define POOL_VERBS "grow|shrink|demote|overcommit"

static u64 change_batch(struct pool *pool, enum pool_verb verb, node_t node, u64 count)
{
	const struct hvo_mode *mode = hvo_mode_selected();

	switch (verb) {
	case VERB_GROW:
		return pool_grow_on(pool, mode, node, count);
	case VERB_SHRINK:
		return pool_shrink_on(pool, mode, node, count);
	default:
		return pool_demote(pool, &pool_2m, mode, count);
	}
}

/* Explain why a change stopped short. */
static void explain_short(const struct pool *pool, enum pool_verb verb, u64 missing)
{
	const u64 free = atomic_load_relaxed(&pool->free);

	print("  %s: %llu pages fewer than asked for: ", verb == VERB_GROW ? "memory" : "refused",
	      missing);
	if (verb == VERB_GROW && hvo_mode_selected()->mapped)
		print("no further run of this size is free in mapped sections, and hvo=%s takes no "
		      "other\n",
		      hvo_mode_selected()->name);
	else if (verb == VERB_GROW)
		print("no further run of this size is free\n");
	else if (free == 0)
		print("%llu pages are in use, none is free\n", atomic_load_relaxed(&pool->in_use));
	else if (free <= atomic_load_relaxed(&pool->reserved))
		print("the %llu free pages are promised\n", free);
	else
		print("there are no frames for their struct pages\n");
}

/* Make the change in batches of a GiB. */
static int change(struct pool *pool, enum pool_verb verb, node_t node, u64 count)
{
	static const char *const names[] = {"grow", "shrink", "demote"};
	const u64 batch = order_pages(GIGA_ORDER - pool->order);
	const struct search_seen before = search_begin();
	struct progress progress = progress_begin(names[verb], "pages", count);
	u64 done = 0, got, want, ns;
	bool stopped = false;

	do {
		want = MIN(batch, count - done);
		got = change_batch(pool, verb, node, want);
		done += got;
		stopped = done < count && progress_stopped(&progress, done);
	} while (got == want && done < count && !stopped);
	ns = clock_ns() - before.ns;
	print("  %s %s: %llu pages in %llu.%03llu ms, hvo=%s\n", names[verb], size_name(pool), done,
	      ns / NS_PER_MS, ns / NS_PER_US % 1000, hvo_mode_selected()->name);
	if (verb == VERB_GROW && pool->order == GIGA_ORDER)
		search_print(&before);
	if (stopped)
		return -EINTR;
	if (done < count)
		explain_short(pool, verb, count - done);
	if (done < count && verb == VERB_GROW && pool->order == GIGA_ORDER)
		search_explain(node);
	return done == count ? 0 : verb == VERB_GROW ? -ENOMEM : -EBUSY;
}

/*
 * Resize to `target` persistent pages. Growing is done in batches first; after that surplus pages
 * are adopted, and pages in use beyond the target become surplus.
 */
static int resize(struct pool *pool, u64 target)
{
	const u64 pages = atomic_load_relaxed(&pool->pages);
	int err = 0;

	if (target > pages)
		err = change(pool, VERB_GROW, NODE_NONE, target - pages);
	if (err != -EINTR)
		pool_resize(pool, hvo_mode_selected(), target);
	show_pool(pool);
	return err;
}

static int verb_with_count(const struct words *words, struct pool *pool, enum pool_verb verb)
{
	u64 count, node = NODE_NONE;
	int err = cmd_u64(words, 3, "COUNT", verb == VERB_OVERCOMMIT ? 0 : 1, 1ULL << 34, &count);

	if (!err)
		err = cmd_key_u64(words, "node", 0, pool->mm->nodes - 1, &node);
	if (err)
		return err;
	if (verb != VERB_GROW && verb != VERB_SHRINK && node != NODE_NONE)
		return cmd_error(words, "node= is valid only with grow or shrink");
	if (verb == VERB_DEMOTE && pool->order != GIGA_ORDER)
		return cmd_error(words, "only 1G pages can be demoted");
	if (verb == VERB_OVERCOMMIT) {
		pool_set_overcommit(pool, count);
		show_pool(pool);
		return 0;
	}
	return change(pool, verb, (node_t)node, count);
}

static int cmd_pool(const struct words *words)
{
	const unsigned plain = words_plain_count(words);
	struct pool *pool;
	u64 target = 0;
	int which, err;

	if (plain == 1) {
		show_pool(&pool_2m);
		show_pool(&pool_1g);
		return 0;
	}
	which = cmd_choice(words, 1, "page size", "2M|1G");
	if (which < 0)
		return which;
	pool = which ? &pool_1g : &pool_2m;
	if (plain == 2) {
		show_pool(pool);
		return 0;
	}
	if (plain == 4) {
		which = cmd_choice(words, 2, "operation", POOL_VERBS);
		return which < 0 ? which : verb_with_count(words, pool, (enum pool_verb)which);
	}
	if (words_value(words, "node"))
		return cmd_error(words, "node= is valid only with grow or shrink");
	err = choice_index(POOL_VERBS, words_plain(words, 2)) >= 0
		      ? cmd_error(words, "COUNT is missing")
		      : cmd_u64(words, 2, "COUNT", 0, 1ULL << 34, &target);
	return err ? err : resize(pool, target);
}

COMMAND(pool, .usage = "[SIZE [COUNT | grow|shrink|demote|overcommit COUNT [node=N]]]",
	.help = "huge page pools: show, set to COUNT pages, change",
	.more = "  SIZE is 2M or 1G. grow, shrink: by COUNT pages, on one node or all; demote: 1G "
		"pages into 2M ones.\n"
		"  COUNT alone: keep so many persistent pages; pages in use beyond them become "
		"surplus and are freed\n"
		"  when they are given back. overcommit: surplus pages that may be made when none "
		"is free. hvo=\n"
		"  selects the HVO mode. `map SIZE 2M pool` takes pages into use.\n",
	.max = 3, .keys = "node", .run = cmd_pool, .choices = {"2M|1G", POOL_VERBS, NULL, "node="});
