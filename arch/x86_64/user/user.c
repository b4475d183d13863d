/*
 * Programs in ring 3; see <arch/user.h>. The entry code and the argument about it are in
 * arch/x86_64/traps/traps.S.
 *
 * Invariants:
 *  - user_stack of struct percpu is 0 exactly if no frame of user_enter() is on the CPU's stack.
 *  - A frame goes to ring 3 only through before_return(), the last acts of which, with interrupts
 *    off, are to make the frame safe and the CPU quiet (kernel/core/quiet.h).
 *  - A request for attend() is a flag, then an IPI. A CPU looks at the flag with interrupts off
 *    before it goes to ring 3. If it does not see the flag, the IPI comes later and interrupts
 *    ring 3, and the CPU looks again.
 *
 * A program cannot use memory without the user bit. It runs with IOPL 0 and no map of I/O ports. It
 * has no LDT, no SYSENTER, no performance counters (CR4.PCE) and no WRFSBASE. The only descriptors
 * that it can load are flat ones. It can use up its CPU; attend() gets the CPU back.
 *
 * The kernel stays mapped while a program runs, and nothing is flushed between the two. A program
 * that measures speculation may learn what the kernel's memory contains.
 */
#include <arch/user.h>

#include <arch/atomic.h>
#include <arch/cpu.h>
#include <arch/percpu.h>

#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/cpu/trap_frame.h"
#include "arch/x86_64/traps/descriptors.h"
#include "arch/x86_64/traps/traps.h"
#include "arch/x86_64/user/user.h"
#include "arch/x86_64/user/user_run.h"
#include "arch/x86_64/user/user_vectors.h"
#include "kernel/core/context.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/quiet.h"

/* Intel SDM vol. 1, 3.4.3 "EFLAGS register". */
enum {
	FLAGS_FIXED = 1 << 1,
	FLAGS_STATUS = 0x8d5, /* CF PF AF ZF SF OF */
	FLAGS_DIRECTION = 1 << 10,
	FLAGS_IOPL = 3 << 12,
	FLAGS_NESTED = 1 << 14,
	FLAGS_ALIGNMENT = 1 << 18,
	FLAGS_ID = 1 << 21,
};

/* The flags that POPF of ring 3 can set, and RF, which an exception may report. */
#define FLAGS_FREE                                                                                 \
	((u64)FLAGS_STATUS | RFLAGS_TRAP | FLAGS_DIRECTION | FLAGS_NESTED | RFLAGS_RESUME |        \
	 FLAGS_ALIGNMENT | FLAGS_ID)

enum { DR7_RESET = 0x400 }; /* no breakpoint is enabled */

static const struct user_ops *ops;

/* ---- traps of ring 3 ---- */

static void serve_call(struct trap_frame *frame)
{
	irq_enable();
	ops->call(frame);
	irq_disable();
}

static void serve_exception(struct trap_frame *frame)
{
	const virt_t addr = read_cr2();
	enum user_access access = USER_READ;

	if (frame->error & PF_WRITE)
		access = USER_WRITE;
	else if (frame->error & PF_EXEC)
		access = USER_EXEC;
	irq_enable();
	if (frame->vector == TRAP_PAGE_FAULT)
		ops->fault(frame, addr, access);
	else
		ops->exception(frame);
	irq_disable();
}

/* Apart from its caller, which then needs no registers that it would have to save. */
static __attribute__((noinline)) void attend(struct trap_frame *regs)
{
	u32 *flag = &this_cpu()->arch.user_attends;

	while (atomic_exchange(flag, 0)) {
		irq_enable();
		ops->attend(regs);
		irq_disable();
	}
}

static void attend_and_make_safe(struct trap_frame *regs)
{
	context_assert_for("user_return", CONTEXT_ORDINARY);
	if (unlikely(atomic_load_relaxed(&this_cpu()->arch.user_attends)))
		attend(regs);
	user_regs_make_safe(regs);
	quiet_begin();
}

static const struct trap_ring3 ring3 = {
	.exception = serve_exception, .call = serve_call, .before_return = attend_and_make_safe};

void user_set_ops(const struct user_ops *new_ops)
{
	ops = new_ops;
	trap_set_ring3(&ring3);
}

/* ---- entering and leaving ---- */

