/*
 * Per-CPU lists: giving frames back, drains that another CPU asks for, disabling, and counts. See pcp.h.
 */
#include "kernel/call.h"
#include "kernel/cmdline.h"
#include "kernel/panic.h"
#include "kernel/wait.h"
#include "mm/buddy.h"
#include "mm/pcp_slot.h"

static bool type_cache;
OPTION_BOOL(pcp_type_cache, type_cache,
	    "believe the type that a page's block had when it was freed (before Weiner 2023-09), not the present one");

bool pcp_set_type_cache(bool on)
{
	const bool was = type_cache;

	type_cache = on;
	return was;
}

/* ---- a slot back to the buddy ---- */

struct run {
	u16 first;
	u8 order;
};

/* At most every second frame begins a run. */
struct runs {
	unsigned count;
	u64 frames;
	struct run run[BLOCK_FRAMES / 2];
};

static void add_run(struct runs *runs, unsigned first, unsigned order)
{
	runs->run[runs->count++] = (struct run){.first = (u16)first, .order = (u8)order};
	runs->frames += order_pages(order);
}

/* The largest aligned runs inside one word. */
static void cut_word(struct runs *runs, unsigned first, u64 bits)
{
	while (bits) {
		const unsigned at = (unsigned)__builtin_ctzll(bits);
		unsigned order = 0;

		while (order < 5 && IS_ALIGNED(at, 2u << order) &&
		       (bits >> at & ((1ULL << (2u << order)) - 1)) == (1ULL << (2u << order)) - 1)
			order++;
		bits &= ~(((1ULL << (1u << order)) - 1) << at);
		add_run(runs, first + at, order);
	}
}

/* Full words join in fours and pairs first; order 8 is the largest the small lists have. */
static void cut_runs(struct runs *runs, const u64 map[PCP_WORDS])
{
	for (unsigned w = 0; w < PCP_WORDS;) {
		unsigned order = 6, words = 1;

		if (map[w] != ~0ULL) {
			cut_word(runs, w * 64, map[w]);
			w++;
			continue;
		}
		while (order < PAGE_ORDERS - 1 && IS_ALIGNED(w, words * 2)) {
			unsigned full = words;

			while (full < words * 2 && map[w + full] == ~0ULL)
				full++;
			if (full < words * 2)
				break;
			words *= 2;
			order++;
		}
		add_run(runs, w * 64, order);
		w += words;
	}
}

/* Cut into runs and fetch their struct pages, all that can be done before the lock is held; the map is empty then. */
static struct page *slot_cut(struct zone *zone, struct pcp_zone *mine, u32 slot, struct runs *runs)
{
	struct page *pages = pfn_page(zone->mm, block_pfn(mine->tag[slot] - 1));

	runs->count = 0;
	runs->frames = 0;
	cut_runs(runs, mine->map[slot]);
	for (unsigned i = 0; i < runs->count; i++)
		page_prefetch(&pages[runs->run[i].first]);
	return pages;
}

/*
 * Zone lock held. A cached type never undoes an isolation: before Weiner's series, too, Linux looked again where blocks were
 * isolated.
 */
static void free_runs(struct zone *zone, struct pcp_zone *mine, u32 slot, struct page *pages, const struct runs *runs)
{
	const struct block *block = block_at(zone->mm, mine->tag[slot] - 1);
	const u8 type = type_cache && !block_is_isolated(block) ? mine->type[slot] : block->type;

	if (!type_cache)
		counter_add(&mine->drain_lookups, 1);
	for (unsigned i = 0; i < runs->count; i++) {
		struct page *page = &pages[runs->run[i].first];

		page_set_kind(page, 0, 0);
		buddy_free_pages_as(zone, page, runs->run[i].order, type);
	}
	if (unlikely(type_list(type) != type_list(block->type)))
		counter_add(&mine->stale, runs->frames);
	for (unsigned w = 0; w < PCP_WORDS; w++)
		mine->map[slot][w] = 0;
	mine->words[slot] = 0;
	pcp_slot_unuse(mine, slot);
	pcp_add_held(mine, -(s64)runs->frames);
	atomic_store_relaxed(&mine->moved, mine->moved - (s64)runs->frames);
	counter_add(&mine->evictions, 1);
}

