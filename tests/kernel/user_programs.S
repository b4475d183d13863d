/*
 * Programs for user_test.c, copied to a page of ring 3. They depend on no address of their own. A
 * program ends by call 0. Calls and addresses: user_test.h.
 */
#include "tests/kernel/user_test.h"

	.section .rodata.user_programs, "a", @progbits
	.balign 16
	.globl user_programs
user_programs:

	.macro program name
	.balign 16
	.globl user_program_\name
user_program_\name:
	.endm

	.macro call number
	mov $\number, %eax
	syscall
	.endm

	.macro leave_ring3
	call CALL_LEAVE
	ud2
	.endm

	program leave
	leave_ring3

	/* Each register has a value of its own at the call, and has it again at the next call. */
	program registers
	mov $0x0101010101010101, %rbx
	mov $0x0202020202020202, %rcx
	mov $0x0303030303030303, %rdx
	mov $0x0404040404040404, %rsi
	mov $0x0505050505050505, %rdi
	mov $0x0606060606060606, %rbp
	mov $0x0707070707070707, %r8
	mov $0x0808080808080808, %r9
	mov $0x0909090909090909, %r10
	mov $0x0a0a0a0a0a0a0a0a, %r11
	mov $0x0b0b0b0b0b0b0b0b, %r12
	mov $0x0c0c0c0c0c0c0c0c, %r13
	mov $0x0d0d0d0d0d0d0d0d, %r14
	mov $0x0e0e0e0e0e0e0e0e, %r15
	mov $CALL_ANSWER, %eax
	stc
	syscall
	mov %rax, USER_DATA_AT + DATA_RAX
	mov %rcx, USER_DATA_AT + DATA_RCX
	mov %r11, USER_DATA_AT + DATA_R11
	pushfq
	popq USER_DATA_AT + DATA_FLAGS
	mov $CALL_LEAVE, %eax
	syscall

	/* Touch a page that the handler brings, then two that it refuses and steps over by R15. */
	program faults
	mov $USER_FAR_AT + 8, %rbx
	mov $0x1122334455667788, %rax
	mov %rax, (%rbx)
	mov (%rbx), %r14
	lea 1f(%rip), %r15
	mov USER_NONE_AT, %rax
1:	lea 2f(%rip), %r15
	mov $USER_NONE_AT + 16, %eax
	jmp *%rax
2:	lea 3f(%rip), %r15
	movb $1, (%r13) /* an address of the kernel's */
3:	lea 4f(%rip), %r15
	mov (%r12), %al
4:	lea 5f(%rip), %r15
	jmp *%r12
5:	lea 6f(%rip), %r15
	movb $1, 5b(%rip) /* its own code */
6:	lea 7f(%rip), %r15
	mov $USER_DATA_AT, %eax
	jmp *%rax
7:	leave_ring3

	program bases
	mov %fs:8, %rax
	mov %rax, USER_DATA_AT + DATA_RAX
	mov %gs:16, %rax
	mov %rax, USER_DATA_AT + DATA_RCX
	mov %ds, %ebx
	mov %es, %ecx
	mov %fs, %edx
	mov %gs, %esi
	mov $0x2b, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %fs
	mov %eax, %gs
	leave_ring3

	/* Every flag that POPF of ring 3 sets, during a call and then while interrupts come. */
	program flags
	pushq $0x244ed7 /* AC, ID, NT, DF and the status flags */
	popfq
	call CALL_LOOK
	mov USER_FAR_AT, %rbx
	call CALL_LOOK
1:	incq USER_DATA_AT + DATA_COUNT
	jmp 1b

	program spin
1:	incq USER_DATA_AT + DATA_COUNT
	pause
	jmp 1b

	/* Enter the kernel as DATA_STOP says, each time that it is set. */
	program enters
	lea 1f(%rip), %r15
1:	incq USER_DATA_AT + DATA_COUNT
	xor %eax, %eax
	xchg %rax, USER_DATA_AT + DATA_STOP
	cmp $DATA_STOP_FAULT, %eax
	je 2f
	cmp $DATA_STOP_UD, %eax
	je 3f
	test %eax, %eax
	jz 1b
	call CALL_ANSWER
	jmp 1b
