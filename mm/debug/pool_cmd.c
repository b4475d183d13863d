/*
 * Monitor commands for the pools of huge pages: showing, resizing, demoting, taking pages into use,
 * and the memory that HVO saves.
 *
 * Big changes are made in batches of about a tenth of a second each, so that progress can be shown
 * and Ctrl-C noticed between two of them. One flush round serves a whole batch, so a batch is as
 * large as that time allows.
 */
#include "kernel/console/command.h"
#include "kernel/console/progress.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "mm/hugetlb/pool.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/hvo/hvo_take.h"
#include "mm/memmap/block_state.h"
#include "mm/zone/section.h"

#include <arch/clock.h>

enum { BATCH_FIRST = 64 };

#define BATCH_NS (100 * NS_PER_MS)

static const char *size_name(const struct pool *pool)
{
	return pool->order == GIGA_ORDER ? "1G" : "2M";
}

/* ---- pages that the monitor itself has in use, chained through their private words ---- */

static struct page *taken[2];

static struct page **taken_of(const struct pool *pool)
{
	return &taken[pool->order == GIGA_ORDER];
}

static int pool_take_pages(struct pool *pool, node_t node, u64 count)
{
	u64 done = 0;

	for (; done < count; done++) {
		struct page *page = pool_page_take(pool, node, POOL_ANY);

		if (!page)
			break;
		page_chain_push(taken_of(pool), page);
	}
	print("  %llu pages of %s taken into use\n", done, size_name(pool));
	if (done < count)
		print("  refused: %llu more, because the pool has no free page that is not "
		      "promised\n",
		      count - done);
	return done < count ? -EBUSY : 0;
}

static int pool_give_pages(struct pool *pool, u64 count)
{
	u64 done = 0;

	for (; done < count && *taken_of(pool); done++)
		pool_page_give(pool, page_chain_pop(taken_of(pool)));
	print("  %llu pages of %s given back\n", done, size_name(pool));
	if (done < count)
		print("  refused: %llu more, because the monitor has taken no others\n",
		      count - done);
	return done < count ? -EBUSY : 0;
}

/* ---- showing ---- */

static void show_pool(const struct pool *pool)
{
	print("  %s: %llu pages, %llu free, %llu in use, %llu promised, %llu surplus (of at most "
	      "%llu)\n",
	      size_name(pool), atomic_load_relaxed(&pool->pages), atomic_load_relaxed(&pool->free),
	      atomic_load_relaxed(&pool->in_use), atomic_load_relaxed(&pool->reserved),
	      atomic_load_relaxed(&pool->surplus), atomic_load_relaxed(&pool->overcommit));
	for (node_t n = 0; n < pool->mm->nodes && pool->mm->nodes > 1; n++) {
		const struct pool_node *node = &pool->node[n];

		print("    node %u: %llu pages, %llu free\n", n, atomic_load_relaxed(&node->pages),
		      atomic_load_relaxed(&node->free.count));
	}
}

/* ---- changing ---- */

enum pool_verb { VERB_GROW, VERB_SHRINK, VERB_DEMOTE, VERB_TAKE, VERB_GIVE, VERB_OVERCOMMIT };
#define POOL_VERBS "grow|shrink|demote|take|give|overcommit"

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

/* Make the change in batches; the batch doubles as long as it is done quickly. */
static int change(struct pool *pool, enum pool_verb verb, node_t node, u64 count)
{
	static const char *const names[] = {"grow", "shrink", "demote"};
	struct progress progress = progress_begin(names[verb], "pages", count);
	const u64 start = clock_ns();
	u64 done = 0, batch = BATCH_FIRST, got, ns;
	bool stopped = false;

	do {
		const u64 want = MIN(batch, count - done), began = clock_ns();

		got = change_batch(pool, verb, node, want);
		done += got;
		if (clock_ns() - began < BATCH_NS / 2)
			batch *= 2;
		else if (clock_ns() - began > 2 * BATCH_NS)
			batch = MAX(batch / 2, 1);
		stopped = done < count && progress_stopped(&progress, done);
		if (got < want)
			break;
	} while (done < count && !stopped);
	ns = clock_ns() - start;
	print("  %s %s: %llu pages in %llu.%03llu ms, hvo=%s\n", names[verb], size_name(pool), done,
	      ns / NS_PER_MS, ns / NS_PER_US % 1000, hvo_mode_selected()->name);
	if (stopped)
		return -EINTR;
	if (done < count)
		explain_short(pool, verb, count - done);
	return done == count ? 0 : verb == VERB_GROW ? -ENOMEM : -EBUSY;
}