void pcp_evict(struct zone *zone, struct pcp_zone *mine, u32 slot)
{
	struct runs runs;
	struct page *pages = slot_cut(zone, mine, slot, &runs);

	zone_lock(zone);
	free_runs(zone, mine, slot, pages, &runs);
	zone_unlock(zone);
}

void pcp_give_back(struct zone *zone, struct page *page, unsigned order)
{
	zone_lock(zone);
	page_set_kind(page, 0, 0);
	buddy_free_pages(zone, page, order);
	zone_unlock(zone);
	pcp_add_in_use(zone, -(s64)order_pages(order));
}

/* ---- draining ---- */

enum { SLOTS_A_TURN = 16 };

/* Slots from *slot on, then the huge ones, to the end of a turn. Zone lock held. */
static void drain_some(struct zone *zone, struct pcp_zone *mine, u32 *slot)
{
	struct runs runs;

	for (unsigned n = 0; n < SLOTS_A_TURN && *slot < PCP_SLOTS; ++*slot) {
		if (pcp_slot_is_empty(mine, *slot))
			continue;
		free_runs(zone, mine, *slot, slot_cut(zone, mine, *slot, &runs), &runs);
		n++;
	}
	if (*slot == PCP_SLOTS)
		pcp_huge_evict(zone, mine, mine->huge_count);
}

/*
 * False if the lock was not to be had and some stayed. Few turns at the lock: where many CPUs drain at once each is as long as the
 * queue, and a turn for each slot took a minute with 64 CPUs emulated by two.
 */
static bool drain_zone(struct zone *zone, bool may_wait)
{
	struct pcp_zone *mine = pcp_mine(zone);
	u32 slot = 0;

	mine->high = 0; /* computed anew, or not at all while disabled */
	for (;;) {
		while (slot < PCP_SLOTS && pcp_slot_is_empty(mine, slot))
			slot++;
		if (slot == PCP_SLOTS && mine->huge_count == 0)
			return true;
		if (may_wait)
			spin_lock(&zone->lock);
		else if (!spin_trylock(&zone->lock))
			return false;
		drain_some(zone, mine, &slot);
		spin_unlock(&zone->lock); /* not zone_unlock(): we are at it */
	}
}

static bool drain_this_cpu(struct mm *mm, bool may_wait)
{
	bool all = true;

	for (unsigned z = 0; z < mm->zones; z++)
		all &= drain_zone(&mm->zone[z], may_wait);
	return all;
}

void pcp_leave_slow(struct mm *mm)
{
	struct pcp *mine = mm->pcp[cpu_id()];

	while (atomic_load_relaxed(&mine->drain_wanted)) {
		drain_this_cpu(mm, true);
		atomic_store_release(&mine->drain_wanted, 0);
	}
}

/* On the owner, in its interrupt. What it interrupted may be inside, or stand at the lock: then a note stays. */
static void drain_here(struct mm *mm, bool may_wait)
{
	struct pcp *mine = pcp_of_this_cpu(mm);
	const bool drained = !mine->inside && drain_this_cpu(mm, may_wait);

	atomic_store_release(&mine->drain_wanted, (u8)!drained);
}

/* Asked of all: if the lock is free just now. */
static void drain_request(void *arg)
{
	drain_here(arg, false);
}

/* Asked of one that is late: where others queue without end the lock is never free. */
static void drain_request_again(void *arg)
{
	drain_here(arg, locks_none());
}

void pcp_drain_all(struct mm *mm)
{
	struct pcp *mine = pcp_enter(mm);
	cpu_t cpu;

	drain_this_cpu(mm, true);
	pcp_leave(mm, mine);
	call_cpus(&cpus_online, drain_request, mm);
	cpumask_foreach(cpu, &cpus_online) {
		struct wait wait = wait_begin(wait_deadline_cpus(), "a drain of per-CPU lists");

		while (cpu != cpu_id() && atomic_load_acquire(&mm->pcp[cpu]->drain_wanted)) {
			wait_spin(&wait, cpu);
			call_cpu(cpu, drain_request_again, mm);
		}
	}
}

