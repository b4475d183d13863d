/*
 * Touching huge mappings: find a page for the entry and clear it around the touch. See huge_map.h.
 *
 *   entry    0 --claim--> claimed --find, clear--> present        others wait while it is claimed
 *                            |
 *                            '----- no page: 0 again, or a table of smaller pages
 *
 * Source of the order of clearing: mm/clear/clear.h.
 */
#include "mm/mapping/huge_fault.h"

#include <arch/barrier.h>
#include <arch/cpu.h>

#include "kernel/core/context.h"
#include "kernel/core/padata.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/core/reason_set.h"
#include "kernel/core/verdict.h"
#include "kernel/core/wait.h"
#include "mm/clear/clear.h"
#include "mm/pools.h"
#include "mm/mapping/huge_entry.h"
#include "mm/memmap/zone.h"
#include "mm/page/page_alloc.h"
#include "mm/page/pressure.h"

pte_t huge_unclaimed(const pte_t *entry)
{
	pte_t pte = pte_load(entry);
	struct wait wait;

	if (!pte_claimed(pte))
		return pte;
	wait = wait_begin(WAIT_TOUCH, "a huge page that another CPU clears");
	atomic_add_relaxed(&huge_counts.waited, 1);
	for (pte = pte_load(entry); pte_claimed(pte); pte = pte_load(entry))
		wait_spin(&wait, CPU_NONE);
	return pte;
}

/* ---- tables ---- */

void huge_fill_table(pte_t *table, pte_t value)
{
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++)
		table[i] = value;
}

/*
 * Turn the claimed entry, which was `old` and absent, into a table, or release it as it was. The
 * rights that it recorded for pages to come are recorded in each entry of the table.
 */
static bool store_table(pte_t *entry, virt_t virt, enum pt_level level, pte_t old)
{
	struct page *page = NULL;

	if (fail_here(&mm_kernel.fail, FAIL_PTE))
		reason_set(REASON_NO_MEMORY);
	else
		page = mm_page_alloc(&mm_kernel, 0, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);
	if (page && old)
		huge_fill_table(page_address(page), old);
	fence_store(); /* the table is complete before any entry points to it */
	pte_store(entry, ALIGN_DOWN(virt, pt_level_size(level)), level,
		  page ? pte_make_table(page_to_pfn(page)) : old);
	if (page && level == PT_PGD)
		atomic_add_relaxed(&huge_counts.tables_kept, 1);
	return page;
}

/* The table under an entry that is no leaf, made if necessary. NULL if there is no memory. */
static pte_t *table_below(pte_t *entry, virt_t virt, enum pt_level level)
{
	for (;;) {
		const pte_t pte = huge_unclaimed(entry);

		if (pte_present(pte))
			return pte_table(pte);
		if (pte_claim(entry, pte) && !store_table(entry, virt, level, pte))
			return NULL;
	}
}

/* The entry for a page of the mapping's own size. */
static pte_t *entry_of(const struct huge_map *map, virt_t addr)
{
	pte_t *table = phys_to_virt(pgtable_root() << PAGE_SHIFT);

	for (enum pt_level level = PT_PGD; table && level > map->level; level--)
		table = table_below(&table[pt_index(addr, level)], addr, level);
	return table ? &table[pt_index(addr, map->level)] : NULL;
}

/* ---- pages ---- */

/* Use one promised page, if any is left. */
static bool use_promise(struct huge_map *map)
{
	u64 left = atomic_load_relaxed(&map->promised);

	while (left > 0 && !atomic_cas(&map->promised, left, left - 1))
		left = atomic_load_relaxed(&map->promised);
	return left > 0;
}

/* A page of a pool that is promised to nobody. Where the mapping binds, from its node only. */
static struct page *take_from_pool(const struct huge_map *map, enum pt_level level, node_t node)
{
	struct page *page = pool_page_take(huge_pool(level), node, POOL_ANY);

	if (!page || !(map->flags & HUGE_BIND) || mm_kernel.zone[page->zone].node == node)
		return page;
	pool_page_give(huge_pool(level), page);
	return reason_null(REASON_NO_POOL_PAGE);
}

/*
 * The CPU has claimed the entry and pinned the mapping, so no program is asked for memory here
 * (mm/page/pressure.h). huge_fault() and huge_populate() ask when they have let go of both.
 */
static struct page *find_page(struct huge_map *map, enum pt_level level)
{
	const node_t node = map->flags & (HUGE_NODE | HUGE_BIND) ? map->node : this_cpu()->node;
	const unsigned request = map->flags & HUGE_BIND ? PAGE_NODE : 0;
	struct page *page;

	if (level == PT_PAGE)
		return mm_page_alloc(&mm_kernel, 0, USE_UNMOVABLE, request, node);
	if (level == map->level && use_promise(map)) {
		page = pool_page_take(huge_pool(level), node, POOL_RESERVED);
		if (!page) /* the promised page is still the pool's */
			atomic_fetch_add(&map->promised, 1);
		return page;
	}
	page = take_from_pool(map, level, node);
	if (page || (map->flags & HUGE_POOL))
		return page;
	return mm_page_alloc(&mm_kernel, level == PT_PUD ? GIGA_ORDER : BLOCK_ORDER, USE_UNMOVABLE,
			     request, node);
}

