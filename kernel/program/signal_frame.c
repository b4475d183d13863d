/*
 * The vector registers go through the thread's own area (thread->vectors), because only the checked
 * copy (user_copy.h) writes to the program's stack. So neither a handler nor its return needs
 * memory, if the pages of the stack are there.
 */
#include "kernel/program/signal_frame.h"

#include "kernel/lib/string.h"
#include "kernel/program/user_copy.h"

enum { RED_ZONE = 128, VECTORS_ALIGN = 64, STACK_ALIGN = 16 };

/* Flags that a handler may change in its frame: AC, RF, OF, DF, TF, SF, ZF, AF, PF, CF. */
#define RFLAGS_PROGRAM 0x50dd5ULL
#define RFLAGS_DF      (1ULL << 10)
#define RFLAGS_TF      (1ULL << 8)
#define RFLAGS_RF      (1ULL << 16)

/* Values after a reset (Intel SDM vol. 1, 8.1.5 and 11.6.4); the features of the same two. */
enum { FCW_RESET = 0x37f, MXCSR_RESET = 0x1f80, FEATURES_X87_SSE = 3 };

/* Bytes behind the registers for the second magic number. Without XSAVE there is none. */
static u64 magic2_bytes(void)
{
	return user_vectors_size() > FXSAVE_BYTES ? sizeof(u32) : 0;
}

/* Is `sp` on the thread's alternate stack? Never with SS_AUTODISARM. */
static bool on_alt_stack(const struct thread *thread, u64 sp)
{
	if (thread->alt_stack_flags & SS_AUTODISARM)
		return false;
	return sp > thread->alt_stack && sp - thread->alt_stack <= thread->alt_stack_size;
}

struct signal_stack signal_alt_stack_of(const struct thread *thread, u64 sp)
{
	struct signal_stack stack = {.sp = thread->alt_stack,
				     .flags = thread->alt_stack_flags,
				     .size = thread->alt_stack_size};

	if (!thread->alt_stack_size)
		stack.flags = SS_DISABLE;
	else if (on_alt_stack(thread, sp))
		stack.flags |= SS_ONSTACK;
	return stack;
}

static void alt_stack_none(struct thread *thread)
{
	thread->alt_stack = thread->alt_stack_size = 0;
	thread->alt_stack_flags = SS_DISABLE;
}

int signal_alt_stack_set(struct thread *thread, u64 sp, const struct signal_stack *stack)
{
	const u32 mode = stack->flags & ~SS_AUTODISARM;

	if (on_alt_stack(thread, sp))
		return -EPERM;
	if (mode != 0 && mode != SS_ONSTACK && mode != SS_DISABLE)
		return -EINVAL;
	if (mode == SS_DISABLE) {
		alt_stack_none(thread);
		return 0;
	}
	if (stack->size < MINSIGSTKSZ)
		return -ENOMEM;
	thread->alt_stack = stack->sp;
	thread->alt_stack_size = stack->size;
	thread->alt_stack_flags = stack->flags & SS_AUTODISARM;
	return 0;
}

/* Addresses of the parts of a frame. */
struct place {
	user_t vectors, frame;
};

static int place_find(struct place *place, const struct thread *thread, u64 rsp,
		      const struct signal_action *action)
{
	const bool stays = on_alt_stack(thread, rsp);
	const bool enters = action->flags & SA_ONSTACK && thread->alt_stack_size && !stays;
	const u64 top = enters ? thread->alt_stack + thread->alt_stack_size : rsp - RED_ZONE;

	place->vectors = ALIGN_DOWN(top - user_vectors_size() - magic2_bytes(), VECTORS_ALIGN);
	place->frame = ALIGN_DOWN(place->vectors - sizeof(struct signal_frame), STACK_ALIGN) - 8;
	if (place->frame > top) /* there are no addresses left */
		return -EFAULT;
	if ((stays || enters) && place->frame < thread->alt_stack)
		return -EFAULT;
	return 0;
}

static int push_vectors(u8 *area, user_t to)
{
	const u64 size = user_vectors_size(), extra = magic2_bytes();
	const u32 magic2 = FP_XSTATE_MAGIC2;
	struct vectors_note note = {.magic = 0};
	int err;

	if (extra)
		note = (struct vectors_note){.magic = FP_XSTATE_MAGIC1,
					     .extended_size = (u32)(size + extra),
					     .features = user_vectors_features(),
					     .size = (u32)size};
	user_vectors_save(area);
	memcpy(area + FXSAVE_NOTE, &note, sizeof(note));
	err = user_write(to, area, size);
	return err ? err : user_write(to + size, &magic2, extra);
}

/* Registers of both forms, without the flags. */
#define REGISTERS(copy)                                                                            \
	copy(r8) copy(r9) copy(r10) copy(r11) copy(r12) copy(r13) copy(r14) copy(r15) copy(rdi)    \
		copy(rsi) copy(rbp) copy(rbx) copy(rdx) copy(rax) copy(rcx) copy(rsp) copy(rip)

