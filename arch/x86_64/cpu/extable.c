/*
 * Exception table, and the few accesses that are allowed to fault. Table entries are in link order,
 * so the search is linear; there are only a handful.
 *
 * An NMI handler may call peek_u64() too, because returning from a fault there leaves NMIs blocked
 * (traps.S).
 */
#include "arch/x86_64/cpu/extable.h"

#include <arch/peek.h>

#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/cpu/trap_frame.h"

struct extable_entry {
	virt_t insn, fixup;
};

TABLE_DECLARE(const struct extable_entry, ex_table);

/* Address to continue at if `insn` faults; 0 if it must not fault. */
static virt_t fixup_of(virt_t insn)
{
	const struct extable_entry *e;

	TABLE_FOREACH(e, ex_table)
	{
		if (e->insn == insn)
			return e->fixup;
	}
	return 0;
}

bool extable_fixup(struct trap_frame *frame)
{
	virt_t fixup = fixup_of(frame->rip);

	/* A call to a non-executable address: its return address has the entry (attempt.c). */
	if (!fixup && frame->vector == TRAP_PAGE_FAULT && frame->error & PF_EXEC &&
	    frame->rip == read_cr2())
		fixup = fixup_of(*(const u64 *)frame->rsp);
	if (!fixup)
		return false;
	frame->rip = fixup;
	return true;
}

bool peek_u64(const void *addr, u64 *value)
{
	u64 loaded = 0;
	const bool there =
		MAY_FAULT("mov (%[from]), %[loaded]", [loaded] "+r"(loaded), [from] "+r"(addr));

	*value = loaded;
	return there;
}

bool rdmsr_safe(u32 msr, u64 *value)
{
	u32 low = 0, high = 0;
	const bool there = MAY_FAULT("rdmsr", "+c"(msr), "+a"(low), "+d"(high));

	*value = (u64)high << 32 | low;
	return there;
}

bool wrmsr_safe(u32 msr, u64 value)
{
	u32 low = (u32)value, high = (u32)(value >> 32);

	return MAY_FAULT("wrmsr", "+c"(msr), "+a"(low), "+d"(high));
}