static void clear_page(struct page *page, enum pt_level level, u64 hint)
{
	struct clear_how how;

	if (level == PT_PAGE) {
		clear_pages(page_address(page), 1);
		return;
	}
	how = clear_how_selected();
	clear_huge(&how, page_address(page), pt_level_size(level), hint,
		   mm_kernel.zone[page->zone].node);
}

/* Map the pieces of a page by the entries below a split one, each with its rights. */
static void fill_pieces(const struct huge_map *map, pte_t *table, enum pt_level level, virt_t base,
			pfn_t pfn, pte_t first)
{
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		const virt_t virt = base + i * pt_level_size(level);
		const pfn_t here = pfn + i * (pt_level_size(level) >> PAGE_SHIFT);
		const pte_t old = pte_load(&table[i]), piece = i > 0 ? PTE_PIECE : first;

		if (entry_is_split(old, level))
			fill_pieces(map, pte_table(old), level - 1, virt, here, piece);
		else
			pte_store(&table[i], virt, level,
				  entry_make(here, level, entry_access(map, old),
					     (old & ENTRY_ACCESS) | piece));
	}
}

/* Find a page for an entry that the caller has claimed and that was `old`, clear it and map it. */
static bool bring_page(struct huge_map *map, pte_t *entry, virt_t addr, enum pt_level level,
		       pte_t old, bool is_hint)
{
	const virt_t virt = ALIGN_DOWN(addr, pt_level_size(level));
	struct page *page = find_page(map, level);

	if (!page)
		return false;
	clear_page(page, level, is_hint ? addr - virt : CLEAR_NO_HINT);
	atomic_add_relaxed(&huge_counts.faults[level], 1);
	atomic_add_relaxed(&huge_counts.mapped[level], 1);
	if (entry_is_split(old, level)) {
		fill_pieces(map, pte_table(old), level - 1, virt, page_to_pfn(page), 0);
		pte_store(entry, virt, level, old);
		return true;
	}
	pte_store(entry, virt, level,
		  entry_make(page_to_pfn(page), level, entry_access(map, old), old));
	return true;
}

/* The answer of an entry's rights to a touch; HUGE_THERE: nothing against it. */
static enum huge_touched judge_entry(const struct huge_map *map, pte_t pte, enum huge_want want)
{
	const enum huge_access access = entry_access(map, pte);

	if (access == HUGE_NONE)
		return HUGE_REFUSED;
	return want == HUGE_TO_WRITE && access == HUGE_READ_ONLY ? HUGE_REFUSED_WRITE : HUGE_THERE;
}

/*
 * The answer of a split entry's rights to a touch; the caller has claimed the entry. *there: the
 * pieces are.
 */
static enum huge_touched judge_piece(const struct huge_map *map, pte_t pte, enum pt_level level,
				     virt_t addr, enum huge_want want, bool *there)
{
	while (entry_is_split(pte, level)) {
		level--;
		pte = pte_load(&pte_table(pte)[pt_index(addr, level)]);
	}
	*there = entry_has_page(pte, level);
	return want == HUGE_TO_POPULATE ? HUGE_THERE : judge_entry(map, pte, want);
}

/* Handle a claimed entry that was `old`, absent or split, and release it. */
static enum huge_touched touch_claimed(struct huge_map *map, pte_t *entry, virt_t addr,
				       enum pt_level level, pte_t old, enum huge_want want)
{
	enum huge_touched touched = HUGE_THERE;
	bool there = false;

	if (entry_is_split(old, level))
		touched = judge_piece(map, old, level, addr, want, &there);
	if (touched == HUGE_THERE && !there) {
		if (bring_page(map, entry, addr, level, old, want != HUGE_TO_POPULATE))
			return HUGE_THERE;
		touched = HUGE_NO_PAGE;
		if (level > PT_PAGE && (map->flags & HUGE_FALLBACK) && !pte_present(old))
			return touched; /* still claimed: the caller looks for smaller pages */
	}
	pte_store(entry, ALIGN_DOWN(addr, pt_level_size(level)), level, old);
	return touched;
}

enum huge_touched huge_touch(struct huge_map *map, virt_t addr, enum huge_want want)
{
	enum pt_level level = map->level;
	pte_t *entry = entry_of(map, addr);

	while (entry) {
		const pte_t pte = huge_unclaimed(entry);
		enum huge_touched touched;

		if (entry_is_table(pte, level)) { /* smaller pages are mapped here */
			level--;
			entry = &pte_table(pte)[pt_index(addr, level)];
			continue;
		}
		if (!entry_is_split(pte, level)) {
			touched = judge_entry(map, pte, want);
			if (touched != HUGE_THERE)
				return want == HUGE_TO_POPULATE ? HUGE_THERE : touched;
			if (pte_is_leaf(pte, level))
				return HUGE_THERE;
		}
		if (!pte_claim(entry, pte))
			continue;
		touched = touch_claimed(map, entry, addr, level, pte, want);
		if (touched != HUGE_NO_PAGE)
			return touched;
		if (level == PT_PAGE || !(map->flags & HUGE_FALLBACK) || pte_present(pte) ||
		    !store_table(entry, addr, level, pte))
			break;
	}
	atomic_add_relaxed(&huge_counts.exhausted, 1);
	return HUGE_NO_PAGE;
}

