/*
 * HVO, huge page vmemmap optimisation: a huge page needs its head and one page of tails, not the 8 (or 4096) frames of struct
 * pages that describe small ones.
 *
 *   before S0   unbatched   flush all CPUs after each PMD split and after each page's remap
 *   S0          batched     split all, one flush, remap all, one flush; restore with one flush
 *   ours        on          tails that were never needed are never built: bare -> huge is not present -> present, no flush;
 *                           freed huge blocks stay huge; only blocks that were split before are remapped
 *               off         struct pages as they are, all tails written
 *
 * The modes are rows of one table and share every function; they differ in what they take and where the flush stands.
 */
#pragma once

#include "kernel/shootdown.h"
#include "mm/zone.h"

struct hvo_mode {
	const char *name;
	bool optimise;   /* share the tails; else all struct pages stay */
	bool mapped;     /* take blocks of mapped sections only: the baselines */
	bool flush_each; /* a round per page and step instead of one per batch and step */
	bool new_head;   /* the head moves to a frame of its own, as in S0; else it stays in place */
	enum shootdown_idle idle; /* baselines interrupt every CPU */
};

extern const struct hvo_mode hvo_modes[]; /* off, unbatched, batched, on; ends with a NULL name */

/* The mode chosen with hvo=, on by default; by name, NULL if there is none. */
const struct hvo_mode *hvo_mode_selected(void);
const struct hvo_mode *hvo_mode_find(const char *name);

/*
 * Append up to `count` free blocks of one zone that suit the mode to `list`, in transit, opening sections as needed. A head frame is
 * reserved for each that will need one, before it is unlinked. Returns how many. No lock held.
 */
u64 hvo_take_blocks(struct zone *zone, const struct hvo_mode *mode, u64 count, struct block_list *list);

/*
 * Make every block of `list` (in transit) a 2 MiB page: head formed, tails as the mode has them, safe to hand out.
 * Blocks that could not be changed, for lack of frames, are free again when this returns and counted in the result.
 */
u64 hvo_optimise(struct mm *mm, const struct hvo_mode *mode, struct block_list *list);

/*
 * The opposite, before blocks go back to the buddy: in the baselines and in mapped sections all struct pages are private again.
 * Stops at the first lack of frames: 0 or -ENOMEM, and *restored blocks were moved to `done`; the rest stay in `list`,
 * still huge (S0's contract: error *and* count).
 */
int hvo_restore(struct mm *mm, const struct hvo_mode *mode, struct block_list *list, struct block_list *done,
		u64 *restored);

/* Free huge blocks of a zone become bare, one round for all. Returns blocks changed. No lock held. */
u64 hvo_bare_free_huge(struct zone *zone);

/* Up to `count` free full blocks of on-demand sections become free huge ones, one round. Returns blocks. No lock held. */
u64 hvo_huge_free_full(struct zone *zone, u64 count);
