/*
 * Per-CPU lists: see pcp.h.
 */
#include "mm/pcp.h"

#include "kernel/call.h"
#include "kernel/panic.h"
#include "kernel/percpu.h"
#include "kernel/wait.h"
#include "mm/buddy.h"

static struct pcp_zone *my_rings(const struct zone *zone)
{
	return &zone->mm->pcp[cpu_id()]->zone[zone->index];
}

static struct page *ring_page(const struct zone *zone, u32 relative)
{
	return pfn_page(zone->mm, zone->start_pfn + relative);
}

/* The count is the owner's; atomic only for those who add up all rings while others work. */
static void ring_push(const struct zone *zone, struct pcp_ring *ring, const struct page *page)
{
	ring->pfn[ring->count] = (u32)(page_to_pfn(page) - zone->start_pfn);
	atomic_store_relaxed(&ring->count, ring->count + 1);
}

void pcp_enter(void)
{
	struct percpu *cpu = this_cpu();

	cpu->in_allocator++;
	fence_compiler(); /* only this CPU's own interrupt looks */
}

/* Give `count` of the oldest pages back; their types are read under the lock, which the caller holds. */
static void ring_drain(struct zone *zone, struct pcp_ring *ring, unsigned order, u32 count)
{
	for (u32 i = 0; i < count; i++) {
		struct page *page = ring_page(zone, ring->pfn[i]);

		page_set_kind(page, 0, 0);
		buddy_free_pages(zone, page, order);
	}
	atomic_store_relaxed(&ring->count, ring->count - count);
	for (u32 i = 0; i < ring->count; i++)
		ring->pfn[i] = ring->pfn[i + count];
}

static void drain_zone(struct zone *zone)
{
	struct pcp_zone *rings = my_rings(zone);

	for (unsigned type = 0; type < MIGRATE_TYPES; type++)
		for (unsigned order = 0; order < PCP_ORDERS; order++)
			ring_drain(zone, &rings->ring[type][order], order, rings->ring[type][order].count);
}

static void drain_this_cpu(struct mm *mm)
{
	for (unsigned z = 0; z < mm->zones; z++) {
		spin_lock(&mm->zone[z].lock);
		drain_zone(&mm->zone[z]);
		spin_unlock(&mm->zone[z].lock);
	}
}

/* The same from an interrupt, which must not wait for a lock that the interrupted code may stand in the way of. */
static bool try_drain_this_cpu(struct mm *mm)
{
	bool all = true;

	for (unsigned z = 0; z < mm->zones; z++) {
		if (!spin_trylock(&mm->zone[z].lock)) {
			all = false;
			continue;
		}
		drain_zone(&mm->zone[z]);
		spin_unlock(&mm->zone[z].lock);
	}
	return all;
}

void pcp_leave(struct mm *mm)
{
	struct percpu *cpu = this_cpu();

	while (cpu->in_allocator == 1 && atomic_load_relaxed(&mm->pcp[cpu->id]->drain_wanted)) {
		drain_this_cpu(mm);
		atomic_store_release(&mm->pcp[cpu->id]->drain_wanted, 0);
	}
	fence_compiler();
	cpu->in_allocator--;
}

struct page *pcp_alloc(struct zone *zone, unsigned order, enum migratetype type)
{
	struct pcp_ring *ring = &my_rings(zone)->ring[type][order];
	struct page *page;

	if (ring->count == 0) {
		spin_lock(&zone->lock);
		while (ring->count < (u32)PCP_BATCH >> order && (page = buddy_take_pages(zone, order, type))) {
			page_set_kind(page, PAGE_PCP, order);
			ring_push(zone, ring, page);
		}
		spin_unlock(&zone->lock);
		if (ring->count == 0)
			return NULL;
	}
	atomic_store_relaxed(&ring->count, ring->count - 1);
	return ring_page(zone, ring->pfn[ring->count]);
}

void pcp_free(struct zone *zone, struct page *page, unsigned order)
{
	struct pcp_zone *rings = my_rings(zone);
	const u8 type = atomic_load_relaxed(&block_of(zone->mm, page_to_pfn(page))->type);
	struct pcp_ring *ring;

	rings->lookups++;
	if (type & BLOCK_ISOLATED) {
		spin_lock(&zone->lock);
		page_set_kind(page, 0, 0);
		buddy_free_pages(zone, page, order);
		spin_unlock(&zone->lock);
		return;
	}
	ring = &rings->ring[type & BLOCK_TYPE_MASK][order];
	if (ring->count == PCP_SIZE) {
		spin_lock(&zone->lock);
		ring_drain(zone, ring, order, PCP_SIZE / 2);
		spin_unlock(&zone->lock);
	}
	page_set_kind(page, PAGE_PCP, order);
	ring_push(zone, ring, page);
}

/* In the interrupt of the rings' owner. What it cannot do now, the owner does on leaving the allocator, or it is asked again. */
static void drain_request(void *arg)
{
	struct percpu *cpu = this_cpu();
	struct mm *mm = arg;
	const bool drained = !cpu->in_allocator && try_drain_this_cpu(mm);

	atomic_store_release(&mm->pcp[cpu->id]->drain_wanted, (u8)!drained);
}

void pcp_drain_all(struct mm *mm)
{
	struct wait wait;
	cpu_t cpu;

	pcp_enter();
	drain_this_cpu(mm);
	pcp_leave(mm);
	call_cpus(&cpus_online, drain_request, mm);
	wait = wait_begin(wait_deadline_cpus(), "a drain of per-CPU lists");
	cpumask_foreach(cpu, &cpus_online) {
		while (cpu != cpu_id() && atomic_load_acquire(&mm->pcp[cpu]->drain_wanted)) {
			wait_spin(&wait, cpu);
			call_cpus(&cpus_online, drain_request, mm);
		}
	}
}

u64 pcp_count(const struct mm *mm, const struct zone *zone)
{
	u64 frames = 0;

	for (cpu_t cpu = 0; cpu < cpu_count; cpu++)
		for (unsigned type = 0; type < MIGRATE_TYPES; type++)
			for (unsigned order = 0; order < PCP_ORDERS; order++)
				frames += atomic_load_relaxed(&mm->pcp[cpu]->zone[zone->index].ring[type][order].count) *
					  order_pages(order);
	return frames;
}

s64 pcp_in_use(const struct mm *mm, const struct zone *zone)
{
	s64 frames = 0;

	for (cpu_t cpu = 0; cpu < cpu_count; cpu++)
		frames += atomic_load_relaxed(&mm->pcp[cpu]->zone[zone->index].in_use);
	return frames;
}

void pcp_add_in_use(struct zone *zone, s64 frames)
{
	s64 *in_use = &my_rings(zone)->in_use;

	atomic_store_relaxed(in_use, *in_use + frames);
}
