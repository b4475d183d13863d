/*
 * Ways to clear memory. All take (RDI = address, RSI = bytes), both multiples of 64; clear.c says
 * when each is chosen.
 *
 * Instruction costs: Intel Optimization Reference Manual, 3.7.6 "REP prefix and data movement";
 * AMD, "Software Optimization Guide for AMD Family 19h", 2.13.
 */
	.section .text
	.globl clear_orig, clear_rep, clear_erms, clear_clzero, clear_nt

	/* Eight stores per iteration. */
	.macro store_lines store
	xor %eax, %eax
	shr $6, %rsi
	jz 2f
	.balign 16
1:
	.irp at, 0, 8, 16, 24, 32, 40, 48, 56
	\store %rax, \at(%rdi)
	.endr
	add $64, %rdi
	dec %rsi
	jnz 1b
2:
	.endm

	.balign 16
clear_orig:
	store_lines mov
	ret

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
	store_lines movnti
	sfence
	ret

	.section .note.GNU-stack, "", @progbits