/* Whoever enters after its drain sees the count; whoever was inside drains as it leaves. */
void pcp_disable(struct zone *zone)
{
	atomic_fetch_add(&zone->pcp_disabled, 1);
	pcp_drain_all(zone->mm);
}

void pcp_enable(struct zone *zone)
{
	const u32 was = atomic_fetch_sub(&zone->pcp_disabled, 1);

	ASSERT(was > 0, "per-CPU lists of zone %u enabled more often than disabled", zone->index);
}

/* ---- counts ---- */

static s64 huge_frames(const struct pcp_zone *z)
{
	return (s64)(atomic_load_relaxed(&z->huge_count) * order_pages(BLOCK_ORDER));
}

u64 pcp_count(const struct mm *mm, const struct zone *zone)
{
	s64 frames = 0;

	for (cpu_t cpu = 0; cpu < cpu_count; cpu++) {
		const struct pcp_zone *z = mm->pcp[cpu]->zone[zone->index];

		frames += atomic_load_relaxed(&z->held) + huge_frames(z);
	}
	return (u64)frames;
}

s64 pcp_in_use(const struct mm *mm, const struct zone *zone)
{
	s64 frames = 0;

	for (cpu_t cpu = 0; cpu < cpu_count; cpu++) {
		const struct pcp_zone *z = mm->pcp[cpu]->zone[zone->index];

		frames += atomic_load_relaxed(&z->moved) - atomic_load_relaxed(&z->held) - huge_frames(z);
	}
	return frames;
}

void pcp_add_in_use(struct zone *zone, s64 frames)
{
	s64 *moved = &pcp_mine(zone)->moved;

	atomic_store_relaxed(moved, *moved + frames);
}

void pcp_count_in_use(struct zone *zone, s64 frames)
{
	struct pcp *pcp = pcp_enter(zone->mm);

	pcp_add_in_use(zone, frames);
	pcp_leave(zone->mm, pcp);
}

static u64 held_in(const struct pcp_zone *z, u32 index, u64 map[PCP_WORDS])
{
	const u32 set = index % PCP_SETS * PCP_WAYS;
	u64 frames = 0;

	for (u32 slot = set; slot < set + PCP_WAYS; slot++) {
		for (unsigned w = 0; w < PCP_WORDS && z->tag[slot] == index + 1; w++) {
			map[w] |= z->map[slot][w];
			frames += (u64)__builtin_popcountll(z->map[slot][w]);
		}
	}
	for (u32 i = 0; i < z->huge_count; i++)
		if (z->huge[i] == index)
			frames += BLOCK_FRAMES;
	return frames;
}

u64 pcp_held(const struct mm *mm, u32 index, u64 map[PCP_WORDS])
{
	u64 frames = 0;

	for (cpu_t cpu = 0; cpu < cpu_count; cpu++)
		for (unsigned z = 0; z < mm->zones; z++)
			frames += held_in(mm->pcp[cpu]->zone[z], index, map);
	return frames;
}

struct pcp_stats pcp_stats(const struct mm *mm)
{
	struct pcp_stats sum = {0};

	for (cpu_t cpu = 0; cpu < cpu_count; cpu++) {
		for (unsigned i = 0; i < mm->zones; i++) {
			const struct pcp_zone *z = mm->pcp[cpu]->zone[i];

			sum.lookups += atomic_load_relaxed(&z->lookups) + atomic_load_relaxed(&z->lookups_fast);
			sum.drain_lookups += atomic_load_relaxed(&z->drain_lookups);
			sum.stale += atomic_load_relaxed(&z->stale);
			sum.refills += atomic_load_relaxed(&z->refills);
			sum.evictions += atomic_load_relaxed(&z->evictions);
		}
	}
	return sum;
}
