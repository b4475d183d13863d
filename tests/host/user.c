/* Ring 3, hosted: a stand-in without one (arch/user.h). */
#include <arch/user.h>
#include <setjmp.h>

#include "kernel/core/quiet.h"
#include "tests/host/host.h"

enum { VECTORS_SIZE = 512, USER_CODE = 0x33, USER_DATA = 0x2b };
enum { FLAGS_FREE = 0x254dd5, FLAGS_FIXED = 0x202 };

void (*host_user_program)(struct trap_frame *regs);
bool host_user_is_quiet;

static const struct user_ops *ops;
static u32 attends[HOST_CPUS_MAX];

static struct ring3 {
	jmp_buf back;
	bool running;
	u64 fs_base, gs_base;
	u8 vectors[VECTORS_SIZE];
} ring3[HOST_CPUS_MAX];

static struct ring3 *me(void)
{
	return &ring3[host_me->id];
}

void user_set_ops(const struct user_ops *new_ops)
{
	ops = new_ops;
}

/* A return to ring 3: attend() is called if user_attend() was; the registers are made safe. */
static void host_user_return(struct trap_frame *regs)
{
	while (atomic_exchange(&attends[cpu_id()], 0))
		ops->attend(regs);
	user_regs_make_safe(regs);
	if (host_user_is_quiet)
		quiet_begin();
}

/* An entry into the kernel, which arch code begins with interrupts off. */
static void host_user_entry(void)
{
	const irq_flags_t flags = irq_save();

	quiet_end();
	irq_restore(flags);
}

void host_user_call(struct trap_frame *regs)
{
	host_user_entry();
	regs->vector = USER_VECTOR_CALL;
	regs->error = regs->rax;
	ops->call(regs);
	host_user_return(regs);
}

void host_user_fault(struct trap_frame *regs, virt_t addr, enum user_access access)
{
	host_user_entry();
	ops->fault(regs, addr, access);
	host_user_return(regs);
}

void user_enter(const struct trap_frame *regs, u64 fs_base, const void *vectors)
{
	struct trap_frame first = *regs;

	context_assert(CONTEXT_ORDINARY);
	ASSERT(ops, "user_enter() without user_set_ops()");
	ASSERT(!me()->running, "user_enter() inside of user_enter()");
	me()->fs_base = me()->gs_base = 0;
	user_set_fs_base(fs_base);
	if (!vectors || !user_vectors_load(vectors))
		memset(me()->vectors, 0, sizeof(me()->vectors));
	me()->running = true;
	if (_setjmp(me()->back) == 0) {
		host_user_return(&first);
		if (host_user_program)
			host_user_program(&first);
		host_user_entry();
	}
	me()->running = false;
}

void user_leave(void)
{
	context_assert(CONTEXT_ORDINARY);
	ASSERT(me()->running, "user_leave() outside of user_enter()");
	_longjmp(me()->back, 1);
}

void user_attend(cpu_t cpu)
{
	atomic_store_release(&attends[cpu], 1);
	ipi_send(cpu);
}

bool user_set_fs_base(u64 base)
{
	if (base >= USER_END)
		return false;
	me()->fs_base = base;
	return true;
}

bool user_set_gs_base(u64 base)
{
	if (base >= USER_END)
		return false;
	me()->gs_base = base;
	return true;
}

u64 user_fs_base(void)
{
	return me()->fs_base;
}

u64 user_gs_base(void)
{
	return me()->gs_base;
}

size_t user_vectors_size(void)
{
	return VECTORS_SIZE;
}

u64 user_vectors_features(void)
{
	return 0; /* as a CPU without XSAVE */
}

void user_vectors_save(void *area)
{
	memcpy(area, me()->vectors, VECTORS_SIZE);
}

/* Byte 24 is MXCSR, whose upper half is reserved. */
bool user_vectors_load(const void *area)
{
	u32 mxcsr;

	memcpy(&mxcsr, (const u8 *)area + 24, sizeof(mxcsr));
	if (mxcsr > 0xffff)
		return false;
	memcpy(me()->vectors, area, VECTORS_SIZE);
	return true;
}

void user_regs_make_safe(struct trap_frame *regs)
{
	regs->rip = MIN(regs->rip, USER_END);
	regs->cs = USER_CODE;
	regs->ss = USER_DATA;
	regs->rflags = (regs->rflags & FLAGS_FREE) | FLAGS_FIXED;
}

/* A CPU of the first generation of x86-64. */
u64 user_hwcap(void)
{
	return 0x078bfbff;
}
