/*
 * Functions that gcc calls before each load and store (-fsanitize=kernel-address, outlined), and
 * that clear_with() calls before it clears. They check that no code touches a free frame through
 * the direct map, or the stack below the running function. `make DEBUG=san` links this file.
 *
 *   direct map    blocks      under a record that heads a run on a zone's list, or a page that
 *                             lies free in a pool
 *                 huge        a 2 MiB page on a CPU's list
 *                 small       under a struct page that heads a chunk of the buddy's, or in the map
 *                             of a CPU's list
 *                 META        a frame that is not in use; for stores, also one that is gated (a CPU
 *                             that walks tables may still read it)
 *   stack         between the end of the CPU's stack and the caller's frame: a variable of a
 *                 function that has returned
 *
 * Every frame of the range is checked, however long the range is.
 *
 * These accesses are not checked:
 *
 * - Accesses by any other address (huge mappings, struct pages through the vmemmap).
 * - Accesses by assembly, except for clearing, and by C in arch/, boot/ and tests/san.
 * - Free memory of an arena, because it is in use for the machine.
 * - Memory in transit, and memory of sections that were never opened.
 * - Arrays on the stack, which the stack protector and UBSan check.
 *
 * There is no shadow memory. The owner of a frame is known from block records, struct pages and the
 * maps of CPUs and metadata memory. Reading those is slower but cannot disagree with the allocator.
 * Code here may neither be instrumented nor call instrumented code, so it finds records by itself.
 *
 * Races: the frames of a block in use do not change hands while some code rightly uses one of them.
 * An access that is wrong may or may not be reported. A record is read once (block_look()), and its
 * contents are believed for that read alone. A CPU's slot may pass to another block while another
 * CPU reads it, so its contents are believed if two reads agree.
 *
 * Source: Konovalov and Ryabinin, "The Kernel Address Sanitizer" (Linux, 2014-07) for the
 * interface.
 */
#include <arch/check.h>
#include <arch/memory.h>
#include <arch/percpu.h>

#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "mm/memmap/zone.h"
#include "mm/page/pcp.h"

#define STACK_BYTES KIB(16) /* stack of every CPU: arch/x86_64/smp/smp.c, descriptors.h */

enum access { LOAD, STORE };

static const char *const verbs[] = {[LOAD] = "load", [STORE] = "store"};

static const struct block *record_of(pfn_t pfn)
{
	const u64 index = pfn >> BLOCK_ORDER, gib = index / GIB_BLOCKS - mm_kernel.first_gib;
	const struct block *blocks =
		gib < mm_kernel.gibs ? atomic_load_acquire(&mm_kernel.gib[gib].blocks) : NULL;

	return blocks ? &blocks[index % GIB_BLOCKS] : NULL;
}

/*
 * Is the frame in a run of blocks that is free in its zone or in a pool? The head of the run says
 * so.
 */
static bool in_free_run(pfn_t pfn)
{
	for (unsigned order = BLOCK_ORDER; order <= GIGA_ORDER; order++) {
		const struct block *head = record_of(ALIGN_DOWN(pfn, 1ULL << order));
		const struct block_word word = head ? block_look(head) : BLOCK_WORD();

		if (word.flags & (BLOCK_FREE | BLOCK_POOL_FREE) && word.order >= order)
			return true;
	}
	return false;
}

/* ---- frames that CPUs hold ---- */

static const struct pcp_zone *list_of(cpu_t cpu, struct block_word word)
{
	const struct pcp *pcp = mm_kernel.pcp[cpu];

	return pcp && word.zone < mm_kernel.zones ? pcp->zone[word.zone] : NULL;
}

static bool on_huge_list(const struct pcp_zone *list, u32 index)
{
	const u32 count = MIN(atomic_load_relaxed(&list->huge_count), PCP_HUGE_MAX);

	for (u32 i = 0; i < count; i++)
		if (atomic_load_relaxed(&list->huge[i]) == index)
			return true;
	return false;
}

