/*
 * The watcher, which models a TLB that never drops a translation by itself.
 *
 * Every CPU is assumed to have cached every translation of the vmemmap windows that was present
 * since its last flush. This is the worst that hardware may do (Intel SDM vol. 3A, 4.10.2.3 and
 * 4.10.5), and here it happens on every run. Time is a counter of changes:
 *
 *	pte_store() takes a translation away      when = ++now; remember {frame, address, when}
 *	tlb_flush_local_all()                     flushed = now, read before
 *	tlb_flush_local_page(v)                   page_flushed[v] = now
 *	check_frames_reused(f)                    for each change kept of f, each online CPU:
 *	                                          flushed >= when, or page_flushed[v] >= when, or
 *	                                          the CPU sleeps and will flush first
 *
 * A sleeping CPU that passes a check for that reason owes a flush up to `when`. It must flush
 * before it does anything else, or watch_awake() ends the run. Sleeping is no excuse where a
 * page-table page or a mapping's size changed.
 *
 * Locks: one per bucket of remembered changes, one per CPU; the second may be taken inside the
 * first.
 */
#ifndef HOST_FAST

#include <arch/check.h>
#include <arch/tlb.h>

#include "tests/host/host.h"

enum {
	BUCKETS = 1 << 14,
	PRUNE_AT = 8,
	SIZE_SLOTS = VMEMMAP_WINDOWS * (VMEMMAP_WINDOW_SIZE >> 21),
	PLACE_MAX = 96
};

struct bucket {
	pthread_mutex_t lock;
	struct watch_change *change; /* unordered */
	u32 count, room, prune_at;
};

/*
 * The pages that were flushed one by one since the last full flush, as a hash with open addressing;
 * virt 0 marks a free slot.
 */
struct page_flush {
	virt_t virt;
	u64 when;
};

struct watched_cpu {
	pthread_mutex_t lock;
	u64 flushed;
	u64 owed;    /* passed a check while asleep: must have flushed up to this when it wakes */
	bool asleep; /* from the halt until this CPU's next action */
	struct page_flush *page;
	u32 pages, page_slots;
} __cacheline_aligned;

