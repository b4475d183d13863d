/*
 * Ring 3: programs in the lower half of the address space.
 *
 * A CPU enters ring 3 with user_enter() and stays there until the program ends on that CPU. Calls
 * and faults of the program, and interrupts that come meanwhile, run on the CPU's normal stack,
 * below the frame of user_enter():
 *
 *	user_enter()                                     returns when user_leave() is called
 *	  | ring 3 ...  SYSCALL -> user_ops.call(regs)     -> ring 3
 *	  | ring 3 ...  #PF     -> user_ops.fault(regs)    -> ring 3
 *	  | ring 3 ...  others  -> user_ops.exception(regs)-> ring 3
 *	  | ring 3 ...  IPI     -> its handler             -> ring 3
 *
 * Before each return to ring 3, user_ops.attend() runs if user_attend() was called for the CPU.
 * The four functions run in the ordinary context, with interrupts on, and may change `regs`. What
 * returns to ring 3 is made safe first (user_regs_make_safe()), so they need not check it.
 *
 * The kernel has no vector or x87 instructions, so these registers stay the program's. Nothing
 * saves them: a thread of a program never leaves its CPU.
 *
 * Sources: Intel SDM vol. 3A, 5.8.8 "Fast System Calls in 64-Bit Mode", 6.14; System V ABI, AMD64
 * supplement, A.2.1.
 */
#pragma once

#include <arch/memory.h>

#include "kernel/lib/types.h"

/*
 * Addresses of programs: [USER_START, USER_END), all of the lower half but its first pages and its
 * last, which stays empty because of SYSRET.
 */
#define USER_START 0x10000ULL
#define USER_END   0x7ffffffff000ULL

/*
 * The registers of the code that a trap or a program's call interrupted, in the order of their
 * addresses. The CPU pushes the last five; for a call traps.S does.
 */
struct trap_frame {
	u64 r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
	u64 vector, error; /* of a call: USER_VECTOR_CALL, and its number as rax had it */
	u64 rip, cs, rflags, rsp, ss;
};

enum { USER_VECTOR_CALL = 256 };

enum user_access { USER_READ, USER_WRITE, USER_EXEC };

struct user_ops {
	/* SYSCALL. The number of the call is in rax, which receives the result. */
	void (*call)(struct trap_frame *regs);
	/* A page fault. The instruction runs again on return, with `regs` as they are then. */
	void (*fault)(struct trap_frame *regs, virt_t addr, enum user_access access);
	/* Any other exception: regs->vector and regs->error say which. */
	void (*exception)(struct trap_frame *regs);
	/* The CPU is about to return to ring 3, and user_attend() was called for it. */
	void (*attend)(struct trap_frame *regs);
};

/* Set the four functions, while no CPU is in ring 3. */
void user_set_ops(const struct user_ops *ops);

/*
 * Run the program on this CPU from `regs` on (general registers, rip, rsp, rflags), until
 * user_leave() is called on this CPU. `fs_base` is its TLS. `vectors` is what
 * user_vectors_save() stored, or NULL for registers as they are after a reset. Context: ordinary,
 * interrupts on.
 */
void user_enter(const struct trap_frame *regs, u64 fs_base, const void *vectors);

/* Return from user_enter(). Called in one of the four functions, on the same CPU, no lock held. */
__noreturn void user_leave(void);

/* Have attend() called on a CPU soon: it is interrupted if it runs in ring 3. Context: handler. */
void user_attend(cpu_t cpu);

/* FS and GS base of the program on this CPU. An address that is not below USER_END is refused. */
bool user_set_fs_base(u64 base);
bool user_set_gs_base(u64 base);
u64 user_fs_base(void);
u64 user_gs_base(void);

/*
 * The vector and x87 registers of this CPU, in the format of XSAVE (FXSAVE without it). The area is
 * aligned to 64 bytes. user_vectors_load() returns false and changes nothing if the contents are
 * impossible.
 */
size_t user_vectors_size(void);
void user_vectors_save(void *area);
bool user_vectors_load(const void *area);
u64 user_vectors_features(void); /* XCR0: the registers that are in the area; 0 without XSAVE */

/* Make registers that a program supplied harmless: selectors, flags, an address beyond USER_END. */
void user_regs_make_safe(struct trap_frame *regs);

/* Print the general registers, of a program or of the kernel, four to a line. Any context. */
void user_regs_print(const struct trap_frame *regs);

/* CPUID's features as Linux passes them to programs (AT_HWCAP). */
u64 user_hwcap(void);