/* ---- a fault ---- */

/*
 * The mapping is no longer pinned, so the callback may do anything, including touching and
 * unmapping mappings.
 */
static void exhausted(huge_exhausted_fn *fn, void *ctx, virt_t addr)
{
	if (fn && fn(ctx, (void *)addr))
		return;
	pr_err("no page for the touch of %llx in a huge mapping: the run ends", addr);
	verdict_end_with(VERDICT_FAIL);
}

/* Why the access is illegal, or FAULT_RETRY if a page may be brought for it. */
static enum fault_result judge(const struct huge_map *map, virt_t addr, bool exec)
{
	if (!map)
		return huge_map_missing(addr);
	if (exec)
		return FAULT_HUGE_EXEC;
	if (!context_may(CONTEXT_ORDINARY))
		return FAULT_HUGE_CONTEXT;
	return FAULT_RETRY;
}

/* The answer to a touch that found no page, given once the mapping is no longer pinned. */
struct need {
	huge_exhausted_fn *fn;
	void *ctx;
	unsigned order; /* of the page */
	unsigned asked; /* pressure_ask() */
	enum huge_touched touched;
};

static enum fault_result touch(virt_t addr, bool write, bool exec, bool interruptible,
			       struct need *need)
{
	const struct huge_pin pin = huge_pin(addr);
	const enum fault_result why = judge(pin.map, addr, exec);

	if (why == FAULT_RETRY) {
		if (interruptible)
			irq_enable();
		need->touched = huge_touch(pin.map, addr, write ? HUGE_TO_WRITE : HUGE_TO_READ);
		need->fn = pin.map->exhausted;
		need->ctx = pin.map->ctx;
		need->order = 9 * pin.map->level;
	}
	huge_unpin(pin);
	return why;
}

enum fault_result huge_fault(virt_t addr, bool write, bool exec, bool interruptible)
{
	struct need need = {.asked = 0};
	enum fault_result why;

	do { /* each time after a program has freed memory */
		why = touch(addr, write, exec, interruptible, &need);
	} while (why == FAULT_RETRY && need.touched == HUGE_NO_PAGE &&
		 pressure_ask(&need.asked, need.order));
	if (why == FAULT_RETRY && need.touched == HUGE_NO_PAGE)
		exhausted(need.fn, need.ctx, addr);
	if (interruptible)
		irq_disable();
	if (why == FAULT_RETRY && need.touched == HUGE_REFUSED_WRITE)
		return FAULT_HUGE_READ_ONLY;
	return why == FAULT_RETRY && need.touched == HUGE_REFUSED ? FAULT_HUGE_NO_ACCESS : why;
}

/* ---- populating ---- */

struct populate {
	struct huge_map *map;
	virt_t start;
	u32 failed; /* enum reason of the CPU that found no page; atomic */
};

static void populate_pages(u64 first, u64 last, void *arg)
{
	struct populate *p = arg;
	const u64 bytes = huge_page_bytes(p->map);

	for (u64 i = first; i < last && !atomic_load_relaxed(&p->failed); i++)
		if (huge_touch(p->map, p->start + i * bytes, HUGE_TO_POPULATE) == HUGE_NO_PAGE)
			atomic_store_relaxed(&p->failed, last_reason());
}

/* The caller's pin also serves its helpers, because the caller waits for them. */
static int populate(void *addr, u64 size, unsigned *order)
{
	const struct huge_pin pin = huge_pin_range(addr, size);
	struct populate p = {.map = pin.map, .start = (virt_t)addr};
	struct padata_mt_job job = {.thread_fn = populate_pages,
				    .arg = &p,
				    .max_threads = cpumask_weight(&cpus_online),
				    .node = NODE_NONE};
	const u64 bytes = pin.map ? huge_page_bytes(pin.map) : 1;

	if (!pin.map || size == 0) {
		huge_unpin(pin);
		return reason_error(size == 0 ? REASON_BAD_SIZE : REASON_BAD_ADDRESS, -EINVAL);
	}
	*order = 9 * pin.map->level;
	job.size = size / bytes;
	job.min_chunk = MAX(CLEAR_EXTENT / bytes, 1);
	padata_run(&job);
	huge_unpin(pin);
	if (!p.failed)
		return 0;
	return reason_error((enum reason)p.failed, -ENOMEM);
}

int huge_populate(void *addr, u64 size)
{
	unsigned order = 0, asked = 0;
	int err;

	context_assert(CONTEXT_ORDINARY);
	do {
		err = populate(addr, size, &order);
	} while (err == -ENOMEM && pressure_ask(&asked, order));
	return err;
}
