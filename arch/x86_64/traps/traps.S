/*
 * Trap entry: one stub per vector, 16 bytes apart, then a common part that saves the registers as
 * struct trap_frame (arch/x86_64/cpu/trap_frame.h) and calls trap_dispatch(frame). SYSCALL has an
 * entry of its own, which builds the same frame and calls trap_call(frame).
 *
 * An IRETQ lets the next NMI in (SDM vol. 3A, 6.7.1), which would begin at the top of the stack
 * that the NMI being handled still uses. An exception inside an NMI therefore returns without
 * IRETQ. Privilege and segments are unchanged, so only RIP, RSP and RFLAGS have to be restored. RIP
 * and RFLAGS are written below the interrupted stack pointer, where the exception's own frame was.
 * One gap is left. A machine check that comes in the entry or exit code of an NMI, where the NMI is
 * not counted, and that lets the run go on, returns by IRETQ.
 *
 * Vectors that push an error code: Intel SDM vol. 3A, table 6-1.
 *
 * The GS base. In the kernel it points at struct percpu; in ring 3 it is the program's, and the
 * kernel's waits in another MSR. SWAPGS exchanges the two. The rules:
 *
 *  1. A program's GS base is below USER_END: user_set_gs_base() refuses others, WRGSBASE is
 *     switched off in CR4, descriptors of ring 3 have base 0 and there is no LDT. The kernel's base
 *     is in the upper half. The sign thus says whose base is in GS.
 *  2. Code of the kernel runs with the program's GS base at these places only, all with interrupts
 *     off: in a stub and in trap_common up to trap_ring3's SWAPGS; at trap_syscall, before its
 *     SWAPGS; behind the SWAPGS of either way out.
 *  3. None of the instructions there can fault. The pushes go to the kernel's stack, which is
 *     mapped. IRETQ and SYSRETQ load what user_regs_make_safe() has checked: selectors of ring 3,
 *     RFLAGS with neither VM nor IOPL, and a canonical RIP, which is at most USER_END. (SYSRETQ to
 *     another address would fault in ring 0 on the program's stack, hence USER_END leaves the last
 *     page of the lower half unused.) Breakpoints are disabled, so no #DB comes there either;
 *     SFMASK clears TF for SYSCALL, and gates clear it.
 *  4. An exception or interrupt that comes by a gate without IST therefore finds the kernel's base
 *     if its frame names ring 0, and the program's if it names ring 3. trap_common looks at the
 *     frame only.
 *  5. NMIs and machine checks come anywhere, and a double fault may follow a mistake anywhere, so
 *     they look at the sign of the base (rule 1). They exchange it if it is the program's, and
 *     exchange it back before they return to the same place. They use stacks of their own (IST), so
 *     it does no harm that RSP is still, or again, the program's.
 *  6. They may nest. A machine check in an NMI before the NMI's SWAPGS makes its own and takes it
 *     back; one after it finds the kernel's base and does nothing. A fault inside of either names
 *     ring 0 and finds the kernel's base, because handlers run behind the SWAPGS only.
 *
 * The stack. From ring 3, traps begin at RSP0, and trap_syscall loads the same address from struct
 * percpu. SYSCALL leaves RSP as the program's for three instructions. Nothing is pushed there: no
 * interrupt comes, and NMIs and machine checks bring their stacks. The same holds between the load
 * of the program's RSP and SYSRETQ.
 *
 * The flags. A program may set AC, which would switch SMAP off, and gates do not clear it. The
 * paths from ring 3, and those that come anywhere, therefore load RFLAGS as a whole.
 *
 * Backtraces. RBP is the program's until it is cleared; backtraces that begin in the code up to
 * trap_entry_end do not follow it (trap_is_entry()).
 *
 * The way out. trap_dispatch() and trap_call() return to ring 3 with interrupts off, after their
 * last look at the requests for user_ops.attend(). An IPI that comes later stays pending until ring
 * 3 runs, and then causes another look.
 *
 *  7. An NMI from ring 3 returns by IRETQ as well, which is its own end, and does not look at the
 *     requests.
 *  8. SYSRETQ cannot restore RCX, R11, RF and (before the next instruction) TF. It is used only if
 *     RCX and R11 are to become RIP and RFLAGS, with RF and TF clear.
 *
 * Sources: Intel SDM vol. 2B, "SWAPGS", "SYSCALL", "SYSRET"; vol. 3A, 5.8.8 and 6.14; AMD APM vol.
 * 2, 8.9 "Long-Mode Interrupt Control Transfers".
 */
