/*
 * Writing down owners, and counting by them: see page_owner.h.
 */
#include "mm/page_owner.h"

#include <arch/clock.h>
#include <arch/console.h>

#include "kernel/lock.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "mm/page_alloc.h"
#include "mm/section.h"

enum { OWNERS_MAX = 256 };

/* Pages of one order held by one place in the code. */
struct holder {
	virt_t code;
	unsigned order;
	cpu_t cpu; /* of the youngest */
	u64 pages, youngest;
};

static struct spinlock table_lock = SPINLOCK_INIT(LOCK_LEAF);
static struct holder table[OWNERS_MAX]; /* under the lock */
static unsigned holders;
static u64 not_listed; /* frames of holders that found no room */

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
		format(buf, size, "%s+0x%llx on CPU %u", name, (unsigned long long)offset + 1, page_owner_cpu(owner));
	else
		format(buf, size, "nobody known");
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

static void count_page(const struct page *page, unsigned order, u64 since)
{
	struct holder *holder;

	if (page->refcount == 0 || page->held_since < since)
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

/* Pages of 4 KiB to 1 MiB, one after the other. A struct page that goes away meanwhile ends the block. */
static void count_small_pages(struct mm *mm, u32 index, u64 since)
{
	for (u64 i = 0; i < BLOCK_FRAMES;) {
		const u16 not_held = PAGE_BUDDY | PAGE_PCP | PAGE_TAIL | PAGE_RESERVED | PAGE_BOOT | PAGE_BAD;
		struct page page;
		unsigned order;

		if (!mm_page_peek(mm, block_pfn(index) + i, &page))
			return;
		order = page.flags & (PAGE_BUDDY | PAGE_COMPOUND) ? MIN(page.order, BLOCK_ORDER) : 0;
		if (page.refcount > 0 && !(page.flags & not_held)) /* what CPUs hold free keeps its old flags */
			count_page(&page, order, since);
		i += order_pages(order);
	}
}

static void count_block(struct mm *mm, u32 index, u64 since)
{
	const struct block *block = block_at(mm, index);
	struct page page;

	if (atomic_load_relaxed(&block->flags) & (BLOCK_FREE | BLOCK_TRANSIT | BLOCK_POOL))
		return;
	if (block->state == BLOCK_FULL || block->state == BLOCK_RESERVED)
		count_small_pages(mm, index, since);
	else if (block->state == BLOCK_HUGE && mm_page_peek(mm, block_pfn(index), &page) && page.refcount > 0)
		count_page(&page, block->order, since);
}

static void count_sections(struct mm *mm, u64 since)
{
	for (u64 section = section_first(mm); section < section_end(mm); section++)
		for (u32 i = 0; section_state(mm, section) == SECTION_OPEN && i < SECTION_BLOCKS; i++)
			count_block(mm, (u32)(section * SECTION_BLOCKS) + i, since);
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

	page_owner_text(holder->code ? page_owner_pack(holder->code, holder->cpu) : 0, who, sizeof(who));
	print("  # owner %8llu frames %6llu pages of order %2u  %s", (unsigned long long)frames_of(holder),
	      (unsigned long long)holder->pages, holder->order, who);
	if (holder->youngest)
		print(", last at %llu.%06llu s", (unsigned long long)(holder->youngest / NS_PER_S),
		      (unsigned long long)(holder->youngest % NS_PER_S / NS_PER_US));
	print("\n");
}

u64 page_owner_summary(struct mm *mm, u64 since, unsigned lines)
{
	struct holder *holder;
	u64 frames = 0, rest;

	spin_lock(&table_lock);
	holders = 0;
	not_listed = 0;
	count_sections(mm, since);
	rest = not_listed;
	for (unsigned i = 0; i < holders; i++)
		frames += frames_of(&table[i]);
	frames += rest;
	rest = frames;
	for (; lines > 0 && (holder = largest()); lines--) {
		print_holder(holder);
		rest -= frames_of(holder);
		holder->pages = 0;
	}
	spin_unlock(&table_lock);
	if (rest)
		print("  # owner %8llu frames of others\n", (unsigned long long)rest);
	return frames;
}
