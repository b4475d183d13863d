/* Recording owners, and counting pages by owner: see page_owner.h. */
#include "mm/page/page_owner.h"

#include <arch/clock.h>
#include <arch/console.h>

#include "kernel/core/lock.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "mm/page/page_alloc.h"
#include "mm/zone/section.h"

enum { OWNERS_MAX = 256 };

/* Pages of one order held by one place in the code. */
struct holder {
	virt_t code;
	unsigned order;
	cpu_t cpu; /* of the last of them that was visited */
	u64 pages;
};

static struct spinlock table_lock = SPINLOCK_INIT(LOCK_LEAF);
static struct holder table[OWNERS_MAX]; /* under table_lock, as are the next two */
static unsigned holders;
static u64 not_listed; /* frames of holders for which the table had no room */

void page_owner_allocated(struct page *page, virt_t caller)
{
	atomic_store_relaxed(&page->owner, page_owner_pack(caller, cpu_id()));
	atomic_store_relaxed(&page->held_since, clock_ns());
	atomic_store_relaxed(&page->private[2], 0ULL); /* nobody has freed it */
}

void page_owner_text(u64 owner, char *buf, size_t size)
{
	u64 offset = 0;
	const char *name = owner ? symbol_lookup(page_owner_code(owner) - 1, &offset) : NULL;

	if (name)
		format(buf, size, "%s+0x%llx on CPU %u", name, offset + 1, page_owner_cpu(owner));
	else
		format(buf, size, "an unknown owner");
}

/* ---- counting ---- */

static struct holder *holder_of(virt_t code, unsigned order)
{
	for (unsigned i = 0; i < holders; i++)
		if (table[i].code == code && table[i].order == order)
			return &table[i];
	if (holders == OWNERS_MAX)
		return NULL;
	table[holders] = (struct holder){.code = code, .order = order};
	return &table[holders++];
}

/* The visitor of page_owner_summary(). */
static void count_page(const struct page *page, pfn_t pfn, unsigned order, void *arg)
{
	const u64 *since = arg;
	struct holder *holder;

	if (page->held_since < *since)
		return;
	holder = holder_of(page->owner ? page_owner_code(page->owner) : 0, order);
	if (!holder) {
		not_listed += order_pages(order);
		return;
	}
	holder->pages++;
	holder->cpu = page_owner_cpu(page->owner);
}

/* ---- visiting ---- */

/*
 * Visit pages of 4 KiB to 1 MiB, one after the other. The visit of the block ends when a struct
 * page disappears meanwhile.
 */
static void visit_small_pages(struct mm *mm, u32 index, page_visit_fn *visit, void *arg)
{
	for (u64 i = 0; i < BLOCK_FRAMES;) {
		const u16 not_held =
			PAGE_BUDDY | PAGE_PCP | PAGE_TAIL | PAGE_RESERVED | PAGE_BOOT | PAGE_BAD;
		struct page page;
		unsigned order;

		if (!mm_page_peek(mm, block_pfn(index) + i, &page))
			return;
		order = page.flags & (PAGE_BUDDY | PAGE_COMPOUND) ? MIN(page.order, BLOCK_ORDER)
								  : 0;
		/* a free page that a CPU holds keeps its old flags */
		if (page.refcount > 0 && !(page.flags & not_held))
			visit(&page, block_pfn(index) + i, order, arg);
		i += order_pages(order);
	}
}

static void visit_block(struct mm *mm, u32 index, page_visit_fn *visit, void *arg)
{
	struct block_word word;
	struct page page;

	if (block_run_head(mm, index, &word) != index ||
	    (word.flags & (BLOCK_FREE | BLOCK_TRANSIT | BLOCK_POOL_FREE)))
		return;
	if (word.state != BLOCK_HUGE && !(word.flags & BLOCK_POOL)) {
		if (word.state == BLOCK_FULL || word.state == BLOCK_RESERVED)
			visit_small_pages(mm, index, visit, arg);
	} else if (mm_page_peek(mm, block_pfn(index), &page) && page.refcount > 0) {
		visit(&page, block_pfn(index), word.order, arg);
	}
}

void page_owner_visit(struct mm *mm, page_visit_fn *visit, void *arg)
{
	for (u64 section = section_first(mm); section < section_end(mm); section++)
		for (u32 i = 0; section_state(mm, section) == SECTION_OPEN && i < SECTION_BLOCKS;
		     i++)
			visit_block(mm, (u32)(section * SECTION_BLOCKS) + i, visit, arg);
}

/* ---- printing ---- */

static u64 frames_of(const struct holder *holder)
{
	return holder->pages * order_pages(holder->order);
}

static struct holder *largest(void)
{
	struct holder *best = NULL;

	for (unsigned i = 0; i < holders; i++)
		if (table[i].pages && (!best || frames_of(&table[i]) > frames_of(best)))
			best = &table[i];
	return best;
}

static void print_holder(const struct holder *holder)
{
	char who[96];

	page_owner_text(holder->code ? page_owner_pack(holder->code, holder->cpu) : 0, who,
			sizeof(who));
	print("  # owner %8llu frames %6llu pages of order %2u  %s\n", frames_of(holder),
	      holder->pages, holder->order, who);
}

u64 page_owner_summary(struct mm *mm, u64 since, unsigned lines)
{
	struct holder *holder;
	u64 frames, rest;

	spin_lock(&table_lock);
	holders = 0;
	not_listed = 0;
	page_owner_visit(mm, count_page, &since);
	frames = not_listed;
	for (unsigned i = 0; i < holders; i++)
		frames += frames_of(&table[i]);
	rest = frames;
	for (; lines > 0; lines--) {
		holder = largest();
		if (!holder)
			break;
		print_holder(holder);
		rest -= frames_of(holder);
		holder->pages = 0;
	}
	spin_unlock(&table_lock);
	if (rest)
		print("  # owner %8llu frames of others\n", rest);
	return frames;
}
