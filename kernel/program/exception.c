/*
 * Which signal an exception becomes. Exceptions without a fault address have the code SI_KERNEL and
 * the address 0, as on Linux; the others have the address of the instruction.
 *
 * Sources: Intel SDM vol. 3A, table 6-1; vol. 1, 8.5 and 11.5 for floating point.
 */
#include "kernel/program/signal.h"

#include "kernel/lib/string.h"

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
	if (happened & FLOAT_INVALID)
		return FPE_FLTINV;
	if (happened & FLOAT_DIVIDE)
		return FPE_FLTDIV;
	if (happened & FLOAT_OVERFLOW)
		return FPE_FLTOVF;
	if (happened & (FLOAT_UNDERFLOW | FLOAT_DENORMAL))
		return FPE_FLTUND;
	if (happened & FLOAT_INEXACT)
		return FPE_FLTRES;
	return SI_KERNEL;
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