static bool in_slot(const struct pcp_zone *list, u32 slot, pfn_t pfn)
{
	return atomic_load_acquire(&list->tag[slot]) == (u32)(pfn >> BLOCK_ORDER) + 1 &&
	       (atomic_load_acquire(&list->map[slot][pfn % BLOCK_FRAMES / 64]) >> pfn % 64 & 1) &&
	       atomic_load_acquire(&list->tag[slot]) == (u32)(pfn >> BLOCK_ORDER) + 1;
}

static bool in_map(const struct pcp_zone *list, pfn_t pfn)
{
	const u32 set = (u32)(pfn >> BLOCK_ORDER) % PCP_SETS * PCP_WAYS;

	for (u32 slot = set; slot < set + PCP_WAYS; slot++)
		if (in_slot(list, slot, pfn) && in_slot(list, slot, pfn))
			return true;
	return false;
}

static bool held_by_a_cpu(struct block_word word, pfn_t pfn, bool huge)
{
	for (cpu_t cpu = 0; cpu < cpu_count; cpu++) {
		const struct pcp_zone *list = list_of(cpu, word);

		if (list &&
		    (huge ? on_huge_list(list, (u32)(pfn >> BLOCK_ORDER)) : in_map(list, pfn)))
			return true;
	}
	return false;
}

/* ---- frames ---- */

/*
 * Is the frame in a page with references, or in one that the allocator does not manage? The head of
 * a freed tail may belong to another page by now.
 */
static bool in_used_page(pfn_t pfn)
{
	const struct page *page = pfn_page(&mm_kernel, pfn), *head = page_head(page);
	const struct page_kind kind = page_kind(head);

	if (page_kind(page).flags & (PAGE_RESERVED | PAGE_BAD))
		return true;
	return atomic_load_relaxed(&head->refcount) > 0 &&
	       (head == page ||
		(kind.flags & PAGE_COMPOUND && pfn - page_to_pfn(head) < order_pages(kind.order)));
}

static bool in_free_page(struct block_word word, pfn_t pfn)
{
	for (unsigned order = 0; order < BLOCK_ORDER; order++) {
		const struct page_kind kind =
			page_kind(pfn_page(&mm_kernel, ALIGN_DOWN(pfn, 1ULL << order)));

		if (kind.flags & PAGE_BUDDY && kind.order >= order)
			return true;
	}
	return held_by_a_cpu(word, pfn, false);
}

static bool in_used_huge(pfn_t pfn)
{
	return atomic_load_relaxed(&pfn_page(&mm_kernel, ALIGN_DOWN(pfn, BLOCK_FRAMES))->refcount) >
	       0;
}

static bool in_free_huge(struct block_word word, pfn_t pfn)
{
	return !(word.flags & (BLOCK_TRANSIT | BLOCK_POOL)) && word.order == BLOCK_ORDER &&
	       held_by_a_cpu(word, pfn, true);
}

/*
 * A block that has just become metadata memory has no maps yet, and the words in their place may
 * have any value.
 */
static bool is_free_meta(const struct block *block, struct block_word word, pfn_t pfn,
			 enum access access)
{
	const struct meta_block *maps = atomic_load_relaxed(&block->meta);
	const struct block *home = (virt_t)maps - DIRECT_MAP_BASE < DIRECT_MAP_SIZE &&
						   IS_ALIGNED((virt_t)maps, sizeof(u64))
					   ? record_of(virt_to_phys(maps) >> PAGE_SHIFT)
					   : NULL;
	const unsigned bit = pfn % BLOCK_FRAMES;

	if (word.flags & BLOCK_TRANSIT || !home || block_look(home).state != BLOCK_META ||
	    maps->block != pfn >> BLOCK_ORDER)
		return false;
	return !(atomic_load_relaxed(&maps->used_map[bit / 64]) >> bit % 64 & 1) ||
	       (access == STORE && atomic_load_relaxed(&maps->gated_map[bit / 64]) >> bit % 64 & 1);
}

