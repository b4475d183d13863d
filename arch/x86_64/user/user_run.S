/*
 * Entering ring 3 and coming back; see user_run.h.
 *
 *	user_enter()    struct trap_frame first      in its frame
 *	user_run()      RBP RBX R12 ... R15, pad
 *	*stack ->       ------------------------    16-aligned; traps and calls begin here
 *	                frames of traps, calls, interrupts
 *
 * Interrupts are off throughout, and NMIs and machine checks have stacks of their own, so nothing
 * is written below RSP while RSP points at the registers above.
 */
#include "arch/x86_64/traps/selectors.h"

	.section .text
	.balign 16
	.globl user_run
	.type user_run, @function
user_run:
	push %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	sub $8, %rsp
	mov %rsp, (%rsi)
	mov %rsp, (%rdx)
	mov %rdi, %rbx
	call *%rcx
	mov %rbx, %rsp
	jmp trap_return_to_ring3
	.size user_run, . - user_run

	/* A trap from ring 3 has loaded SS with a null selector. */
	.balign 16
	.globl user_unwind
	.type user_unwind, @function
user_unwind:
	mov %rdi, %rsp
	mov $SELECTOR_DATA, %eax
	mov %eax, %ss
	add $8, %rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	ret
	.size user_unwind, . - user_unwind

	.section .note.GNU-stack, "", @progbits
