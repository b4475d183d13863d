/*
 * Trap entry: one stub per vector, 16 bytes apart, then a common part that saves the registers as struct trap_frame
 * (arch/x86_64/traps.h) and calls trap_dispatch(frame).
 *
 * Which vectors push an error code: Intel SDM vol. 3A, table 6-1. There is no user mode, so no SWAPGS: GS always holds
 * the per-CPU base.
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
	add $16, %rsp
	iretq

	.section .note.GNU-stack, "", @progbits
