/*
 * Memory types by address; see mtrr.h. Pure, except for the log.
 *
 *   register 0   [======== write-back =======]
 *   register 1                      [uncached]      uncached wins over all others
 *   RAM          [==================|........]      dots: dropped
 */
#include "arch/x86_64/cpu/mtrr.h"

#include "kernel/core/printk.h"
#include "mm/map/memblock.h"

enum {
	DEF_TYPE_ENABLED = 1 << 11,
	MASK_VALID = 1 << 11,
	TYPE_MASK = 0xff,
	TYPE_UNCACHED = 0,
	TYPE_NONE = 0x100
};

#define ADDRESS_BITS 0x000ffffffffff000ULL

/* With gaps a mask covers many ranges, which the SDM advises against: the register is not used. */
static bool has_gaps(const struct mtrr *r)
{
	const u64 mask = r->mask & ADDRESS_BITS, above = mask + (mask & -mask);

	return (r->mask & MASK_VALID) &&
	       (above & (above - 1)) != 0; /* without a gap above is one bit */
}

/* The range of a register. False if it is not in use, or if its mask has gaps. */
static bool range_of(const struct mtrr *r, phys_t *start, phys_t *end)
{
	const u64 mask = r->mask & ADDRESS_BITS;

	if (!(r->mask & MASK_VALID) || mask == 0 || has_gaps(r))
		return false;
	*start = r->base & mask;
	*end = *start + (mask & -mask);
	return true;
}

/*
 * Two registers with different types over one address: uncached wins. The other mixtures are
 * write-through or undefined, and count as uncached because they are not write-back.
 */
static unsigned mix(unsigned type, unsigned other)
{
	return type == TYPE_NONE || type == other ? other : TYPE_UNCACHED;
}

unsigned mtrr_type(const struct mtrrs *m, phys_t addr, phys_t *until)
{
	const bool amd = addr >= GIB(4) && addr < m->top_mem2;
	unsigned type = TYPE_NONE;

	*until = amd ? m->top_mem2 : addr < GIB(4) && m->top_mem2 ? GIB(4) : ~0ULL;
	for (u32 i = 0; i < m->count; i++) {
		phys_t start, end;

		if (!range_of(&m->variable[i], &start, &end) || end <= addr)
			continue;
		if (start > addr) {
			*until = MIN(*until, start);
			continue;
		}
		*until = MIN(*until, end);
		type = mix(type, m->variable[i].base & TYPE_MASK);
	}
	if (type != TYPE_NONE)
		return type;
	return amd ? MTRR_WRITE_BACK : m->def_type & TYPE_MASK;
}

/* The part of [*start, end) that comes first and that nobody has reserved. */
static bool next_unreserved(const struct memblock_list *reserved, phys_t *start, phys_t end,
			    phys_t *piece_end)
{
	*piece_end = end;
	for (size_t i = 0; i < reserved->count; i++) {
		const struct memblock_range *range = &reserved->range[i];

		if (range->end <= *start)
			continue;
		if (range->start > *start) {
			*piece_end = MIN(end, range->start);
			break;
		}
		*start = range->end;
	}
	return *start < *piece_end;
}

static void drop(struct memblock_list *memory, const struct memblock_list *reserved, phys_t start,
		 phys_t end)
{
	phys_t to;

	for (; next_unreserved(reserved, &start, end, &to); start = to)
		if (!memblock_list_subtract(memory, start, to))
			return;
}

/* RAM between MTRR borders that is not write-back; 0 for a piece that is. *until gets its end. */
static u64 uncached_piece(const struct mtrrs *m, const struct memblock_list *memory, phys_t start,
			  phys_t *until)
{
	if (mtrr_type(m, start, until) == MTRR_WRITE_BACK)
		return 0;
	return memblock_list_bytes(memory, start, *until, OWNER_ANY);
}

static phys_t end_of(const struct memblock_list *memory)
{
	return memory->count ? memory->range[memory->count - 1].end : 0;
}

u64 mtrr_drop_uncached(const struct mtrrs *m, struct memblock_list *memory,
		       const struct memblock_list *reserved)
{
	const u64 ram = memblock_list_bytes(memory, MIB(1), ~0ULL, OWNER_ANY);
	u64 bytes = 0;
	phys_t until;

	if (!(m->def_type & DEF_TYPE_ENABLED))
		return 0;
	for (u32 i = 0; i < m->count; i++)
		if (has_gaps(&m->variable[i]))
			pr_warn("memory: MTRR %u has a mask with gaps (%llx), its type %u is not "
				"known here: firmware's error",
				i, m->variable[i].mask,
				(unsigned)(m->variable[i].base & TYPE_MASK));
	for (phys_t start = MIB(1); start != ~0ULL; start = until)
		bytes += uncached_piece(m, memory, start, &until);
	if (bytes > ram / 2) {
		pr_warn("memory: MTRRs leave %llu of %llu MiB uncached, which is used as it is",
			bytes >> 20, ram >> 20);
		return 0;
	}
	for (phys_t start = MIB(1); start != ~0ULL; start = until) {
		bytes = uncached_piece(m, memory, start, &until);
		if (bytes == 0)
			continue;
		pr_warn("memory: %llu KiB of RAM in %llx-%llx are not cached (MTRR type %u) and "
			"not used: firmware's error",
			bytes >> 10, start, MIN(until, end_of(memory)),
			mtrr_type(m, start, &until));
		drop(memory, reserved, start, until);
	}
	return ram - memblock_list_bytes(memory, MIB(1), ~0ULL, OWNER_ANY);
}
