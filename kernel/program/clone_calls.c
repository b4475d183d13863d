/* Calls that start threads: clone(2), clone3(2), set_tid_address(2). */
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

struct clone {
	u64 flags, stack_top, tls;
	user_t parent_tid, child_tid;
};

static s64 start(const struct call_args *args, const struct clone *clone)
{
	const u64 needed = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
	struct trap_frame regs = *args->regs;
	struct thread_request request = {.regs = &regs, .fs_base = user_fs_base()};

	if ((clone->flags & needed) != needed) {
		static u32 said;

		if (atomic_exchange(&said, 1) == 0)
			pr_warn("program: clone() of a process (flags %llx): there is one process "
				"(ENOSYS)",
				clone->flags);
		return -ENOSYS;
	}
	regs.rax = 0;
	if (clone->stack_top)
		regs.rsp = clone->stack_top;
	if (clone->flags & CLONE_SETTLS)
		request.fs_base = clone->tls;
	if (request.fs_base >= USER_END)
		return -EPERM;
	if (clone->flags & CLONE_PARENT_SETTID)
		request.parent_tid = clone->parent_tid;
	if (clone->flags & CLONE_CHILD_SETTID)
		request.child_tid = clone->child_tid;
	if (clone->flags & CLONE_CHILD_CLEARTID)
		request.clear_child_tid = clone->child_tid;
	return thread_start(&request);
}

s64 call_clone(const struct call_args *args)
{
	return start(args, &(struct clone){.flags = args->arg[0],
					   .stack_top = args->arg[1],
					   .parent_tid = args->arg[2],
					   .child_tid = args->arg[3],
					   .tls = args->arg[4]});
}

s64 call_clone3(const struct call_args *args)
{
	struct {
		u64 flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	} wish;

	if (args->arg[1] < sizeof(wish))
		return -EINVAL;
	if (user_read(&wish, args->arg[0], sizeof(wish)) < 0)
		return -EFAULT;
	if ((wish.stack == 0) != (wish.stack_size == 0) || wish.exit_signal != 0)
		return -EINVAL;
	return start(args, &(struct clone){.flags = wish.flags,
					   .stack_top = wish.stack + wish.stack_size,
					   .parent_tid = wish.parent_tid,
					   .child_tid = wish.child_tid,
					   .tls = wish.tls});
}

s64 call_set_tid_address(const struct call_args *args)
{
	struct thread *self = thread_current();

	self->clear_child_tid = args->arg[0];
	return self->id;
}
