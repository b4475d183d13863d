/*
 * A holder of movable pages: see holder.h.
 */
#include "tests/kernel/holder.h"

#include "mm/page/migrate.h"
#include "mm/page/page_alloc.h"
#include "tests/kernel/pattern.h"

/*
 * bytes_of(): how many of a page's bytes are checked. place_of(): the place for which the pattern
 * is written; it names the slot, wherever the page moves.
 */
static u64 bytes_of(const struct holder *h, const struct page *page)
{
	return h->phantom ? 0 : h->sparse ? sizeof(u64) : PAGE_SIZE << page_order(page);
}

static u64 place_of(u64 slot)
{
	return slot << 32;
}

static int holder_move(struct page *from, struct page *to)
{
	struct holder *h = (struct holder *)(virt_t)from->private[0];
	const u64 slot = from->private[1];
	int err = -EBUSY;

	spin_lock(&h->lock);
	if (h->refuse > 0) {
		h->refuse--;
	} else if (h->page[slot] == from) {
		if (!h->phantom)
			page_copy(to, from);
		to->private[0] = from->private[0];
		to->private[1] = slot;
		h->page[slot] = to;
		h->moved++;
		err = 0;
	}
	spin_unlock(&h->lock);
	return err;
}

static int refuse(struct page *from, struct page *to)
{
	return -EBUSY;
}

const struct page_mover mover_refuses = {.name = "refuses", .move = refuse};

static const struct page_mover holder_mover = {.name = "holder", .move = holder_move};

void holder_init(struct holder *h, struct mm *mm, struct page **page, u64 room)
{
	*h = (struct holder){
		.mm = mm, .lock = SPINLOCK_INIT(LOCK_LEAF), .page = page, .room = room};
}

bool holder_adopt(struct holder *h, struct page *page)
{
	if (!page || h->slots == h->room)
		return false;
	page->private[0] = (u64)(virt_t)h;
	page->private[1] = h->slots;
	pattern_fill(page_address(page), bytes_of(h, page), place_of(h->slots), (virt_t)h);
	spin_lock(&h->lock);
	h->page[h->slots++] = page;
	spin_unlock(&h->lock);
	mm_page_set_movable(h->mm, page, &holder_mover);
	return true;
}

bool holder_take(struct holder *h, unsigned order, node_t node)
{
	return h->slots < h->room &&
	       holder_adopt(h, mm_page_alloc(h->mm, order, USE_MOVABLE, PAGE_NODE, node));
}

void holder_give(struct holder *h, u64 slot)
{
	struct page *page;

	spin_lock(&h->lock);
	page = h->page[slot];
	h->page[slot] = NULL;
	spin_unlock(&h->lock);
	if (page)
		mm_page_free(h->mm, page);
}

void holder_give_all(struct holder *h)
{
	for (u64 slot = 0; slot < h->slots; slot++)
		holder_give(h, slot);
	h->slots = 0;
}

static bool contents_are_ours(const struct holder *h, const struct page *page, u64 slot)
{
	const u64 bytes = bytes_of(h, page),
		  wrong = pattern_wrong(page_address(page), bytes, place_of(slot), (virt_t)h);

	if (wrong == bytes)
		return true;
	pr_err("holder: byte %llu of the page in slot %llu is not what was written there", wrong,
	       slot);
	return false;
}

bool holder_intact(struct holder *h)
{
	bool intact = true;

	for (u64 slot = 0; slot < h->slots; slot++) {
		const struct page *page = h->page[slot];

		if (!page)
			continue;
		intact &= page->private[1] == slot && (page->flags & PAGE_MOVABLE);
		intact &= contents_are_ours(h, page, slot);
	}
	return intact;
}

u64 holder_pages_in(struct holder *h, pfn_t first, pfn_t end)
{
	u64 count = 0;

	for (u64 slot = 0; slot < h->slots; slot++)
		count += h->page[slot] && page_to_pfn(h->page[slot]) >= first &&
			 page_to_pfn(h->page[slot]) < end;
	return count;
}
