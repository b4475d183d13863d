/* Recording owners, and counting pages by owner: see page_owner.h. */
#include "mm/page/page_owner.h"

#include <arch/clock.h>
#include <arch/console.h>

#include "kernel/core/lock.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "mm/page/page_alloc.h"
#include "mm/zone/buddy.h"
#include "mm/zone/section.h"

enum { OWNERS_MAX = 256 };

/* Pages of one order held by one place in the code. */
struct holder {
	virt_t code;
	unsigned order;
	cpu_t cpu; /* of the youngest page */
	u64 pages, youngest;
};

static struct spinlock table_lock = SPINLOCK_INIT(LOCK_LEAF);
static struct holder table[OWNERS_MAX]; /* under table_lock, as are the next two */
static unsigned holders;
static u64 not_listed; /* frames of holders for which the table had no room */

void page_owner_allocated(struct page *page, virt_t caller)
{
	atomic_store_relaxed(&page->owner, page_owner_pack(caller, cpu_id()));
	atomic_store_relaxed(&page->held_since, clock_ns());
}

void page_owner_freed(struct page *page, virt_t caller)
{
	atomic_store_relaxed(&page->private[2], page_owner_pack(caller, cpu_id()));
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

	(void)pfn;
	if (page->held_since < *since)
		return;
	holder = holder_of(page->owner ? page_owner_code(page->owner) : 0, order);
	if (!holder) {
		not_listed += order_pages(order);
		return;
	}
	holder->pages++;
	if (page->held_since >= holder->youngest) {
		holder->youngest = page->held_since;
		holder->cpu = page_owner_cpu(page->owner);
	}
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

/* Visit one page of 2 MiB or 1 GiB by its head. */
static void visit_huge_page(struct mm *mm, u32 index, unsigned order, page_visit_fn *visit,
			    void *arg)
{
	struct page page;

	if (mm_page_peek(mm, block_pfn(index), &page) && page.refcount > 0)
		visit(&page, block_pfn(index), order, arg);
}

/* Does this block belong to a 1 GiB page in use without being its first? */
static bool is_inside_giga(const struct mm *mm, u32 index)
{
	const struct block_word head = block_look_at(mm, ALIGN_DOWN(index, GIB_BLOCKS));

	return index % GIB_BLOCKS != 0 && head.order == GIGA_ORDER && !(head.flags & BLOCK_FREE);
}

static void visit_block(struct mm *mm, u32 index, page_visit_fn *visit, void *arg)
{
	const struct block_word word = block_look_at(mm, index);

	if (word.flags & (BLOCK_FREE | BLOCK_TRANSIT | BLOCK_POOL_FREE) ||
	    is_inside_giga(mm, index) || buddy_find_run(mm, index) != BLOCK_NONE)
		return;
	if (word.state == BLOCK_HUGE || word.flags & BLOCK_POOL)
		visit_huge_page(mm, index, word.order, visit, arg);
	else if (word.state == BLOCK_FULL || word.state == BLOCK_RESERVED)
		visit_small_pages(mm, index, visit, arg);
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
	print("  # owner %8llu frames %6llu pages of order %2u  %s", frames_of(holder),
	      holder->pages, holder->order, who);
	if (holder->youngest)
		print(", last at %llu.%06llu s", holder->youngest / NS_PER_S,
		      holder->youngest % NS_PER_S / NS_PER_US);
	print("\n");
}

u64 page_owner_summary(struct mm *mm, u64 since, unsigned lines)
{
	struct holder *holder;
	u64 frames = 0, rest;

	spin_lock(&table_lock);
	holders = 0;
	not_listed = 0;
	page_owner_visit(mm, count_page, &since);
	rest = not_listed;
	for (unsigned i = 0; i < holders; i++)
		frames += frames_of(&table[i]);
	frames += rest;
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