static u64 now;
static struct bucket buckets[BUCKETS] = {[0 ... BUCKETS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};
static struct watched_cpu watched[HOST_CPUS_MAX] = {
	[0 ... HOST_CPUS_MAX - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

/* When the mapping size last changed, per 2 MiB of window; 0: never. */
static struct {
	u64 when;
	const void *place;
} size_change[SIZE_SLOTS];

static struct bucket *bucket_of(pfn_t pfn)
{
	return &buckets[pfn * 0x9e3779b97f4a7c15ULL >> 50];
}

/* Make room for one more element. The host is assumed to have enough memory. */
static void *grow(void *array, u32 count, u32 *room, size_t element)
{
	if (count < *room)
		return array;
	*room = *room ? *room * 2 : 8;
	array = realloc(array, *room * element);
	if (!array)
		host_die("out of host memory");
	return array;
}

static struct page_flush *page_slot(struct page_flush *page, u32 slots, virt_t virt)
{
	u32 i = (u32)((virt >> PAGE_SHIFT) * 0x9e3779b97f4a7c15ULL >> 32);

	for (i %= slots; page[i].virt && page[i].virt != virt; i = (i + 1) % slots)
		;
	return &page[i];
}

/* Double the hash before it is half full. */
static void page_hash_grow(struct watched_cpu *cpu)
{
	u32 slots = MAX(cpu->page_slots * 2, 64);
	struct page_flush *page;

	if (cpu->pages < cpu->page_slots / 2)
		return;
	page = calloc(slots, sizeof(*page));
	if (!page)
		host_die("out of host memory");
	for (u32 i = 0; i < cpu->page_slots; i++) {
		if (cpu->page[i].virt)
			*page_slot(page, slots, cpu->page[i].virt) = cpu->page[i];
	}
	free(cpu->page);
	cpu->page = page;
	cpu->page_slots = slots;
}

/*
 * Has this CPU flushed the page of the change? By the strict reading of the manual, INVLPG counts
 * for leaves only.
 */
static bool cpu_dropped_page(const struct watched_cpu *cpu, const struct watch_change *change)
{
	const struct page_flush *flush;

	if (change->is_table || !cpu->pages)
		return false;
	flush = page_slot(cpu->page, cpu->page_slots, change->virt);
	return flush->virt && flush->when >= change->when;
}

/*
 * True if this CPU can no longer use the old translation. With `excuse`, being asleep counts, and
 * the CPU then owes a flush.
 */
static bool cpu_is_past(cpu_t id, const struct watch_change *change, bool excuse)
{
	struct watched_cpu *cpu = &watched[id];
	bool past;

	if (atomic_load_acquire(&cpu->flushed) >= change->when)
		return true;
	pthread_mutex_lock(&cpu->lock);
	past = cpu->flushed >= change->when || cpu_dropped_page(cpu, change);
	if (!past && excuse && change->idle_is_safe &&
	    (cpu->asleep || atomic_load_acquire(&cpu_data(id)->idle))) {
		cpu->owed = MAX(cpu->owed, change->when);
		past = true;
	}
	pthread_mutex_unlock(&cpu->lock);
	return past;
}

static cpu_t cpu_not_past(const struct watch_change *change, bool excuse)
{
	cpu_t id;

	cpumask_foreach(id, &cpus_online) {
		if (!cpu_is_past(id, change, excuse))
			return id;
	}
	return CPU_NONE;
}

/*
 * Forget changes that every CPU has flushed. Changes that a CPU passed only because it sleeps are
 * kept, as they may be checked again.
 */
static void prune(struct bucket *b)
{
	u32 kept = 0;

	for (u32 i = 0; i < b->count; i++) {
		if (cpu_not_past(&b->change[i], false) != CPU_NONE)
			b->change[kept++] = b->change[i];
	}
	atomic_store_relaxed(&b->count, kept);
	b->prune_at = MAX(PRUNE_AT, 2 * kept);
}

void watch_changed(struct watch_change *change)
{
	struct bucket *b = bucket_of(change->pfn);
	irq_flags_t flags = irq_save(); /* an interrupt here could ask for the same mutex again */

	check_event(change->is_table ? CHECK_TABLE : CHECK_PTE, change->virt, change->pfn);
	change->when = atomic_fetch_add(&now, 1) + 1;
	pthread_mutex_lock(&b->lock);
	if (b->count >= MAX(b->prune_at, PRUNE_AT))
		prune(b);
	b->change = grow(b->change, b->count, &b->room, sizeof(*b->change));
	b->change[b->count] = *change;
	atomic_store_relaxed(&b->count, b->count + 1); /* check_frame() reads it before it locks */
	pthread_mutex_unlock(&b->lock);
	irq_restore(flags);
}

/* "vmemmap_clear+0x1c" */
static const char *place_name(const void *place, char *buf, size_t size)
{
	u64 offset = 0;
	const char *name = symbol_lookup((virt_t)place, &offset);

	format(buf, size, "%s+0x%llx", name ? name : "?", offset);
	return buf;
}

static void report(const struct watch_change *change, cpu_t cpu)
{
	char who[PLACE_MAX];

	panic("frame 0x%llx is reused while CPU %u may still %s it %s 0x%llx: that entry was "
	      "changed by %s and the CPU "
	      "has not flushed since",
	      change->pfn, cpu, change->writable ? "write to" : "read",
	      change->is_table ? "as the page table of" : "through", change->virt,
	      place_name(change->place, who, sizeof(who)));
}

/* Panic if an online CPU may still reach this frame through an old translation. */
static void check_frame(pfn_t pfn)
{
	struct bucket *b = bucket_of(pfn);
	struct watch_change bad;
	cpu_t cpu = CPU_NONE;

	if (atomic_load_relaxed(&b->count) == 0)
		return;
	pthread_mutex_lock(&b->lock);
	for (u32 i = 0; i < b->count && cpu == CPU_NONE; i++) {
		if (b->change[i].pfn != pfn)
			continue;
		bad = b->change[i];
		cpu = cpu_not_past(&bad, true);
	}
	pthread_mutex_unlock(&b->lock);
	if (cpu != CPU_NONE)
		report(&bad, cpu);
}

void check_frames_reused(pfn_t pfn, u64 count)
{
	u64 began;
	irq_flags_t flags;

	if (host_config.unwatched)
		return;
	began = host_simulate_begin();
	flags = irq_save();
	check_event(CHECK_REUSED, pfn, count);
	for (u64 i = 0; i < count; i++)
		check_frame(pfn + i);
	host_shadow_unwritten(pfn, count);
	host_simulate_end(began);
	irq_restore(flags);
}

static unsigned size_slot(virt_t virt)
{
	return (unsigned)((virt - VMEMMAP_BASE) / MIB(2));
}

void watch_size_changed(virt_t virt, const void *place)
{
	size_change[size_slot(virt)].place = place;
	atomic_store_release(&size_change[size_slot(virt)].when, atomic_fetch_add(&now, 1) + 1);
}

void watch_size_settled(virt_t virt, const void *place)
{
	struct watch_change change = {.virt = ALIGN_DOWN(virt, MIB(2)), .is_table = true};
	u64 when = atomic_load_acquire(&size_change[size_slot(virt)].when);
	char who[PLACE_MAX], before[PLACE_MAX];
	cpu_t cpu;

	if (!when)
		return;
	change.when = when;
	cpu = cpu_not_past(&change, false);
	if (cpu != CPU_NONE)
		panic("the entry of 0x%llx is changed by %s although CPU %u may still have its 2 "
		      "MiB in another "
		      "mapping size (changed by %s): no round of all CPUs came between",
		      virt, place_name(place, who, sizeof(who)), cpu,
		      place_name(size_change[size_slot(virt)].place, before, sizeof(before)));
	atomic_cas(&size_change[size_slot(virt)].when, when, 0);
}

void tlb_flush_local_all(void)
{
	struct watched_cpu *cpu = &watched[host_me->id];
	irq_flags_t flags;
	u64 began, seen;

	host_point(HOST_FLUSH, NULL);
	began = host_simulate_begin();
	flags = host_irq_save_quiet();
	seen = atomic_load_acquire(&now);

	pthread_mutex_lock(&cpu->lock);
	atomic_store_release(&cpu->flushed, seen);
	if (cpu->pages)
		memset(cpu->page, 0, cpu->page_slots * sizeof(*cpu->page));
	cpu->pages = 0;
	pthread_mutex_unlock(&cpu->lock);
	host_irq_restore_quiet(flags);
	host_simulate_end(began);
}

void tlb_flush_local_page(virt_t virt)
{
	struct watched_cpu *cpu = &watched[host_me->id];
	struct page_flush *slot;
	irq_flags_t flags;
	u64 began, seen;

	host_point(HOST_FLUSH, (const void *)ALIGN_DOWN(virt, PAGE_SIZE));
	began = host_simulate_begin();
	flags = host_irq_save_quiet();
	seen = atomic_load_acquire(&now);
	pthread_mutex_lock(&cpu->lock);
	page_hash_grow(cpu);
	slot = page_slot(cpu->page, cpu->page_slots, ALIGN_DOWN(virt, PAGE_SIZE));
	cpu->pages += !slot->virt;
	*slot = (struct page_flush){.virt = ALIGN_DOWN(virt, PAGE_SIZE), .when = seen};
	pthread_mutex_unlock(&cpu->lock);
	host_irq_restore_quiet(flags);
	host_simulate_end(began);
}

void watch_halt(void)
{
	struct watched_cpu *cpu = &watched[host_me->id];

	pthread_mutex_lock(&cpu->lock);
	cpu->asleep = atomic_load_relaxed(&this_cpu()->idle);
	pthread_mutex_unlock(&cpu->lock);
}

void watch_awake(void)
{
	struct watched_cpu *cpu = &watched[host_me->id];
	bool in_debt;

	if (!atomic_load_relaxed(&cpu->asleep) || atomic_load_relaxed(&this_cpu()->idle))
		return;
	pthread_mutex_lock(&cpu->lock);
	cpu->asleep = false;
	in_debt = cpu->flushed < cpu->owed;
	pthread_mutex_unlock(&cpu->lock);
	if (in_debt)
		panic("CPU %u woke and went on without flushing, although frames it may still "
		      "reach were reused while "
		      "it slept",
		      host_me->id);
}

#endif
