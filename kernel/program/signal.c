#include "kernel/program/signal.h"

#include <arch/atomic.h>

#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "kernel/program/program_death.h"
#include "kernel/program/signal_frame.h"
#include "kernel/program/signal_queue.h"

static u64 stops_said; /* stop signals that the log has mentioned; atomic */

void signals_begin(void)
{
	signal_queue_reset();
	atomic_store_relaxed(&stops_said, 0);
}

static u64 blocked_by(const struct thread *thread)
{
	return atomic_load_relaxed(&thread->blocked);
}

bool signal_is_deliverable(const struct thread *thread)
{
	return signal_pending_for(thread) & ~blocked_by(thread);
}

/* ---- sending ---- */

static bool would_take(const struct thread *thread, u64 set)
{
	return !atomic_load_relaxed(&thread->ending) && set & ~blocked_by(thread);
}

/*
 * Have one thread look at signals for the program, best the one that runs here. The message
 * interrupts ring 3, or ends a halt in thread_sleep(), which looks again.
 */
static void route(u64 set)
{
	struct thread *thread = thread_current();

	if (!thread || !would_take(thread, set)) {
		thread = thread_next(NULL);
		while (thread && !would_take(thread, set))
			thread = thread_next(thread);
	}
	if (thread)
		user_attend(thread->cpu);
}

static bool is_blocked_by_any(u64 bit)
{
	struct thread *thread = thread_next(NULL);

	while (thread && !(blocked_by(thread) & bit))
		thread = thread_next(thread);
	return thread;
}

/*
 * A signal that does nothing is not even made pending. The exception is a thread that blocks the
 * signal, because it may wait for it.
 */
static bool is_pointless(const struct thread *thread, u64 bit)
{
	if (!(signals_ignored() & bit))
		return false;
	return thread ? !(blocked_by(thread) & bit) : !is_blocked_by_any(bit);
}

static int send_signal(struct thread *thread, u32 id, int signal, const struct signal_info *info)
{
	int err;

	if (signal < 1 || signal > SIGNALS_MAX)
		return -EINVAL;
	if (is_pointless(thread, signal_bit(signal)))
		return 0;
	err = signal_pending_add(thread, id, info);
	if (err)
		return err;
	if (!thread)
		route(signal_bit(signal));
	else if (would_take(thread, signal_bit(signal)))
		user_attend(thread->cpu);
	return 0;
}

int signal_send(struct thread *thread, int signal, const struct signal_info *info)
{
	return send_signal(thread, 0, signal, info);
}

int signal_send_to(u32 id, int signal, const struct signal_info *info)
{
	struct thread *thread = thread_by_id(id);

	if (!thread)
		return -ESRCH;
	return signal ? send_signal(thread, id, signal, info) : 0;
}

static void route_shared(u64 set)
{
	const u64 waiting = signal_pending_shared() & set;

	if (waiting)
		route(waiting);
}

void signal_mask_set(struct thread *thread, u64 mask)
{
	const u64 old = blocked_by(thread);

	mask &= ~SIGNALS_FORCED;
	atomic_exchange(&thread->blocked, mask);
	if (signal_is_deliverable(thread))
		user_attend(thread->cpu);
	route_shared(mask & ~old);
}

void signal_thread_ended(struct thread *thread)
{
	atomic_exchange(&thread->blocked, ~0ULL);
	signal_pending_forget_thread(thread);
	route_shared(~0ULL);
}

/* ---- delivering ---- */

static void say_stop(int signal)
{
	if (!(atomic_fetch_or(&stops_said, signal_bit(signal)) & signal_bit(signal)))
		pr_warn("program: signal %d would stop the program; nothing is stopped here",
			signal);
}

