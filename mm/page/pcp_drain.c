/*
 * Per-CPU lists: giving frames back, drains that another CPU requests, disabling, and counts. See
 * pcp.h.
 */
#include "mm/page/pcp_drain.h"

#include "kernel/core/call.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/wait.h"
#include "mm/page/pcp_huge.h"
#include "mm/page/pcp_types.h"
#include "mm/zone/buddy_small.h"

/* ---- frames of a block back to the buddy ---- */

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

/* Cut one word into the largest aligned runs inside it. */
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

/*
 * Cut a map of a block's frames. Full words join into pairs and fours first; order 8 is the largest
 * order that the small lists have.
 */
static void cut_runs(struct runs *runs, const u64 map[PCP_WORDS])
{
	runs->count = 0;
	runs->frames = 0;
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

/*
 * Cut a slot into runs and prefetch their struct pages: everything that can be done before the lock
 * is held. The slot's map is left as it is.
 */
static struct page *slot_cut(struct zone *zone, struct pcp_zone *mine, u32 slot, struct runs *runs)
{
	struct page *pages = pfn_page(zone->mm, block_pfn(mine->tag[slot] - 1));

	if (unlikely(zone->mm->pcp_types->by_page)) {
		pcp_prefetch_slot(zone, mine, slot);
		return pages;
	}
	cut_runs(runs, mine->map[slot]);
	for (unsigned i = 0; i < runs->count; i++)
		page_prefetch(&pages[runs->run[i].first]);
	return pages;
}

/* Zone lock held. `type`: the block's, looked up once for all runs. */
static void free_runs(struct zone *zone, u8 type, struct page *pages, const struct runs *runs)
{
	for (unsigned i = 0; i < runs->count; i++) {
		struct page *page = &pages[runs->run[i].first];

		page_set_kind(page, 0, 0);
		buddy_free_pages_as(zone, page, runs->run[i].order, type);
	}
}

/* Give back all that the slot holds, which was cut into `runs`. Zone lock held. */
static void free_slot(struct zone *zone, struct pcp_zone *mine, u32 slot, struct page *pages,
		      const struct runs *runs)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): slot_cut() filled it */
	u64 frames = runs->frames;

	if (unlikely(zone->mm->pcp_types->by_page)) {
		frames = pcp_free_by_page(zone, mine, slot);
	} else {
		counter_add(&mine->drain_lookups, 1);
		free_runs(zone, block_look_at(zone->mm, mine->tag[slot] - 1).type, pages, runs);
	}
	for (unsigned w = 0; w < PCP_WORDS; w++)
		mine->map[slot][w] = 0;
	mine->words[slot] = 0;
	pcp_slot_unuse(mine, slot);
	pcp_add_held(mine, -(s64)frames);
	atomic_store_relaxed(&mine->moved, mine->moved - (s64)frames);
	counter_add(&mine->drained, frames);
	counter_add(&mine->evictions, 1);
}

