/*
 * Trap entry: one stub per vector, 16 bytes apart, then a common part that saves the registers as
 * struct trap_frame (arch/x86_64/cpu/trap_frame.h) and calls trap_dispatch(frame).
 *
 * An IRETQ lets the next NMI in (SDM vol. 3A, 6.7.1), which would begin at the top of the stack
 * that the NMI being handled still uses. An exception inside an NMI therefore returns without
 * IRETQ. Privilege and segments are unchanged, so only RIP, RSP and RFLAGS have to be restored. RIP
 * and RFLAGS are written below the interrupted stack pointer, where the exception's own frame was.
 *
 * Vectors that push an error code: Intel SDM vol. 3A, table 6-1. There is no user mode, so there is
 * no SWAPGS; GS always holds the per-CPU base.
 */
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
	jmp trap_common
	.set vector, vector + 1
	.endr

	.macro pop_registers
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %r11
	pop %r10
	pop %r9
	pop %r8
	pop %rbp
	pop %rdi
	pop %rsi
	pop %rdx
	pop %rcx
	pop %rbx
	pop %rax
	.endm

	.balign 16
trap_common:
	push %rax
	push %rbx
	push %rcx
	push %rdx
	push %rsi
	push %rdi
	push %rbp
	push %r8
	push %r9
	push %r10
	push %r11
	push %r12
	push %r13
	push %r14
	push %r15
	cld
	mov %rsp, %rdi
	call trap_dispatch /* RSP is 16-aligned here: 22 words below the CPU's own alignment */
	test %al, %al
	jnz return_into_nmi
	pop_registers
	add $16, %rsp
	iretq

return_into_nmi:
	mov 136(%rsp), %rbx /* rip */
	mov 152(%rsp), %rcx /* rflags */
	mov 160(%rsp), %rax /* rsp */
	sub $16, %rax
	mov %rbx, 8(%rax)
	mov %rcx, (%rax)
	mov %rax, 128(%rsp) /* in place of the error code */
	pop_registers
	add $8, %rsp
	pop %rsp
	popfq
	ret

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
