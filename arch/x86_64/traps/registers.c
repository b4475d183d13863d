/* The general registers in a report: see <arch/user.h>. */
#include <arch/user.h>

#include "kernel/core/printk.h"

void user_regs_print(const struct trap_frame *regs)
{
	print("  rax %016llx rbx %016llx rcx %016llx rdx %016llx\n", regs->rax, regs->rbx,
	      regs->rcx, regs->rdx);
	print("  rsi %016llx rdi %016llx rbp %016llx rsp %016llx\n", regs->rsi, regs->rdi,
	      regs->rbp, regs->rsp);
	print("  r8  %016llx r9  %016llx r10 %016llx r11 %016llx\n", regs->r8, regs->r9, regs->r10,
	      regs->r11);
	print("  r12 %016llx r13 %016llx r14 %016llx r15 %016llx\n", regs->r12, regs->r13,
	      regs->r14, regs->r15);
}
