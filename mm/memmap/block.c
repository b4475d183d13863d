/* Block records: finding them and chaining them. See block.h. */
#include "mm/memmap/block.h"

#include "mm/memmap/zone.h"

/*
 * The blocks that can head a run over `index` are `index` itself and what remains when its lowest
 * bits are taken away one by one, down to the first block of the GiB.
 */
u32 block_run_head(const struct mm *mm, u32 index, struct block_word *word)
{
	const struct block *blocks = block_existing(mm, ALIGN_DOWN(index, GIB_BLOCKS));
	const struct block_word own = block_look(&blocks[index % GIB_BLOCKS]);
	u32 at = index % GIB_BLOCKS;

	*word = own;
	while (word->order < BLOCK_ORDER || at + order_blocks(word->order) <= index % GIB_BLOCKS) {
		if (at == 0) {
			*word = own;
			return index;
		}
		at &= at - 1;
		*word = block_look(&blocks[at]);
	}
	return ALIGN_DOWN(index, GIB_BLOCKS) + at;
}

void block_list_push(const struct mm *mm, struct block_list *list, u32 index)
{
	struct block *block = block_existing(mm, index);

	block->next = BLOCK_NONE;
	block->prev = list->tail;
	if (list->tail == BLOCK_NONE)
		list->head = index;
	else
		block_existing(mm, list->tail)->next = index;
	list->tail = index;
	list->count++;
}

void block_list_remove(const struct mm *mm, struct block_list *list, u32 index)
{
	struct block *block = block_existing(mm, index);

	if (block->prev == BLOCK_NONE)
		list->head = block->next;
	else
		block_existing(mm, block->prev)->next = block->next;
	if (block->next == BLOCK_NONE)
		list->tail = block->prev;
	else
		block_existing(mm, block->next)->prev = block->prev;
	block->next = block->prev = BLOCK_NONE;
	list->count--;
}

u32 block_list_pop(const struct mm *mm, struct block_list *list)
{
	const u32 index = list->head;

	if (index != BLOCK_NONE)
		block_list_remove(mm, list, index);
	return index;
}

void block_list_splice(const struct mm *mm, struct block_list *list, struct block_list *from)
{
	if (from->count == 0)
		return;
	if (list->count == 0) {
		*list = *from;
	} else {
		block_existing(mm, list->tail)->next = from->head;
		block_existing(mm, from->head)->prev = list->tail;
		list->tail = from->tail;
		list->count += from->count;
	}
	*from = BLOCK_LIST_INIT;
}

void block_list_cut_after(const struct mm *mm, struct block_list *list, u64 count, u32 last,
			  struct block_list *first)
{
	*first = BLOCK_LIST_INIT;
	if (count == list->count || count == 0) {
		if (count > 0)
			block_list_splice(mm, first, list);
		return;
	}
	*first = (struct block_list){.head = list->head, .tail = last, .count = count};
	list->head = block_existing(mm, last)->next;
	list->count -= count;
	block_existing(mm, last)->next = BLOCK_NONE;
	block_existing(mm, list->head)->prev = BLOCK_NONE;
}

void block_list_cut(const struct mm *mm, struct block_list *list, u64 count,
		    struct block_list *first)
{
	u32 last = list->head;

	count = MIN(count, list->count);
	for (u64 i = 1; i < count; i++)
		last = block_existing(mm, last)->next;
	block_list_cut_after(mm, list, count, last, first);
}
