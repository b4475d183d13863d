/* The table of calls: see calls.h. */
#include "kernel/program/calls.h"

#include <arch/atomic.h>

#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/program/signal.h"

static const struct call *by_number[CALLS_MAX];
static u32 missed[CALLS_MAX + 1]; /* said once; the last counts numbers beyond the table */

void calls_init(void)
{
	const struct call *call;

	TABLE_FOREACH(call, call_table)
	{
		ASSERT(call->number < CALLS_MAX &&
			       (!by_number[call->number] || by_number[call->number] == call),
		       "call %u (%s) is there twice", call->number, call->name);
		by_number[call->number] = call;
	}
}

const struct call *call_of(unsigned number)
{
	return number < CALLS_MAX ? by_number[number] : NULL;
}

static s64 miss(const struct trap_frame *regs)
{
	const u64 number = MIN(regs->rax, (u64)CALLS_MAX);

	if (atomic_exchange(&missed[number], 1) == 0)
		pr_warn("program: call %llu is not there (ENOSYS); called at %llx", regs->rax,
			regs->rip);
	return -ENOSYS;
}

void calls_serve(struct trap_frame *regs)
{
	const struct call *call = regs->rax < CALLS_MAX ? by_number[regs->rax] : NULL;
	const struct call_args args = {
		.arg = {regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8, regs->r9},
		.regs = regs};

	regs->error = regs->rax; /* for a call that is made again (signal.h) */
	regs->rax = (u64)(call ? call->run(&args) : miss(regs));
	if ((s64)regs->rax == -ERESTARTSYS)
		user_attend(cpu_id());
}
