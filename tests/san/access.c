/*
 * What gcc calls before each load and store (-fsanitize=kernel-address, outlined): nobody touches a free frame through the direct map, nor
 * what lies on a stack below the function that runs. `make SAN=1` links it.
 *
 *   direct map    the frame's block is on a zone's list, or its struct page is, or a CPU's, or is under one of the buddy's
 *   stack         between the end of the CPU's stack and the caller's frame: a variable of a function that has returned
 *
 * No shadow is kept: who owns a frame already stands in block records and struct pages, and reading those is slower but cannot
 * disagree with the allocator. Arrays on the stack are the stack protector's and UBSan's. Nothing here may be instrumented, nor call
 * what is: records are found by hand.
 *
 * Races: the frames of a block in use do not change hands while somebody rightly uses one of them; who uses it wrongly may be told so
 * or not. What fills free frames on purpose (mm/page_poison.c) is compiled without.
 *
 * Source: Konovalov and Ryabinin, "The Kernel Address Sanitizer" (Linux, 2014-07) for the interface.
 */
#include <arch/memory.h>
#include <arch/percpu.h>

#include "kernel/panic.h"
#include "kernel/percpu.h"
#include "mm/page_alloc.h"
#include "mm/zone.h"

#define STACK_BYTES KIB(16) /* of every CPU: arch/x86_64/smp.c, descriptors.h */

static const struct block *record_of(pfn_t pfn)
{
	const u64 index = pfn >> BLOCK_ORDER, gib = index / GIB_BLOCKS - mm_kernel.first_gib;
	const struct block *blocks = gib < mm_kernel.gibs ? atomic_load_acquire(&mm_kernel.gib[gib].blocks) : NULL;

	return blocks ? &blocks[index % GIB_BLOCKS] : NULL;
}

/* In a run of free blocks: its head says so. */
static bool in_free_run(pfn_t pfn)
{
	for (unsigned order = BLOCK_ORDER; order <= GIGA_ORDER; order++) {
		const struct block *head = record_of(ALIGN_DOWN(pfn, 1ULL << order));

		if (head && atomic_load_relaxed(&head->flags) & BLOCK_FREE && atomic_load_relaxed(&head->order) >= order)
			return true;
	}
	return false;
}

static bool in_free_page(pfn_t pfn)
{
	for (unsigned order = 0; order < BLOCK_ORDER; order++) {
		const struct page_kind kind = page_kind(pfn_page(&mm_kernel, ALIGN_DOWN(pfn, 1ULL << order)));

		if (kind.flags & (PAGE_BUDDY | PAGE_PCP) && kind.order >= order)
			return true;
	}
	return false;
}

static bool is_free(pfn_t pfn)
{
	const struct block *block = record_of(pfn);

	if (!block)
		return false;
	if (in_free_run(pfn))
		return true;
	return atomic_load_relaxed(&block->state) == BLOCK_FULL && in_free_page(pfn);
}

static bool is_below(virt_t addr, virt_t frame)
{
	const virt_t top = (virt_t)this_cpu()->arch.stack_top;

	return frame - (top - STACK_BYTES) < STACK_BYTES && addr >= top - STACK_BYTES && addr < frame;
}

static __noreturn void report(virt_t addr, u64 size, const char *verb, const char *where)
{
	mm_kernel.ready = false; /* once: the way down touches what it must */
	panic("KASAN: %s of %llu bytes at %llx, %s", verb, (unsigned long long)size, (unsigned long long)addr, where);
}

static void check(virt_t addr, u64 size, const char *verb, virt_t frame)
{
	if (!mm_kernel.ready || panic_in_progress)
		return;
	if (addr - DIRECT_MAP_BASE < DIRECT_MAP_SIZE) {
		if (is_free((addr - DIRECT_MAP_BASE) >> PAGE_SHIFT))
			report(addr, size, verb, "in a free frame");
	} else if (is_below(addr, frame)) {
		report(addr, size, verb, "on this CPU's stack below all that is alive");
	}
}

/* Our own frame begins where the caller's ends. */
#define FRAME ((virt_t)__builtin_frame_address(0))

#define ACCESS(name, size)                                                                                             \
	void __asan_load##name##_noabort(virt_t addr);                                                                 \
	void __asan_load##name##_noabort(virt_t addr)                                                                  \
	{                                                                                                              \
		check(addr, size, "load", FRAME);                                                                      \
	}                                                                                                              \
	void __asan_store##name##_noabort(virt_t addr);                                                                \
	void __asan_store##name##_noabort(virt_t addr)                                                                 \
	{                                                                                                              \
		check(addr, size, "store", FRAME);                                                                     \
	}

ACCESS(1, 1)
ACCESS(2, 2)
ACCESS(4, 4)
ACCESS(8, 8)
ACCESS(16, 16)

void __asan_loadN_noabort(virt_t addr, u64 size);
void __asan_loadN_noabort(virt_t addr, u64 size)
{
	check(addr, size, "load", FRAME);
}

void __asan_storeN_noabort(virt_t addr, u64 size);
void __asan_storeN_noabort(virt_t addr, u64 size)
{
	check(addr, size, "store", FRAME);
}

void __asan_handle_no_return(void);
void __asan_handle_no_return(void)
{
}