2:	mov USER_NONE_AT, %rax
3:	ud2

	/* Call, fault and raise exceptions for ever; the GS base and the registers must stay. */
	program hammer
	mov $0x5a5a5a5a5a5a5a5a, %rbp
	mov $0x4242424242424242, %r14
1:	call CALL_ANSWER
	cmp $ANSWER, %rax
	jne 2f
	call CALL_SLOW_ANSWER
	cmp $ANSWER, %rax
	jne 2f
	lea 3f(%rip), %r15
	ud2
3:	mov %gs:16, %rax
	cmp $GS_MAGIC, %rax
	jne 2f
	mov $0x5a5a5a5a5a5a5a5a, %rax
	cmp %rax, %rbp
	jne 2f
	mov $0x4242424242424242, %rax
	cmp %rax, %r14
	jne 2f
	incq USER_DATA_AT + DATA_COUNT
	jmp 1b
2:	leave_ring3

	/*
	 * Look at the clock for ever, and note the gaps. RDI: struct program of quiet_bench.c; R8
	 * to R11: ticks of the shortest gap of each class.
	 */
	program gaps
	movq $1, (%rdi)
	rdtsc
	shl $32, %rdx
	lea (%rax, %rdx), %rbx
1:	rdtsc
	shl $32, %rdx
	add %rdx, %rax
	mov %rax, %rcx
	sub %rbx, %rcx
	mov %rax, %rbx
	cmp %r8, %rcx
	jb 1b
	cmp 8(%rdi), %rcx
	jbe 2f
	mov %rcx, 8(%rdi)
2:	lea 16(%rdi), %rsi
	.irp least, r9, r10, r11
	cmp %\least, %rcx
	jb 3f
	add $8, %rsi
	.endr
3:	incq (%rsi)
	jmp 1b

	/* Two vector registers and the x87 stack, across a call, then while interrupts come. */
	program vectors
	movdqu USER_DATA_AT + DATA_VECTOR, %xmm0
	movdqu USER_DATA_AT + DATA_VECTOR + 16, %xmm15
	fldpi
	call CALL_ANSWER
1:	incq USER_DATA_AT + DATA_COUNT
	cmpq $0, USER_DATA_AT + DATA_STOP
	je 1b
	movdqu %xmm0, USER_DATA_AT + DATA_VECTOR + 32
	movdqu %xmm15, USER_DATA_AT + DATA_VECTOR + 48
	fstpl USER_DATA_AT + DATA_RAX
	leave_ring3

	program rounds_up
	ldmxcsr USER_DATA_AT + DATA_RAX
	leave_ring3

	program vectors_at_start
	movdqu %xmm0, USER_DATA_AT + DATA_VECTOR
	movdqu %xmm15, USER_DATA_AT + DATA_VECTOR + 16
	stmxcsr USER_DATA_AT + DATA_RAX
	fnstcw USER_DATA_AT + DATA_RCX
	leave_ring3

	program elsewhere
	call CALL_ODD_RIP
	leave_ring3

	program step /* TF: after one instruction more */
	pushfq
	orq $0x100, (%rsp)
	popfq
	nop
	nop
	leave_ring3

	program step_call /* SYSCALL with TF set traps in ring 3, behind it */
	mov $CALL_ANSWER, %eax
	pushfq
	orq $0x100, (%rsp)
	popfq
	syscall
	nop
	nop
	leave_ring3

	.pushsection .rodata.user_refusals, "a", @progbits
	.balign 8
	.globl user_refusals
user_refusals:
	.popsection

	/*
	 * ---- one instruction each, and the exception that it must cause ----
	 *
	 * ANY_VECTOR: AMD and Intel differ (SYSENTER), or QEMU 7.2 without KVM differs from both:
	 * INT1 is undefined, far returns of ring 3 read their stack as ring 0 does and meet SMAP,
	 * and a non-canonical stack is a general protection fault.
	 */

	.set refusal_count, 0
	.set data_at, USER_DATA_AT /* no macro is replaced between quotes */
	.macro refused name, vector, code
	.pushsection .rodata.user_refusals, "a", @progbits
	.quad 9f - user_programs, \vector, 8f
	.popsection
	.pushsection .rodata.user_names, "a", @progbits
