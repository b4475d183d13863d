/*
 * Memory types by address, as the MTRRs give them. Firmware that runs out of registers, or rounds
 * its last one wrongly, leaves a piece of RAM uncached, often the last MiB below a power of two. A
 * page there is a hundred times slower than others.
 *
 * Sources: Intel SDM vol. 3A, 12.11 "Memory type range registers"; AMD APM vol. 2, 7.7 "Memory-type
 * range registers"; AMD BKDG of families 10h to 15h, SYSCFG and TOP_MEM2.
 */
#pragma once

#include "kernel/lib/types.h"

struct memblock_list;

enum { MTRR_VARIABLE_MAX = 32, MTRR_FIXED = 11, MTRR_WRITE_BACK = 6 };

/* The registers of one CPU, as they are read. */
struct mtrrs {
	u64 def_type; /* IA32_MTRR_DEF_TYPE: the type of all other memory, and the switch */
	struct mtrr {
		u64 base, mask;
	} variable[MTRR_VARIABLE_MAX];
	u64 count;
	u64 fixed[MTRR_FIXED]; /* of the first MiB */
	/* AMD: RAM from 4 GiB to here is write-back unless a register says otherwise; 0: none */
	phys_t top_mem2;
};

/* The type of the memory at `addr`, which is 1 MiB or more. *until gets the end of that type. */
unsigned mtrr_type(const struct mtrrs *m, phys_t addr, phys_t *until);

/*
 * Remove the RAM that is not write-back and that nobody has reserved, so that it is neither given
 * out nor mapped. Names each piece in the log. RAM below 1 MiB, for which there are other
 * registers, is not looked at. Returns the bytes removed.
 *
 * Nothing is removed if the MTRRs are off, or if less than half of the RAM would be left. Emulators
 * do not set them, and a machine whose RAM is uncached for the most part has no other.
 */
u64 mtrr_drop_uncached(const struct mtrrs *m, struct memblock_list *memory,
		       const struct memblock_list *reserved);
