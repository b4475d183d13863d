/*
 * Huge mappings, internals: areas of a space of the kernel (mm/vm/space.h).
 *
 *   HUGE_MAP_BASE | guard | A A A . | guard | B | guard | C C C C ...       in slots of 1 GiB
 *
 * A mapping is an area, in whole slots and with the guard behind it, of an object that shows zeros
 * up to its end. Parts with rights of their own are areas of that object. A touch pins its page,
 * and whoever changes, releases or unmaps makes the areas busy, so that each waits for the other.
 * Addresses are free for other mappings only after the round, so nobody meets a stale translation.
 */
#pragma once

#include <arch/memory.h>

#include "mm/mapping/fault.h"
#include "mm/mm.h"
#include "mm/vm/space.h"

struct huge_map {
	struct vm_object object; /* its bytes may be touched */
	virt_t start, end;       /* of its addresses, with the guard behind them */
	enum pt_level level;     /* size of its pages */
	huge_exhausted_fn *exhausted;
	void *ctx;
};

#define HUGE_SLOT GIB(1)

static inline bool huge_map_covers(virt_t addr)
{
	return addr - HUGE_MAP_BASE < HUGE_MAP_SIZE;
}

/* Before memblock is frozen. */
void huge_map_init(void);

/* Handle a touch, called from fault_resolve(). Interrupts off. */
enum fault_result huge_fault(virt_t addr, bool write, bool exec, bool interruptible);

/*
 * The mapping that has the address, also behind its end and in its guard, or NULL. It stays while
 * nobody unmaps it.
 */
struct huge_map *huge_map_at(virt_t addr);

extern struct space huge_space;
