/* The calls for signals. Sources: Linux man-pages, section 2, page by page. */
#include "kernel/lib/string.h"
#include "kernel/program/calls.h"
#include "kernel/program/clocks.h"
#include "kernel/program/thread.h"
#include "kernel/program/signal.h"
#include "kernel/program/signal_frame.h"
#include "kernel/program/signal_queue.h"
#include "kernel/program/user_copy.h"

enum { SIGSET_BYTES = 8 };
enum { SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK };

static bool is_signal(u64 number)
{
	return number >= 1 && number <= SIGNALS_MAX;
}

static int read_set(user_t from, u64 bytes, u64 *set)
{
	return bytes == SIGSET_BYTES ? user_read(set, from, sizeof(*set)) : -EINVAL;
}

s64 call_rt_sigaction(const struct call_args *args)
{
	const int signal = (int)args->arg[0];
	const user_t new_at = args->arg[1], old_at = args->arg[2];
	struct signal_action action = {0}, old;

	if (args->arg[3] != SIGSET_BYTES || !is_signal(args->arg[0]))
		return -EINVAL;
	if (new_at && signal_bit(signal) & SIGNALS_FORCED)
		return -EINVAL;
	if (new_at && user_read(&action, new_at, sizeof(action)))
		return -EFAULT;
	action.mask &= ~SIGNALS_FORCED;
	old = signal_action_exchange(signal, new_at ? &action : NULL);
	return old_at ? user_write(old_at, &old, sizeof(old)) : 0;
}

s64 call_rt_sigprocmask(const struct call_args *args)
{
	struct thread *self = thread_current();
	const u64 old = self->blocked;
	u64 set;

	if (args->arg[3] != SIGSET_BYTES)
		return -EINVAL;
	if (args->arg[1]) {
		if (user_read(&set, args->arg[1], sizeof(set)))
			return -EFAULT;
		if (args->arg[0] == SIG_BLOCK)
			set |= old;
		else if (args->arg[0] == SIG_UNBLOCK)
			set = old & ~set;
		else if (args->arg[0] != SIG_SETMASK)
			return -EINVAL;
		signal_mask_set(self, set);
	}
	return args->arg[2] ? user_write(args->arg[2], &old, sizeof(old)) : 0;
}

/* The registers are those of the frame, rax included, so that is what is returned. */
s64 call_rt_sigreturn(const struct call_args *args)
{
	struct thread *self = thread_current();
	u64 mask;

	if (signal_frame_pop(args->regs, self, &mask))
		signal_raise_fault(args->regs, SIGSEGV, SI_KERNEL, 0);
	else
		signal_mask_set(self, mask);
	args->regs->error = SIGNAL_NO_CALL;
	return (s64)args->regs->rax;
}

s64 call_rt_sigpending(const struct call_args *args)
{
	const struct thread *self = thread_current();
	const u64 set = signal_pending_for(self) & self->blocked;

	if (args->arg[1] > SIGSET_BYTES)
		return -EINVAL;
	return user_write(args->arg[0], &set, args->arg[1]);
}

/* Wait until a signal can be delivered, or the thread is to end. */
static s64 wait_for_signal(struct thread *self)
{
	do
		thread_sleep_begin(self);
	while (thread_sleep(self, 0) != -EINTR);
	return -EINTR;
}

s64 call_pause(const struct call_args *args)
{
	return wait_for_signal(thread_current());
}

s64 call_rt_sigsuspend(const struct call_args *args)
{
	struct thread *self = thread_current();
	u64 mask;
	int err = read_set(args->arg[0], args->arg[1], &mask);

	if (err)
		return err;
	signal_mask_during_call(self, mask);
	return wait_for_signal(self);
}

static int write_info(user_t to, const struct signal_info *info)
{
	u8 bytes[SIGINFO_BYTES] = {0};

	memcpy(bytes, info, sizeof(*info));
	return user_write(to, bytes, sizeof(bytes));
}

/*
 * Take a signal of the set, or wait for it until `until_ns` (0: for ever). While the thread waits
 * it does not block the set, so that senders choose and wake it. Nothing is delivered meanwhile,
 * because the thread does not return to ring 3.
 */
static int wait_for_any(struct thread *self, u64 set, u64 until_ns, struct signal_info *info)
{
	const u64 old = self->blocked;
	bool taken;
	int err = 0;

	signal_mask_set(self, old & ~set);
	for (;;) {
		thread_sleep_begin(self);
		taken = signal_pending_take(self, set, info);
		if (taken || err)
			break;
		err = thread_sleep(self, until_ns);
	}
	signal_mask_set(self, old);
	if (taken)
		return 0;
	return err == -ETIMEDOUT ? -EAGAIN : err;
}

s64 call_rt_sigtimedwait(const struct call_args *args)
{
	struct thread *self = thread_current();
	struct signal_info info;
	u64 set, until;
	int err = read_set(args->arg[0], args->arg[3], &set);

	if (!err)
		err = clock_read_until(args->arg[2], 1, &until);
	if (err)
		return err;
	err = wait_for_any(self, set & ~SIGNALS_FORCED, until, &info);
	if (!err && args->arg[1])
		err = write_info(args->arg[1], &info);
	return err ? err : info.signal;
}

s64 call_sigaltstack(const struct call_args *args)
{
	struct thread *self = thread_current();
	const u64 sp = args->regs->rsp;
	const struct signal_stack old = signal_alt_stack_of(self, sp);
	struct signal_stack stack;

	if (args->arg[0]) {
		int err = user_read(&stack, args->arg[0], sizeof(stack));

		if (!err)
			err = signal_alt_stack_set(self, sp, &stack);
		if (err)
			return err;
	}
	return args->arg[1] ? user_write(args->arg[1], &old, sizeof(old)) : 0;
}

/* ---- sending ---- */

static struct signal_info info_of(int signal, int code)
{
	return (struct signal_info){.signal = signal, .code = code, .pid = (s32)program_pid()};
}

/* There is one process, in a group of its own. */
static s64 send_to_program(s32 pid, u64 signal, const struct signal_info *info)
{
	const s32 own = (s32)program_pid();

	if (signal != 0 && !is_signal(signal))
		return -EINVAL;
	if (pid != own && pid != 0 && pid != -1 && pid != -own)
		return -ESRCH;
	return signal ? signal_send(NULL, (int)signal, info) : 0;
}

s64 call_kill(const struct call_args *args)
{
	const struct signal_info info = info_of((int)args->arg[1], SI_USER);

	return send_to_program((s32)args->arg[0], args->arg[1], &info);
}

s64 call_tgkill(const struct call_args *args)
{
	const u64 signal = args->arg[2];
	const struct signal_info info = info_of((int)signal, SI_TKILL);

	if ((s32)args->arg[0] <= 0 || (s32)args->arg[1] <= 0 || (signal && !is_signal(signal)))
		return -EINVAL;
	if ((u32)args->arg[0] != program_pid())
		return -ESRCH;
	return signal_send_to((u32)args->arg[1], (int)signal, &info);
}

s64 call_rt_sigqueueinfo(const struct call_args *args)
{
	struct signal_info info;

	if (user_read(&info, args->arg[2], sizeof(info)))
		return -EFAULT;
	info.signal = (s32)args->arg[1];
	info.gap = 0;
	if ((s32)args->arg[0] <= 0)
		return -ESRCH;
	return send_to_program((s32)args->arg[0], args->arg[1], &info);
}