#include "arch/x86_64/traps/selectors.h"

	.set CALL_VECTOR, 256 /* USER_VECTOR_CALL */
	.set MSR_GS_BASE, 0xc0000101
	/* offsets in struct trap_frame */
	.set FRAME_ERROR, 128
	.set FRAME_RIP, 136
	.set FRAME_CS, 144
	.set FRAME_RFLAGS, 152
	.set FRAME_RSP, 160

	.section .text
	.balign 16
	.globl trap_stubs
trap_stubs:
	.set vector, 0
	.rept 256
	.balign 16
	.set has_error, vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21
	.if !has_error && vector != 29 && vector != 30
	push $0
	.endif
	push $vector
	.if vector == 2 || vector == 8 || vector == 18 /* those with IST: traps.c */
	jmp trap_anywhere
	.else
	jmp trap_common
	.endif
	.set vector, vector + 1
	.endr

	.macro push_registers
	.irp register, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	push %\register
	.endr
	.endm

	.macro pop_registers
	.irp register, r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax
	pop %\register
	.endr
	.endm

	/* AC, DF, NT and TF off; interrupts are off already. */
	.macro clear_flags
	push $2
	popfq
	.endm

	/* RSP is 16-aligned at each call below: 22 words below the CPU's own alignment. */
	.balign 16
trap_common:
	push_registers
	testb $3, FRAME_CS(%rsp)
	jnz trap_ring3
	cld
	mov %rsp, %rdi
	call trap_dispatch
trap_return: /* AL: trap_dispatch()'s answer */
	test %al, %al
	jnz return_into_nmi
	pop_registers
	add $16, %rsp
	iretq

trap_ring3:
	swapgs
	clear_flags
	xor %ebp, %ebp
	mov %rsp, %rdi
	call trap_dispatch
	/* fall through */

/* The way to ring 3. RSP points at the frame, and interrupts are off. */
	.globl trap_return_to_ring3
trap_return_to_ring3:
	pop_registers
	add $16, %rsp
	swapgs
	iretq

/* SYSCALL: RCX and R11 are RIP and RFLAGS, CS and SS are the kernel's, SFMASK has cleared flags. */
	.balign 16
	.globl trap_syscall
trap_syscall:
	swapgs
	mov %rsp, %gs:percpu_user_rsp
	mov %gs:percpu_user_stack, %rsp
	push $SELECTOR_USER_DATA
	push %gs:percpu_user_rsp
	push %r11
	push $SELECTOR_USER_CODE
	push %rcx
	push %rax
	push $CALL_VECTOR
	push_registers
	xor %ebp, %ebp
	mov %rsp, %rdi
	call trap_call
	test %al, %al
	jz trap_return_to_ring3
	pop_registers
	mov FRAME_RSP - 120(%rsp), %rsp /* 15 registers are popped */
	swapgs
	sysretq

/* NMI, double fault and machine check. RBX is kept by C code: 1 if SWAPGS was executed. */
	.balign 16
trap_anywhere:
	push_registers
	clear_flags
	xor %ebp, %ebp
	xor %ebx, %ebx
	mov $MSR_GS_BASE, %ecx
	rdmsr
	test %edx, %edx
	js 1f
	swapgs
	inc %ebx
1:
	mov %rsp, %rdi
	call trap_dispatch
	test %ebx, %ebx
	jz trap_return
	swapgs
	jmp trap_return

return_into_nmi:
	mov FRAME_RIP(%rsp), %rbx
	mov FRAME_RFLAGS(%rsp), %rcx
	mov FRAME_RSP(%rsp), %rax
	sub $16, %rax
	mov %rbx, 8(%rax)
	mov %rcx, (%rax)
	mov %rax, FRAME_ERROR(%rsp) /* in place of the error code */
	pop_registers
	add $8, %rsp
	pop %rsp
	popfq
	ret

	.globl trap_entry_end
trap_entry_end:

/*
 * Enable interrupts and halt, with nothing in between. STI holds interrupts back for one
 * instruction, but not NMIs or machine checks. An NMI or machine check that finds this CPU at
 * halt_insn returns behind it (traps.c), because an interrupt that it let in may have been the
 * event that the CPU waits for.
 */
	.balign 16
	.globl cpu_halt_until_interrupt, halt_insn
	.type cpu_halt_until_interrupt, @function
cpu_halt_until_interrupt:
	push %rbp
	mov %rsp, %rbp
	sti
halt_insn:
	hlt
	cli
	pop %rbp
	ret
	.size cpu_halt_until_interrupt, . - cpu_halt_until_interrupt

	.section .note.GNU-stack, "", @progbits
