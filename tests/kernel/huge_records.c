/*
 * Huge pages without struct pages: see huge_records.h.
 */
#include "tests/kernel/huge_records.h"

#include "tests/kernel/mm_test.h"

/* Change the state of all free blocks of one class in the phantom. */
static void change_all(struct arena *a, enum free_class class, enum block_state to)
{
	struct block_list list = BLOCK_LIST_INIT;

	block_take(arena_phantom_zone(a), class, BLOCK_ORDER, ~0ULL, to, &list);
	block_list_foreach(&a->mm, index, &list)
		block_set_state(&a->mm, index, to);
	block_list_publish_free(&a->mm, &list);
}

/* Twice the memory for the records and for the page tables of open sections. */
static u64 bytes_for(u64 pages)
{
	const u64 frames = pages / SECTION_BLOCKS + pages * sizeof(struct block) / PAGE_SIZE;
	u64 bytes = MIB(16);

	while (bytes < 2 * frames * PAGE_SIZE)
		bytes *= 2;
	return bytes;
}

struct arena *huge_records_borrow(u64 pages)
{
	struct arena *a =
		arena_borrow(bytes_for(pages), .phantom = ALIGN_UP(pages << BLOCK_SHIFT, GIB(1)));

	if (!a)
		return NULL;
	arena_open_all(a);
	change_all(a, FREE_BARE, BLOCK_HUGE);
	return a;
}

void huge_records_return(struct arena *a)
{
	change_all(a, FREE_HUGE, BLOCK_BARE);
	arena_return(a);
}