/* A handler begins. Give a call that is to be restarted its result, or have it made again. */
static void settle_call(struct trap_frame *regs, bool again)
{
	if (regs->vector != USER_VECTOR_CALL || regs->error == SIGNAL_NO_CALL ||
	    (s64)regs->rax != -ERESTARTSYS)
		return;
	if (again) {
		regs->rax = regs->error;
		regs->rip -= 2; /* the length of SYSCALL */
	} else {
		regs->rax = (u64)-EINTR;
	}
}

/* Begin a handler. If its frame does not fit, that is a SIGSEGV; for SIGSEGV itself, the end. */
static void run_handler(struct trap_frame *regs, struct thread *thread,
			const struct signal_call *call)
{
	const int signal = call->info->signal;
	const u64 now = call->action->flags & SA_NODEFER ? 0 : signal_bit(signal);

	if (signal_frame_push(regs, thread, call) == 0)
		signal_mask_set(thread, blocked_by(thread) | call->action->mask | now);
	else if (signal == SIGSEGV)
		program_die(signal, call->info, regs);
	else
		signal_raise_fault(regs, SIGSEGV, SI_KERNEL, 0);
}

void signal_raise_fault(struct trap_frame *regs, int signal, int code, u64 addr)
{
	struct thread *thread = thread_current();
	const struct signal_info info = {.signal = signal, .code = code, .addr = addr};
	const struct signal_action action = signal_action_use(signal);
	const struct signal_call call = {.action = &action,
					 .info = &info,
					 .mask = blocked_by(thread),
					 .cr2 = regs->vector == VECTOR_PAGE_FAULT ? addr : 0};

	if (action.handler <= SIG_IGN || call.mask & signal_bit(signal))
		program_die(signal, &info, regs);
	else
		run_handler(regs, thread, &call);
}

/* Deliver one signal; `mask` is what its handler's return restores. */
static void deliver(struct trap_frame *regs, struct thread *thread, const struct signal_info *info,
		    u64 mask)
{
	const int signal = info->signal;
	const struct signal_action action = signal_action_use(signal);
	const struct signal_call call = {.action = &action, .info = info, .mask = mask};

	if (action.handler == SIG_IGN)
		return;
	if (action.handler == SIG_DFL) {
		if (SIGNALS_STOPPING & signal_bit(signal))
			say_stop(signal);
		else if (!(SIGNALS_IGNORED & signal_bit(signal)))
			program_die(signal, info, regs);
		return;
	}
	settle_call(regs, action.flags & SA_RESTART);
	run_handler(regs, thread, &call);
}

/* Deliver all there is. The first frame restores `mask`, each later one the mask it found. */
static void deliver_all(struct trap_frame *regs, struct thread *thread, u64 mask)
{
	const u64 rsp = regs->rsp;
	struct signal_info info;

	while (!atomic_load_relaxed(&thread->ending) &&
	       signal_pending_take(thread, ~blocked_by(thread), &info))
		deliver(regs, thread, &info, regs->rsp == rsp ? mask : blocked_by(thread));
}

void signal_deliver(struct trap_frame *regs)
{
	struct thread *thread = thread_current();

	deliver_all(regs, thread, blocked_by(thread));
}

void signal_mask_during_call(struct thread *thread, u64 mask)
{
	thread->mask_after = blocked_by(thread);
	thread->has_mask_after = true;
	signal_mask_set(thread, mask);
}

bool signal_call_goes_on(struct trap_frame *regs)
{
	struct thread *thread = thread_current();
	const s64 result = (s64)regs->rax;
	const bool interrupted =
		(result == -EINTR || result == -ERESTARTSYS) && regs->error != SIGNAL_NO_CALL;
	const u64 rsp = regs->rsp;

	if (!thread)
		return false;
	if (interrupted)
		deliver_all(regs, thread,
			    thread->has_mask_after ? thread->mask_after : blocked_by(thread));
	if (thread->has_mask_after && regs->rsp == rsp) /* otherwise a handler's frame has it */
		signal_mask_set(thread, thread->mask_after);
	thread->has_mask_after = false;
	if (interrupted && regs->rsp == rsp && !thread_must_end(thread))
		return true;
	thread->until_ns = 0;
	return false;
}

