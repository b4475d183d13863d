/*
 * Ways to clear memory. All take (RDI = address, RSI = bytes), both multiples of 64; clear.c says
 * when each is chosen.
 *
 * Instruction costs: Intel Optimization Reference Manual, 3.7.6 "REP prefix and data movement";
 * AMD, "Software Optimization Guide for AMD Family 19h", 2.13.
 */
	.section .text
	.globl clear_orig, clear_rep, clear_erms, clear_clzero, clear_nt

	.balign 16
clear_orig: /* eight stores per iteration */
	xor %eax, %eax
	shr $6, %rsi
	jz 2f
	.balign 16
1:	mov %rax, (%rdi)
	mov %rax, 8(%rdi)
	mov %rax, 16(%rdi)
	mov %rax, 24(%rdi)
	mov %rax, 32(%rdi)
	mov %rax, 40(%rdi)
	mov %rax, 48(%rdi)
	mov %rax, 56(%rdi)
	add $64, %rdi
	dec %rsi
	jnz 1b
2:	ret

	.balign 16
clear_rep:
	xor %eax, %eax
	mov %rsi, %rcx
	shr $3, %rcx
	rep stosq
	ret

	.balign 16
clear_erms:
	xor %eax, %eax
	mov %rsi, %rcx
	rep stosb
	ret

	.balign 16
clear_clzero: /* clears the 64-byte line at RAX; ordered like a non-temporal store */
	mov %rdi, %rax
	shr $6, %rsi
	jz 2f
	.balign 16
1:	.byte 0x0f, 0x01, 0xfc /* clzero */
	add $64, %rax
	dec %rsi
	jnz 1b
2:	sfence
	ret

	.balign 16
clear_nt:
	xor %eax, %eax
	shr $6, %rsi
	jz 2f
	.balign 16
1:	movnti %rax, (%rdi)
	movnti %rax, 8(%rdi)
	movnti %rax, 16(%rdi)
	movnti %rax, 24(%rdi)
	movnti %rax, 32(%rdi)
	movnti %rax, 40(%rdi)
	movnti %rax, 48(%rdi)
	movnti %rax, 56(%rdi)
	add $64, %rdi
	dec %rsi
	jnz 1b
2:	sfence
	ret

	.section .note.GNU-stack, "", @progbits
