/*
 * Block records: finding them and chaining them. See block.h.
 */
#include "mm/block.h"

#include "mm/zone.h"

struct block *block_at(const struct mm *mm, u32 index)
{
	const u64 gib = (u64)index / GIB_BLOCKS - mm->first_gib;
	struct block *blocks;

	if (gib >= mm->gibs) /* also below the first: wraps */
		return NULL;
	blocks = atomic_load_acquire(&mm->gib[gib].blocks);
	return blocks ? &blocks[index % GIB_BLOCKS] : NULL;
}

struct block *block_of(const struct mm *mm, pfn_t pfn)
{
	return block_at(mm, (u32)(pfn >> BLOCK_ORDER));
}

void block_list_push(const struct mm *mm, struct block_list *list, u32 index)
{
	struct block *block = block_at(mm, index);

	block->next = BLOCK_NONE;
	block->prev = list->tail;
	if (list->tail == BLOCK_NONE)
		list->head = index;
	else
		block_at(mm, list->tail)->next = index;
	list->tail = index;
	list->count++;
}

u32 block_list_pop(const struct mm *mm, struct block_list *list)
{
	const u32 index = list->head;
	struct block *block;

	if (index == BLOCK_NONE)
		return BLOCK_NONE;
	block = block_at(mm, index);
	list->head = block->next;
	if (list->head == BLOCK_NONE)
		list->tail = BLOCK_NONE;
	else
		block_at(mm, list->head)->prev = BLOCK_NONE;
	list->count--;
	block->next = block->prev = BLOCK_NONE;
	return index;
}
