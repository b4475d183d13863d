/*
 * Attempts at accesses that should be impossible; see attempt.h. A call that faults does so at its
 * target, with the address of the instruction after the call on the stack. extable_fixup() looks
 * that address up, and the fixup code removes it from the stack.
 */
#ifndef ASHLAR_HOSTED

#include "tests/kernel/attempt.h"

#include <arch/pgtable.h>
#include <arch/tlb.h>

#include "arch/x86_64/cpu/extable.h"
#include "kernel/lib/string.h"
#include "mm/map/pgtable.h"

enum { INSN_RET = 0xc3 };

bool attempt_write(virt_t at, u8 value)
{
	return MAY_FAULT("movb %[value], (%[at])", [at] "+r"(at), [value] "+q"(value));
}

bool attempt_read(virt_t at)
{
	u32 loaded = 0;

	return MAY_FAULT("movb (%[at]), %b[loaded]", [at] "+r"(at), [loaded] "+q"(loaded));
}

bool attempt_call(virt_t at)
{
	u64 faulted = 1;

	__asm__ volatile("   call *%[at]\n"
			 "1: xor %k[faulted], %k[faulted]\n"
			 "   jmp 3f\n"
			 "2: add $8, %%rsp\n"
			 "3:\n" EXTABLE(1b, 2b)
			 : [faulted] "+b"(faulted)
			 : [at] "r"(at)
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc",
			   "memory");
	return !faulted;
}

void attempt_fill(void *page)
{
	memset(page, INSN_RET, PAGE_SIZE);
}

void attempt_give_to(void *page, enum attempt_owner owner)
{
	const virt_t at = (virt_t)page;

	for (enum pt_level level = PT_PAGE; level <= PT_PGD; level++) {
		pte_t *entry = pgtable_entry(pgtable_root(), at, level, NULL, NULL);
		pte_t value = pte_load(entry) & ~PTE_USER;

		if (owner == ATTEMPT_USER)
			value |= PTE_USER;
		if (level == PT_PAGE)
			value &= ~(PTE_WRITE | PTE_DIRTY | PTE_NX);
		pte_store(entry, at, level, value);
	}
	tlb_flush_local_all();
}
#endif