/*
 * Resize to `target` persistent pages. Most of the change is made in batches; after that surplus
 * pages are adopted, and pages in use beyond the target become surplus.
 */
static int resize(struct pool *pool, u64 target)
{
	const u64 free = atomic_load_relaxed(&pool->free);
	const u64 pages = atomic_load_relaxed(&pool->pages);
	const u64 spare = free - MIN(free, atomic_load_relaxed(&pool->reserved));
	int err = 0;

	if (target > pages)
		err = change(pool, VERB_GROW, NODE_NONE, target - pages);
	else if (target < pages && spare > 0)
		err = change(pool, VERB_SHRINK, NODE_NONE, MIN(pages - target, spare));
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
	if (verb != VERB_GROW && verb != VERB_SHRINK && verb != VERB_TAKE && node != NODE_NONE)
		return cmd_error(words, "node= is valid only with grow, shrink or take");
	if (verb == VERB_DEMOTE && pool->order != GIGA_ORDER)
		return cmd_error(words, "only 1G pages can be demoted");
	if (verb == VERB_OVERCOMMIT) {
		pool_set_overcommit(pool, count);
		show_pool(pool);
		return 0;
	}
	if (verb == VERB_TAKE)
		return pool_take_pages(pool, (node_t)node, count);
	if (verb == VERB_GIVE)
		return pool_give_pages(pool, count);
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
		return cmd_error(words, "node= is valid only with grow, shrink or take");
	err = choice_index(POOL_VERBS, words_plain(words, 2)) >= 0
		      ? cmd_error(words, "COUNT is missing")
		      : cmd_u64(words, 2, "COUNT", 0, 1ULL << 34, &target);
	return err ? err : resize(pool, target);
}

static bool pool_candidate(const struct words *words, unsigned at, unsigned n, char *buf,
			   size_t size)
{
	(void)words;
	if (at == 4 && n == 0) {
		format(buf, size, "node=");
		return true;
	}
	return (at == 1 && choice_name("2M|1G", n, buf, size)) ||
	       (at == 2 && choice_name(POOL_VERBS, n, buf, size));
}

COMMAND(pool, .usage = "[SIZE [COUNT | grow|shrink|demote|take|give|overcommit COUNT [node=N]]]",
	.help = "huge page pools: show, set to COUNT pages, change",
	.more = "  SIZE is 2M or 1G. grow, shrink: by COUNT pages, on one node or all; demote: 1G "
		"pages into 2M ones;\n"
		"  take, give: the monitor takes pages into use, or gives them back. COUNT alone: "
		"keep so many\n"
		"  persistent pages; pages in use beyond them become surplus and are freed when "
		"they are given back.\n"
		"  overcommit: surplus pages that may be made when none is free. hvo= selects the "
		"HVO mode.\n",
	.max = 3, .keys = "node", .run = cmd_pool, .candidate = pool_candidate);

/* ---- HVO ---- */

static void count_states(const struct mm *mm, u64 states[BLOCK_STATES])
{
	for (u64 section = section_first(mm); section < section_end(mm); section++) {
		if (section_state(mm, section) == SECTION_ABSENT)
			continue;
		for (u32 i = 0; i < SECTION_BLOCKS; i++) {
			const struct block *block =
				block_at(mm, (u32)(section * SECTION_BLOCKS) + i);

			states[block ? block_look(block).state : BLOCK_UNOPENED]++;
		}
	}
}

static int cmd_hvo(const struct words *words)
{
	u64 states[BLOCK_STATES] = {0};

	(void)words;
	for (const struct hvo_mode *mode = hvo_modes; mode->name; mode++)
		print("  %s %s\n", mode == hvo_mode_selected() ? "*" : " ", mode->name);
	print("  frames of struct pages saved: %lld by the 2M pool, %lld by the 1G pool\n",
	      pool_frames_saved(&pool_2m), pool_frames_saved(&pool_1g));
	count_states(&mm_kernel, states);
	print("  blocks of 2 MiB by state:");
	for (unsigned i = 0; i < BLOCK_STATES; i++)
		if (states[i] > 0)
			print(" %s %llu", block_state_name(i), states[i]);
	print("\n");
	return 0;
}

COMMAND(mem hvo, .help = "HVO modes, frames saved, blocks by state; set hvo=MODE changes it",
	.run = cmd_hvo);