/* All slots are cut before the lock is taken, to prefetch, and again when it is their turn. */
void pcp_evict(struct zone *zone, struct pcp_zone *mine, const u32 *slots, unsigned count)
{
	struct page *pages = NULL;
	struct runs runs;

	for (unsigned i = count; i-- > 0;)
		pages = slot_cut(zone, mine, slots[i], &runs);
	zone_lock(zone);
	for (unsigned i = 0; i < count; i++) {
		if (i > 0)
			pages = slot_cut(zone, mine, slots[i], &runs);
		free_slot(zone, mine, slots[i], pages, &runs);
	}
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

u64 pcp_give_back_map(struct zone *zone, u32 index, const u64 map[PCP_WORDS])
{
	const u64 frames = pcp_frames_of(map);
	struct block_word word;
	struct runs runs;

	if (frames == 0)
		return 0;
	zone_lock(zone);
	word = block_look_at(zone->mm, index);
	if (frames + word.free_pages == BLOCK_FRAMES) {
		buddy_free_rest(zone, index);
	} else {
		cut_runs(&runs, map);
		free_runs(zone, word.type, block_page(zone->mm, index), &runs);
	}
	zone_unlock(zone);
	pcp_count_in_use(zone, -(s64)frames);
	return frames;
}

/* ---- draining ---- */

enum { SLOTS_A_TURN = 16 };

/* Drain slots from *slot on, then the huge entries, until the turn ends. Zone lock held. */
static void drain_some(struct zone *zone, struct pcp_zone *mine, u32 *slot)
{
	struct runs runs;

	for (unsigned n = 0; n < SLOTS_A_TURN && *slot < PCP_SLOTS; ++*slot) {
		if (pcp_slot_is_empty(mine, *slot))
			continue;
		free_slot(zone, mine, *slot, slot_cut(zone, mine, *slot, &runs), &runs);
		n++;
	}
	if (*slot == PCP_SLOTS)
		pcp_huge_evict(zone, mine, mine->huge_count);
}

/*
 * Returns false if the lock was not available and some frames stayed. The loop takes few turns at
 * the lock. Where many CPUs drain at once each turn lasts as long as the queue, and one turn for
 * each slot took a minute with 64 CPUs emulated by two.
 */
static bool drain_zone(struct zone *zone, bool may_wait)
{
	struct pcp_zone *mine = pcp_mine(zone);
	u32 slot = 0;

	pcp_fold_hot(mine);
	mine->high = 0; /* computed again when it is next needed, and kept at 0 while disabled */
	mine->recent.pages = PCP_NO_PAGES; /* a new rule may want notes on the pages that come */
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
		spin_unlock(&zone->lock); /* not zone_unlock(), which would drain again */
	}
}

static bool drain_this_cpu(struct mm *mm, bool may_wait)
{
	bool all = true;

	for (unsigned z = 0; z < mm->zones; z++)
		all &= drain_zone(&mm->zone[z], may_wait);
	return all;
}

/* The lists are empty, and they were emptied after drain `g` had begun. */
static void say_drained(struct pcp *mine, u64 g)
{
	atomic_store_release(&mine->holding, 0);
	atomic_store_release(&mine->drained, g);
}

/* Does the CPU hold nothing that it held when drain `g` began? */
static bool has_drained(const struct pcp *pcp, u64 g)
{
	return !atomic_load_acquire(&pcp->holding) || atomic_load_acquire(&pcp->drained) >= g;
}

static void drain_and_say(struct mm *mm, struct pcp *mine)
{
	const u64 g = atomic_load_acquire(&mm->drains);

	drain_this_cpu(mm, true);
	say_drained(mine, g);
}

void pcp_leave_slow(struct mm *mm)
{
	struct pcp *mine = mm->pcp[cpu_id()];

	while (atomic_load_relaxed(&mine->drain_wanted)) {
		drain_and_say(mm, mine);
		atomic_store_relaxed(&mine->drain_wanted, 0);
	}
}

/*
 * Runs on the owner, in its interrupt. If the interrupted code is inside the allocator or stands at
 * the lock, a note stays.
 */
static void drain_here(struct mm *mm, bool may_wait)
{
	struct pcp *mine = pcp_of_this_cpu(mm);
	const u64 g = atomic_load_acquire(&mm->drains);

	if (!mine->inside && drain_this_cpu(mm, may_wait))
		say_drained(mine, g);
	atomic_store_relaxed(&mine->drain_wanted, (u8)!has_drained(mine, g));
}

/* First request, to all CPUs that hold something: drain if the lock is free just now. */
static void drain_request(void *arg)
{
	drain_here(arg, false);
}

/*
 * Repeated request, to a CPU that is late. Where other CPUs queue without end the lock is never
 * free, so this one may wait for it.
 */
static void drain_request_again(void *arg)
{
	drain_here(arg, locks_none());
}

/* The CPUs that hold something, without the caller. */
static void choose_holders(const struct mm *mm, struct percpu *self, u64 g)
{
	cpu_t cpu;

	cpumask_copy(&self->round_targets, &cpus_online);
	cpumask_clear(&self->round_targets, self->id);
	cpumask_foreach(cpu, &self->round_targets) {
		if (has_drained(mm->pcp[cpu], g))
			cpumask_clear(&self->round_targets, cpu);
	}
}

