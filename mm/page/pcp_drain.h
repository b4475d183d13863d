/*
 * Frames go back from the per-CPU lists to the zones when a CPU holds too many, when another CPU
 * requests a drain, or when the lists are disabled. The protocol between the CPU that requests a
 * drain and the CPUs that hold frames is in pcp.h.
 */
#pragma once

#include "mm/page/pcp.h"

/* Give 2^order frames (0..8), refcount 0 already, straight to the zone. Entered. */
void pcp_give_back(struct zone *zone, struct page *page, unsigned order);

/*
 * Give frames of a block, one bit each, refcount 0 already, straight to the zone in one turn at its
 * lock. Returns how many. No lock held, not entered.
 */
u64 pcp_give_back_map(struct zone *zone, u32 index, const u64 map[PCP_WORDS]);

/*
 * Give everything that any CPU held at the time of the call back to the buddy. Many callers at once
 * share a drain. No lock held, not entered; waits for the CPUs that hold something.
 */
void pcp_drain_all(struct mm *mm);

/*
 * pcp_drain_all() in two steps. pcp_drain_tag() names the drain that serves what the caller has
 * changed so far; pcp_drain_wait() waits until that drain is done.
 */
u64 pcp_drain_tag(const struct mm *mm);
void pcp_drain_wait(struct mm *mm, u64 tag);

/*
 * From the return of pcp_disable() to pcp_enable() no CPU holds frames of the zone; frees go
 * straight to the buddy. Calls nest. No lock held.
 */
void pcp_disable(struct zone *zone);
void pcp_enable(struct zone *zone);

/* Frames of a zone that CPUs hold, and frames in use. Exact when all CPUs are parked. */
u64 pcp_count(const struct mm *mm, const struct zone *zone);
s64 pcp_in_use(const struct mm *mm, const struct zone *zone);

/*
 * Count frames that go to users or come back without being held in between: pcp_count_in_use() not
 * entered, pcp_add_in_use() entered.
 */
void pcp_count_in_use(struct zone *zone, s64 frames);
void pcp_add_in_use(struct zone *zone, s64 frames);

/*
 * Which frames of a block the CPUs hold, all together. Adds their bits to `map` and returns how
 * many frames there are; a huge entry counts as 512 and adds no bits. A frame held twice is counted
 * twice. For accounting, all CPUs parked.
 */
u64 pcp_held(const struct mm *mm, u32 index, u64 map[PCP_WORDS]);

/* Slow half of pcp_leave(), when a drain was requested. Inside. */
void pcp_leave_slow(struct mm *mm);

/* Give back all that these slots hold, in one turn at the zone's lock. Entered. */
void pcp_evict(struct zone *zone, struct pcp_zone *mine, const u32 *slots, unsigned count);
