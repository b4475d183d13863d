/*
 * Signals as programs see them: numbers, flags, and the structures that lie in their memory.
 *
 * The stack of a handler, as it begins:
 *
 *   old rsp - 128   (red zone of the interrupted function, left alone)
 *                   4 bytes: FP_XSTATE_MAGIC2 behind the vector registers
 *   64-aligned      vector registers, as XSAVE stores them, with struct vectors_note at byte 464
 *   rsp + 312       siginfo_t, 128 bytes                                       -> rsi
 *   rsp + 8         ucontext_t, 304 bytes                                      -> rdx
 *   rsp             address of the restorer, where the handler returns to
 *
 * rsp + 8 is a multiple of 16, as at the entry of any function.
 *
 * Sources: "System V Application Binary Interface, AMD64 Architecture Processor Supplement", 3.2.2
 * and 3.4.1; Linux man-pages, sigaction(2), sigaltstack(2), signal(7); the public header
 * asm/sigcontext.h of the Linux user API, for offsets and magic numbers.
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/program/user_copy.h"

enum { SIGINT = 2, SIGILL = 4, SIGTRAP, SIGBUS = 7, SIGFPE, SIGKILL, SIGUSR1, SIGSEGV, SIGUSR2 };
enum { SIGPIPE = 13, SIGALRM, SIGTERM, SIGCHLD = 17, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU };
enum { SIGURG = 23, SIGWINCH = 28, SIGNALS_MAX = 64 };
enum { SIGNALS_QUEUED = 32 }; /* from here on several of a number may be pending */

/* Signal n is bit n - 1 of a set. */
static inline u64 signal_bit(int signal)
{
	return 1ULL << (signal - 1);
}

#define SIGNALS_FORCED (1ULL << (SIGKILL - 1) | 1ULL << (SIGSTOP - 1)) /* never blocked or caught */
/* Signals whose default action does nothing, or stops, which programs here cannot. */
#define SIGNALS_IGNORED                                                                            \
	(1ULL << (SIGCHLD - 1) | 1ULL << (SIGURG - 1) | 1ULL << (SIGWINCH - 1) |                   \
	 1ULL << (SIGCONT - 1))
#define SIGNALS_STOPPING                                                                           \
	(1ULL << (SIGSTOP - 1) | 1ULL << (SIGTSTP - 1) | 1ULL << (SIGTTIN - 1) |                   \
	 1ULL << (SIGTTOU - 1))

/* si_code */
enum { SI_USER = 0, SI_KERNEL = 0x80, SI_QUEUE = -1, SI_TIMER = -2, SI_TKILL = -6 };
enum { ILL_ILLOPN = 2, SEGV_MAPERR = 1, SEGV_ACCERR, BUS_ADRALN = 1, BUS_ADRERR };
enum { FPE_INTDIV = 1, FPE_FLTDIV = 3, FPE_FLTOVF, FPE_FLTUND, FPE_FLTRES, FPE_FLTINV };
enum { TRAP_BRKPT = 1, TRAP_TRACE };

/* The first 32 bytes of siginfo_t. The rest of it is zero. */
struct signal_info {
	s32 signal, error, code;
	u32 gap;
	union {
		u64 addr; /* faults */
		struct {
			s32 pid; /* signals that were sent; SI_TIMER: the timer's number */
			u32 uid; /* SI_TIMER: its overruns */
		};
	};
	u64 value; /* sigqueue(), timer_create() */
};

enum { SIGINFO_BYTES = 128 };

/* struct sigaction as calls pass it. */
struct signal_action {
	u64 handler, flags, restorer, mask;
};

enum { SIG_DFL = 0, SIG_IGN = 1 };

#define SA_SIGINFO   0x00000004ULL
#define SA_RESTORER  0x04000000ULL
#define SA_ONSTACK   0x08000000ULL
#define SA_RESTART   0x10000000ULL
#define SA_NODEFER   0x40000000ULL
#define SA_RESETHAND 0x80000000ULL

/* stack_t */
struct signal_stack {
	u64 sp;
	u32 flags, gap;
	u64 size;
};

#define SS_ONSTACK    1u
#define SS_DISABLE    2u
#define SS_AUTODISARM 0x80000000u
enum { MINSIGSTKSZ = 2048 };

/* mcontext_t. */
struct signal_registers {
	u64 r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip,
		rflags;
	u16 cs, gs, fs, ss;
	u64 error, vector, oldmask, cr2;
	user_t vectors; /* 0: as after a reset */
	u64 reserved[8];
};

/* ucontext_t, with the 8 bytes of its signal set that the kernel uses. */
struct signal_context {
	u64 flags, link;
	struct signal_stack stack;
	struct signal_registers registers;
	u64 mask;
};

#define UC_FP_XSTATE         1u
#define UC_SIGCONTEXT_SS     2u
#define UC_STRICT_RESTORE_SS 4u

struct signal_frame {
	user_t restorer;
	struct signal_context context;
	struct signal_info info;
	u8 info_rest[SIGINFO_BYTES - sizeof(struct signal_info)];
};

/* In the bytes of the vector registers' area that XSAVE leaves to software. */
struct vectors_note {
	u32 magic, extended_size; /* with the second magic number */
	u64 features;             /* XCR0 */
	u32 size, gap[7];
};

#define FP_XSTATE_MAGIC1 0x46505853u
#define FP_XSTATE_MAGIC2 0x46505845u

/* The parts of the area that FXSAVE and XSAVE define (Intel SDM vol. 1, 10.5.1 and 13.4). */
enum { FXSAVE_FCW = 0, FXSAVE_FSW = 2, FXSAVE_MXCSR = 24, FXSAVE_NOTE = 464, FXSAVE_BYTES = 512 };

_Static_assert(offsetof(struct signal_frame, context) == 8, "ucontext_t");
_Static_assert(offsetof(struct signal_frame, info) == 312, "siginfo_t");
_Static_assert(sizeof(struct signal_frame) == 440, "frame");
_Static_assert(sizeof(struct signal_registers) == 256, "mcontext_t");
_Static_assert(sizeof(struct vectors_note) == FXSAVE_BYTES - FXSAVE_NOTE, "software's bytes");
