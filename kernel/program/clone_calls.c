/* Calls that start threads: clone(2), set_tid_address(2). */
#include <arch/atomic.h>

#include "kernel/core/printk.h"
#include "kernel/program/calls.h"
#include "kernel/program/thread.h"

#define CLONE_VM             0x00000100ULL
#define CLONE_SIGHAND        0x00000800ULL
#define CLONE_THREAD         0x00010000ULL
#define CLONE_SETTLS         0x00080000ULL
#define CLONE_PARENT_SETTID  0x00100000ULL
#define CLONE_CHILD_CLEARTID 0x00200000ULL
#define CLONE_CHILD_SETTID   0x01000000ULL

s64 call_clone(const struct call_args *args)
{
	const u64 flags = args->arg[0], needed = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
	struct trap_frame regs = *args->regs;
	struct thread_request request = {.regs = &regs, .fs_base = user_fs_base()};

	if ((flags & needed) != needed) {
		static u32 said;

		if (atomic_exchange(&said, 1) == 0)
			pr_warn("program: clone() of a process (flags %llx): there is one process "
				"(ENOSYS)",
				flags);
		return -ENOSYS;
	}
	regs.rax = 0;
	if (args->arg[1])
		regs.rsp = args->arg[1];
	if (flags & CLONE_SETTLS)
		request.fs_base = args->arg[4];
	if (request.fs_base >= USER_END)
		return -EPERM;
	if (flags & CLONE_PARENT_SETTID)
		request.parent_tid = args->arg[2];
	if (flags & CLONE_CHILD_SETTID)
		request.child_tid = args->arg[3];
	if (flags & CLONE_CHILD_CLEARTID)
		request.clear_child_tid = args->arg[3];
	return thread_start(&request);
}

s64 call_set_tid_address(const struct call_args *args)
{
	struct thread *self = thread_current();

	self->clear_child_tid = args->arg[0];
	return self->id;
}