/* The most frequent case, a frame in use, is checked first. */
static const char *why_not(pfn_t pfn, enum access access)
{
	const struct block *block = record_of(pfn);
	struct block_word word;

	if (!block)
		return NULL;
	word = block_look(block);
	switch (word.state) {
	case BLOCK_META:
		return is_free_meta(block, word, pfn, access)
			       ? "in a frame that metadata memory does not use"
			       : NULL;
	case BLOCK_RESERVED:
	case BLOCK_FULL:
		if (in_used_page(pfn))
			return NULL;
		return in_free_run(pfn) || in_free_page(word, pfn) ? "in a free frame" : NULL;
	case BLOCK_HUGE:
		if (in_used_huge(pfn))
			return NULL;
		if (in_free_huge(word, pfn))
			return "in a huge page that a CPU holds free";
		break;
	default:
		break;
	}
	return in_free_run(pfn) ? "in a free frame" : NULL;
}

static bool is_below(virt_t addr, virt_t frame)
{
	const virt_t top = (virt_t)this_cpu()->arch.stack_top;

	return frame - (top - STACK_BYTES) < STACK_BYTES && addr >= top - STACK_BYTES &&
	       addr < frame;
}

static __noreturn void report(virt_t addr, u64 size, enum access access, const char *where)
{
	mm_kernel.ready = false; /* report only once, because a panic touches whatever it must */
	panic("KASAN: %s of %llu bytes at %llx, %s", verbs[access], size, addr, where);
}

static void check_frames(virt_t addr, u64 size, enum access access)
{
	const pfn_t first = (addr - DIRECT_MAP_BASE) >> PAGE_SHIFT,
		    last = (addr + size - 1 - DIRECT_MAP_BASE) >> PAGE_SHIFT;

	for (pfn_t pfn = first; pfn <= last; pfn++) {
		const char *where = why_not(pfn, access);

		if (where)
			report(pfn == first ? addr : DIRECT_MAP_BASE + (pfn << PAGE_SHIFT), size,
			       access, where);
	}
}

static void check(virt_t addr, u64 size, enum access access, virt_t frame)
{
	if (!mm_kernel.ready || panic_in_progress || size == 0)
		return;
	if (addr - DIRECT_MAP_BASE < DIRECT_MAP_SIZE)
		check_frames(addr, size, access);
	else if (is_below(addr, frame))
		report(addr, size, access, "on this CPU's stack below all that is alive");
}

/* Our own frame begins where the caller's frame ends. */
#define FRAME ((virt_t)__builtin_frame_address(0))

#define ACCESS(name, size)                                                                         \
	void __asan_load##name##_noabort(virt_t addr);                                             \
	void __asan_load##name##_noabort(virt_t addr)                                              \
	{                                                                                          \
		check(addr, size, LOAD, FRAME);                                                    \
	}                                                                                          \
	void __asan_store##name##_noabort(virt_t addr);                                            \
	void __asan_store##name##_noabort(virt_t addr)                                             \
	{                                                                                          \
		check(addr, size, STORE, FRAME);                                                   \
	}

ACCESS(1, 1)
ACCESS(2, 2)
ACCESS(4, 4)
ACCESS(8, 8)
ACCESS(16, 16)

void __asan_loadN_noabort(virt_t addr, u64 size);
void __asan_loadN_noabort(virt_t addr, u64 size)
{
	check(addr, size, LOAD, FRAME);
}

void __asan_storeN_noabort(virt_t addr, u64 size);
void __asan_storeN_noabort(virt_t addr, u64 size)
{
	check(addr, size, STORE, FRAME);
}

void __asan_handle_no_return(void);
void __asan_handle_no_return(void)
{
}

/* Assembly that clears counts as one store to all of the range. */
void check_cleared(const void *addr, u64 bytes)
{
	check((virt_t)addr, bytes, STORE, FRAME);
}
