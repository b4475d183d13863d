/*
 * Memory that survives a reset, for kernel/core/run_record.c. It is 64 bytes in page 0, behind the
 * BIOS data area, where neither interrupt vectors nor loaders keep anything (IBM, "PC/AT Technical
 * Reference", 1984: 0x500-0x7bff is free after start-up).
 *
 * A reset does not write back the content of the caches, so each store is flushed to memory at
 * once. Where page 0 is not RAM in the map (some UEFI machines), or firmware clears it, every run
 * counts as the first.
 */
#include <arch/boot.h>
#include <arch/memory.h>

#include "kernel/lib/string.h"
#include "mm/map/memblock.h"

enum { RECORD_PHYS = 0x540, RECORD_SIZE = 64 };

static bool present;

void arch_write_back(const void *start, size_t len)
{
	const u8 *line = (const u8 *)ALIGN_DOWN((virt_t)start, CACHE_LINE);

	for (; len && line < (const u8 *)start + len; line += CACHE_LINE)
		__asm__ volatile("clflush %0" : : "m"(*line) : "memory");
	__asm__ volatile("mfence" : : : "memory");
}

bool arch_record_load(void *record, size_t size)
{
	/* the direct map covers page 0 if firmware's map has it as RAM */
	present = size <= RECORD_SIZE &&
		  memblock_list_bytes(&memblock_memory, 0, PAGE_SIZE, OWNER_ANY) == PAGE_SIZE;
	if (present)
		memcpy(record, phys_to_virt(RECORD_PHYS), size);
	return present;
}

void arch_record_store(const void *record, size_t size)
{
	u8 *place = phys_to_virt(RECORD_PHYS);

	if (!present || size > RECORD_SIZE)
		return;
	memcpy(place, record, size);
	arch_write_back(place, size);
}