/*
 * ---- which signal an exception becomes ----
 *
 * Exceptions without a fault address have the code SI_KERNEL and the address 0, as on Linux; the
 * others have the address of the instruction.
 *
 * Sources: Intel SDM vol. 3A, table 6-1; vol. 1, 8.5 and 11.5 for floating point.
 */

#define RFLAGS_TF (1ULL << 8)

/* Bits of the x87 status word and of MXCSR; the bit that masks each is the same one elsewhere. */
enum {
	FLOAT_INVALID = 1 << 0,
	FLOAT_DENORMAL = 1 << 1,
	FLOAT_DIVIDE = 1 << 2,
	FLOAT_OVERFLOW = 1 << 3,
	FLOAT_UNDERFLOW = 1 << 4,
	FLOAT_INEXACT = 1 << 5,
};
enum { MXCSR_MASKS_SHIFT = 7 };

/* The exception with the highest priority of those that happened and are not masked. */
static int float_code(u32 happened)
{
	return happened & FLOAT_INVALID                        ? FPE_FLTINV
	       : happened & FLOAT_DIVIDE                       ? FPE_FLTDIV
	       : happened & FLOAT_OVERFLOW                     ? FPE_FLTOVF
	       : happened & (FLOAT_UNDERFLOW | FLOAT_DENORMAL) ? FPE_FLTUND
	       : happened & FLOAT_INEXACT                      ? FPE_FLTRES
							       : SI_KERNEL;
}

static u32 unmasked(const u8 *area, bool x87)
{
	u16 control, status;
	u32 mxcsr;

	memcpy(&control, area + FXSAVE_FCW, sizeof(control));
	memcpy(&status, area + FXSAVE_FSW, sizeof(status));
	memcpy(&mxcsr, area + FXSAVE_MXCSR, sizeof(mxcsr));
	return x87 ? status & ~(u32)control : mxcsr & ~(mxcsr >> MXCSR_MASKS_SHIFT);
}

static int float_code_of(bool x87)
{
	u8 *area = thread_current()->vectors;

	user_vectors_save(area);
	return float_code(unmasked(area, x87));
}

/* By vector; one that is not here is a SIGSEGV. */
static const struct becomes {
	int signal, code;
	bool has_address; /* of the instruction */
} becomes[] = {
	[VECTOR_DIVIDE] = {SIGFPE, FPE_INTDIV, true},
	[VECTOR_DEBUG] = {SIGTRAP, TRAP_BRKPT, true},
	[VECTOR_BREAKPOINT] = {SIGTRAP, SI_KERNEL, false},
	[VECTOR_OPCODE] = {SIGILL, ILL_ILLOPN, true},
	[VECTOR_SEGMENT] = {SIGBUS, SI_KERNEL, false},
	[VECTOR_STACK] = {SIGBUS, SI_KERNEL, false},
	[VECTOR_X87] = {SIGFPE, SI_KERNEL, true},
	[VECTOR_ALIGNMENT] = {SIGBUS, BUS_ADRALN, false},
	[VECTOR_SIMD] = {SIGFPE, SI_KERNEL, true},
};

void program_exception(struct trap_frame *regs)
{
	struct becomes row = {.signal = SIGSEGV, .code = SI_KERNEL};

	if (regs->vector < ARRAY_LEN(becomes) && becomes[regs->vector].signal)
		row = becomes[regs->vector];
	if (regs->vector == VECTOR_X87 || regs->vector == VECTOR_SIMD)
		row.code = float_code_of(regs->vector == VECTOR_X87);
	else if (regs->vector == VECTOR_DEBUG && regs->rflags & RFLAGS_TF)
		row.code = TRAP_TRACE;
	signal_raise_fault(regs, row.signal, row.code, row.has_address ? regs->rip : 0);
}