8:	.asciz "\name"
	.popsection
9:	\code
	leave_ring3
	.set refusal_count, refusal_count + 1
	.endm

	/* WBINVD is not here: QEMU 10 lets it pass in ring 3. */
	refused "cli", 13, "cli"
	refused "sti", 13, "sti"
	refused "hlt", 13, "hlt"
	refused "in", 13, "in $0x80, %al"
	refused "out", 13, "out %al, $0x80"
	refused "rdmsr", 13, "mov $0xc0000102, %ecx; rdmsr"
	refused "wrmsr", 13, "mov $0xc0000102, %ecx; wrmsr"
	refused "mov from cr0", 13, "mov %cr0, %rax"
	refused "mov to cr3", 13, "mov %rax, %cr3"
	refused "mov to cr4", 13, "mov %rax, %cr4"
	refused "mov to dr7", 13, "mov %rax, %db7"
	refused "clts", 13, "clts"
	refused "lmsw", 13, "lmsw %ax"
	refused "invlpg", 13, "invlpg data_at"
	refused "lgdt", 13, "lgdt data_at"
	refused "lidt", 13, "lidt data_at"
	refused "lldt", 13, "mov $0, %eax; lldt %ax"
	refused "ltr", 13, "mov $0x18, %eax; ltr %ax"
	refused "swapgs", 13, "swapgs"
	refused "sysret", 13, "sysretq"
	refused "sysenter", ANY_VECTOR, "sysenter"
	refused "int 80", 13, "int $0x80"
	refused "int 2", 13, "int $2"
	refused "int 8", 13, "int $8"
	refused "int 14", 13, "int $14"
	refused "int f0", 13, "int $0xf0"
	refused "int3", 3, "int3"
	refused "int1", ANY_VECTOR, ".byte 0xf1"
	refused "ud2", 6, "ud2"
	refused "div by 0", 0, "xor %ecx, %ecx; div %ecx"
	refused "clac", 6, "clac"
	refused "wrgsbase", 6, "wrgsbase %rax"
	refused "wrfsbase", 6, "wrfsbase %rax"
	refused "the kernel's data segment", 13, "mov $0x10, %eax; mov %eax, %ds"
	refused "the kernel's data segment as stack", 13, "mov $0x10, %eax; mov %eax, %ss"
	refused "an LDT's segment", 13, "mov $0x7, %eax; mov %eax, %gs"
	refused "the TSS as a segment", 13, "mov $0x1b, %eax; mov %eax, %fs"
	refused "return to ring 0", ANY_VECTOR, "push $8; lea 9b(%rip), %rax; push %rax; lretq"
	refused "interrupt return to ring 0", ANY_VECTOR, \
		"push $0x10; push $0; pushfq; push $8; push $0; iretq"
	refused "32-bit code", ANY_VECTOR, "push $0x23; push $0; lretq"
	refused "a task gate", 13, "mov $0x1800000000, %rax; push %rax; ljmpl *(%rsp)"
	refused "non-canonical data", 13, "mov $0x800000000000, %rax; mov (%rax), %rax"
	refused "non-canonical stack", ANY_VECTOR, "mov $0x800000000100, %rsp; push %rax"
	refused "non-canonical code", 13, "mov $0x800000000000, %rax; jmp *%rax"
	.set refusals_before_umip, refusal_count
	refused "sgdt", 13, "sgdt data_at"
	refused "sidt", 13, "sidt data_at"
	refused "sldt", 13, "sldt %eax"
	refused "smsw", 13, "smsw %eax"
	refused "str", 13, "str %eax"

	.globl user_programs_end
user_programs_end:

	.section .rodata.user_counts, "a", @progbits
	.globl user_refusal_count, user_refusals_without_umip
	.balign 4
user_refusal_count:
	.long refusal_count
user_refusals_without_umip:
	.long refusals_before_umip

	.section .note.GNU-stack, "", @progbits