static void fill_registers(struct signal_registers *to, const struct trap_frame *from)
{
	const bool exception = from->vector < 32;

#define COPY(name) to->name = from->name;
	REGISTERS(COPY)
	to->rflags = from->rflags;
	to->cs = (u16)from->cs;
	to->ss = (u16)from->ss;
	to->error = exception ? from->error : 0;
	to->vector = exception ? from->vector : 0;
}

static void begin_handler(struct trap_frame *regs, const struct signal_call *call, user_t frame)
{
	regs->rax = 0;
	regs->rdi = (u64)call->info->signal;
	regs->rsi = frame + offsetof(struct signal_frame, info);
	regs->rdx = frame + offsetof(struct signal_frame, context);
	regs->rsp = frame;
	regs->rip = call->action->handler;
	regs->rflags &= ~(RFLAGS_DF | RFLAGS_TF | RFLAGS_RF);
}

int signal_frame_push(struct trap_frame *regs, struct thread *thread,
		      const struct signal_call *call)
{
	struct signal_frame frame = {.restorer = call->action->restorer, .info = *call->info};
	struct place place;
	int err;

	if (!(call->action->flags & SA_RESTORER))
		return -EFAULT;
	err = place_find(&place, thread, regs->rsp, call->action);
	if (!err)
		err = push_vectors(thread->vectors, place.vectors);
	if (err)
		return err;
	fill_registers(&frame.context.registers, regs);
	frame.context.registers.oldmask = call->mask;
	frame.context.registers.cr2 = call->cr2;
	frame.context.registers.vectors = place.vectors;
	frame.context.flags = UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
	if (magic2_bytes())
		frame.context.flags |= UC_FP_XSTATE;
	frame.context.stack = (struct signal_stack){.sp = thread->alt_stack,
						    .flags = thread->alt_stack_flags,
						    .size = thread->alt_stack_size};
	frame.context.mask = call->mask;
	err = user_write(place.frame, &frame, sizeof(frame));
	if (err)
		return err;
	if (thread->alt_stack_flags & SS_AUTODISARM)
		alt_stack_none(thread);
	begin_handler(regs, call, place.frame);
	return 0;
}

static void take_registers(struct trap_frame *to, const struct signal_registers *from)
{
	REGISTERS(COPY)
	to->rflags = (to->rflags & ~RFLAGS_PROGRAM) | (from->rflags & RFLAGS_PROGRAM);
	user_regs_make_safe(to);
}

/*
 * Everything is read if both magic numbers and the size are ours. A program may also have built an
 * area that has the first 512 bytes only; the registers beyond x87 and SSE are then as after a
 * reset.
 */
static int read_vectors(u8 *area, user_t from)
{
	const u64 features = FEATURES_X87_SSE, size = user_vectors_size();
	struct vectors_note note;
	u32 magic2 = 0;
	int err = user_read(area, from, FXSAVE_BYTES);

	if (err || !magic2_bytes())
		return err;
	memcpy(&note, area + FXSAVE_NOTE, sizeof(note));
	if (note.magic == FP_XSTATE_MAGIC1 && note.size == size &&
	    note.extended_size >= size + magic2_bytes())
		err = user_read(&magic2, from + size, sizeof(magic2));
	if (err)
		return err;
	if (magic2 == FP_XSTATE_MAGIC2)
		return user_read(area + FXSAVE_BYTES, from + FXSAVE_BYTES, size - FXSAVE_BYTES);
	memcpy(area + FXSAVE_BYTES, &features, sizeof(features));
	return 0;
}

/* Without an area of the program, the registers are as after a reset: zero but for two. */
static int take_vectors(u8 *area, user_t from)
{
	const u16 fcw = FCW_RESET;
	const u32 mxcsr = MXCSR_RESET;
	int err = 0;

	memset(area, 0, user_vectors_size());
	memcpy(area + FXSAVE_FCW, &fcw, sizeof(fcw));
	memcpy(area + FXSAVE_MXCSR, &mxcsr, sizeof(mxcsr));
	if (from)
		err = read_vectors(area, from);
	return !err && !user_vectors_load(area) ? -EFAULT : err;
}

int signal_frame_pop(struct trap_frame *regs, struct thread *thread, u64 *mask)
{
	struct signal_context context;
	/* The handler's return instruction has taken the restorer from the stack. */
	int err = user_read(&context, regs->rsp, sizeof(context));

	if (err)
		return err;
	err = take_vectors(thread->vectors, context.registers.vectors);
	if (err)
		return err;
	take_registers(regs, &context.registers);
	signal_alt_stack_set(thread, regs->rsp, &context.stack); /* as it was, or left alone */
	*mask = context.mask;
	return 0;
}