/*
 * SYSRET's and SYSCALL's selectors, the entry, and the flags that SYSCALL clears: all. After a
 * reset the LDT covers the first 64 KiB of memory. Firmware may have set up SYSENTER and
 * breakpoints.
 */
void user_init_cpu(void)
{
	__asm__ volatile("lldt %w0" ::"r"(0));
	__asm__ volatile("mov %0, %%db7" ::"r"((u64)DR7_RESET));
	wrmsr(MSR_SYSENTER_CS, 0);
	wrmsr(MSR_STAR, (u64)SELECTOR_SYSRET << 48 | (u64)SELECTOR_CODE << 32);
	wrmsr(MSR_LSTAR, (u64)trap_syscall);
	wrmsr(MSR_CSTAR, 0); /* from 32-bit code, for which there is no descriptor */
	wrmsr(MSR_SFMASK, FLAGS_FREE | RFLAGS_INTERRUPTS | FLAGS_IOPL);
	wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SCE);
}

/*
 * A program may have loaded segment registers. The next one begins with null selectors, as in
 * Linux. Loading GS changes the base that is in use, so it must be the program's then.
 */
static void clear_segments(void)
{
	__asm__ volatile("mov %k0, %%ds\n"
			 "mov %k0, %%es\n"
			 "mov %k0, %%fs\n"
			 "swapgs\n"
			 "mov %k0, %%gs\n"
			 "swapgs\n" ::"r"(0)
			 : "memory");
}

/* A linked program may run next. It needs its thread-local variables, and the rounding modes that a
   reset leaves. */
static void forget_program(const struct arch_percpu *arch)
{
	clear_segments();
	wrmsr(MSR_FS_BASE, (u64)arch->tls);
	user_vectors_reset();
}

void user_enter(const struct trap_frame *regs, u64 fs_base, const void *vectors)
{
	struct arch_percpu *arch = &this_cpu()->arch;
	struct trap_frame first = *regs;

	context_assert(CONTEXT_ORDINARY);
	ASSERT(ops, "user_enter() without user_set_ops()");
	ASSERT(!arch->user_stack, "user_enter() inside of user_enter()");
	irq_disable();
	clear_segments();
	if (!user_set_fs_base(fs_base))
		user_set_fs_base(0);
	user_set_gs_base(0);
	if (!vectors || !user_vectors_load(vectors))
		user_vectors_reset();
	user_run(&first, &arch->user_stack, (u8 *)&arch->tables->tss + offsetof(struct tss, rsp),
		 attend_and_make_safe);
	arch->user_stack = 0;
	forget_program(arch);
	irq_enable();
}

void user_leave(void)
{
	const u64 stack = this_cpu()->arch.user_stack;

	context_assert(CONTEXT_ORDINARY);
	ASSERT(stack, "user_leave() outside of user_enter()");
	irq_disable();
	user_unwind(stack);
}

void user_attend(cpu_t cpu)
{
	atomic_store_release(&cpu_data(cpu)->arch.user_attends, 1);
	ipi_send(cpu);
}

/* ---- registers ---- */

bool user_set_fs_base(u64 base)
{
	if (base >= USER_END)
		return false;
	wrmsr(MSR_FS_BASE, base);
	return true;
}

bool user_set_gs_base(u64 base)
{
	if (base >= USER_END)
		return false;
	wrmsr(MSR_GS_BASE_USER, base);
	return true;
}

u64 user_fs_base(void)
{
	return rdmsr(MSR_FS_BASE);
}

u64 user_gs_base(void)
{
	return rdmsr(MSR_GS_BASE_USER);
}

/*
 * USER_END itself is a possible RIP, behind a SYSCALL at the end of the last page. Nothing is
 * mapped there, so a program that is sent there by a RIP beyond it faults.
 */
void user_regs_make_safe(struct trap_frame *regs)
{
	regs->rip = MIN(regs->rip, USER_END);
	regs->cs = SELECTOR_USER_CODE;
	regs->ss = SELECTOR_USER_DATA;
	regs->rflags = (regs->rflags & FLAGS_FREE) | FLAGS_FIXED | RFLAGS_INTERRUPTS;
}

u64 user_hwcap(void)
{
	return cpuid(1, 0).edx;
}