/* Run the next drain from beginning to end. The caller has the claim. */
static void drain_all(struct mm *mm)
{
	struct percpu *self = this_cpu();
	const u64 g = atomic_fetch_add(&mm->drains, 1) + 1; /* also a full fence: see pcp.h */
	struct pcp *mine;
	cpu_t cpu;

	mine = pcp_enter(mm);
	drain_and_say(mm, mine);
	pcp_leave(mm, mine);
	choose_holders(mm, self, g);
	counter_add(&mm->drain_messages, call_cpus(&self->round_targets, drain_request, mm));
	cpumask_foreach(cpu, &self->round_targets) {
		struct wait wait = wait_begin(WAIT_DRAIN, "a drain of per-CPU lists");

		while (!has_drained(mm->pcp[cpu], g)) {
			wait_spin(&wait, cpu);
			call_cpu(cpu, drain_request_again, mm);
		}
	}
	atomic_store_release(&mm->drains_done, g);
	wait_moved(WAIT_DRAINED);
}

u64 pcp_drain_tag(const struct mm *mm)
{
	/* a CPU that sees the drain begun also sees what the caller has changed before */
	fence_full();
	return atomic_load_relaxed(&mm->drains) + 1;
}

/*
 * The claim is held until the drain is done, so that one drain serves all callers that came too
 * late for it.
 */
void pcp_drain_wait(struct mm *mm, u64 tag)
{
	struct wait wait = wait_begin(WAIT_DRAINED, "another CPU's drain of per-CPU lists");

	while (atomic_load_acquire(&mm->drains_done) < tag) {
		if (atomic_load_relaxed(&mm->drain_claim) ||
		    !atomic_cas(&mm->drain_claim, 0, cpu_id() + 1)) {
			wait_spin(&wait, CPU_NONE);
			continue;
		}
		/* otherwise the drain was done while this CPU claimed it */
		if (atomic_load_relaxed(&mm->drains_done) < tag)
			drain_all(mm);
		atomic_store_release(&mm->drain_claim, 0);
	}
}

void pcp_drain_all(struct mm *mm)
{
	pcp_drain_wait(mm, pcp_drain_tag(mm));
}

/*
 * A CPU that begins to hold after the drain sees pcp_disabled. A CPU that was inside the allocator
 * drains as it leaves.
 */
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

/* The frames that are held beside the slots. */
static s64 beside_slots(const struct pcp_zone *z)
{
	return (s64)(atomic_load_relaxed(&z->huge_count) * order_pages(BLOCK_ORDER)) +
	       (atomic_load_relaxed(&z->recent.hot) != NULL);
}

u64 pcp_count(const struct mm *mm, const struct zone *zone)
{
	s64 frames = 0;

	for (cpu_t cpu = 0; cpu < cpu_count; cpu++) {
		const struct pcp_zone *z = mm->pcp[cpu]->zone[zone->index];

		frames += atomic_load_relaxed(&z->held) + beside_slots(z);
	}
	return (u64)frames;
}

s64 pcp_in_use(const struct mm *mm, const struct zone *zone)
{
	s64 frames = 0;

	/* the words of one CPU side by side: it may change them together at any moment */
	for (cpu_t cpu = 0; cpu < cpu_count; cpu++) {
		const struct pcp_zone *z = mm->pcp[cpu]->zone[zone->index];

		frames += atomic_load_relaxed(&z->moved) - atomic_load_relaxed(&z->held) -
			  beside_slots(z);
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
	if (z->recent.hot && page_to_pfn(z->recent.hot) >> BLOCK_ORDER == index) {
		const pfn_t pfn = page_to_pfn(z->recent.hot);

		map[pfn % BLOCK_FRAMES / 64] |= 1ULL << pfn % 64;
		frames++;
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

			sum.lookups += atomic_load_relaxed(&z->lookups) +
				       atomic_load_relaxed(&z->lookups_fast);
			sum.fetch_lookups += atomic_load_relaxed(&z->fetch_lookups);
			sum.drain_lookups += atomic_load_relaxed(&z->drain_lookups);
			sum.drained += atomic_load_relaxed(&z->drained);
			sum.stale += atomic_load_relaxed(&z->stale);
			sum.refills += atomic_load_relaxed(&z->refills);
			sum.evictions += atomic_load_relaxed(&z->evictions);
		}
	}
	return sum;
}
