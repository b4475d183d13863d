/* Stacks that programs take: see stack.h and mm.h. */
#include "mm/mapping/stack.h"

#include <arch/atomic.h>
#include <arch/console.h>

#include "kernel/core/context.h"
#include "kernel/core/panic.h"
#include "kernel/lib/format.h"
#include "mm/mapping/huge_map.h"
#include "mm/mm.h"
#include "mm/page/page_check.h"

void *stack_alloc(u64 size)
{
	char *low;
	struct huge_map *map;

	context_assert(CONTEXT_ORDINARY);
	low = huge_map(size, PAGE_SIZE, HUGE_POPULATE);
	if (!low)
		return NULL;
	map = huge_map_at((virt_t)low);
	atomic_store_relaxed(&map->stack_of, CALLER);
	return low + map->object.bytes;
}

void stack_free(void *top)
{
	const virt_t last = (virt_t)top - 1;
	const struct huge_map *map;

	context_assert(CONTEXT_ORDINARY);
	map = huge_map_at(last);
	ASSERT(map && atomic_load_relaxed(&map->stack_of) &&
		       map->start + map->object.bytes == (virt_t)top,
	       "stack_free() of %p, where no stack begins", top);
	huge_unmap((void *)map->start);
}

bool stack_overflow_describe(virt_t addr, char *buf, size_t size)
{
	const virt_t above = ALIGN_DOWN(addr, HUGE_SLOT) + HUGE_SLOT;
	const struct huge_map *map = huge_map_covers(addr) ? huge_map_at(above) : NULL;
	const char *name;
	u64 offset = 0;
	virt_t taker;

	taker = map && map->start == above ? atomic_load_relaxed(&map->stack_of) : 0;
	if (!taker)
		return false;
	name = symbol_lookup(taker - 1, &offset);
	if (name)
		format(buf, size, "overflow of the stack of %llu KiB that %s+0x%llx took",
		       map->object.bytes >> 10, name, offset + 1);
	else
		format(buf, size, "overflow of the stack of %llu KiB that was taken at %llx",
		       map->object.bytes >> 10, taker);
	return true;
}
