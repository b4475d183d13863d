/*
 * The first code of the other CPUs. They begin in real mode, at the start of a page below 1 MiB to
 * which smp_page.c has copied this code.
 *
 *	16-bit   own data segment, GDT, protected mode
 *	32-bit   CR4, CR3, EFER, CR0 written whole, as boot/entry.S does: nothing is inherited
 *	         from firmware, and after INIT the caches are off (CR0.CD)
 *	64-bit   still in the page (identity-mapped by the start-up tables), then ap_entry64
 *	         in the kernel
 *
 * Several CPUs run ap_entry64 at once, and a CPU has no stack until it knows its index. It looks
 * for the ID of its own APIC in ap_ids[] and never relies on the order of arrival. It claims its
 * index by compare-and-swap. A second CPU with the same ID parks, and so does a CPU whose ID is not
 * in the list.
 *
 * Source: Intel SDM vol. 3A, 9.4 "Multiple-Processor (MP) Initialization", 10.8.5 "Initializing
 * IA-32e Mode".
 */
#include "arch/x86_64/smp/trampoline.h"
#include "boot/entry.h"

#define CR0_PROTECTED 0x00000011
#define MSR_APIC_BASE 0x1b
#define MSR_X2APIC_ID 0x802
#define APIC_BASE_X2APIC 0xc00 /* EN EXTD */
#define APIC_ID_OFFSET 0x20
#define AP_CLAIMED 1 /* enum ap_stage */

/* Offset of a field of struct trampoline_data from the page. */
#define AT(field) (TRAMPOLINE_DATA_AT + TRAMPOLINE_##field)

	.section .rodata.trampoline, "a", @progbits
	.balign 16
	.globl trampoline_start, trampoline_end, trampoline_code32, trampoline_code64
	.code16
trampoline_start:
	cli
	cld
	mov %cs, %ax
	mov %ax, %ds
	xor %ebx, %ebx
	mov %ax, %bx
	shl $4, %ebx /* EBX: linear address of the page */
	/* all 32 bits of the base: LGDT with a 16-bit operand loads only 24 */
	lgdtl AT(GDT_POINTER)
	mov $CR0_PROTECTED, %eax
	mov %eax, %cr0
	ljmpl *AT(JUMP32)

	.code32
trampoline_code32:
	mov $TRAMPOLINE_DATA, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	cmpl $0, boot_nx_was_off - IMAGE_BASE
	je 1f
	mov $MSR_MISC_ENABLE, %ecx /* as the boot CPU did (boot/entry.S) */
	rdmsr
	and $~MISC_ENABLE_HIGH_NX_OFF, %edx
	wrmsr
1:	mov $CR4_VALUE, %eax
	mov %eax, %cr4
	mov AT(ROOT)(%ebx), %eax
	mov %eax, %cr3
	mov $MSR_EFER, %ecx
	mov $EFER_VALUE, %eax
	xor %edx, %edx
	wrmsr
	mov $CR0_VALUE, %eax
	mov %eax, %cr0
	ljmp *AT(JUMP64)(%ebx)

	.code64
trampoline_code64:
	mov %ebx, %ebx /* the upper half is undefined after the mode switch */
	mov AT(ENTRY)(%rbx), %rax
	jmp *%rax
trampoline_end:

	.text
	.globl ap_entry64
ap_entry64:
	mov $TRAMPOLINE_DATA, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	xor %eax, %eax
	mov %eax, %fs
	mov %eax, %gs

	cmpl $0, ap_x2apic(%rip)
	je 1f
	mov $MSR_APIC_BASE, %ecx
	rdmsr
	or $APIC_BASE_X2APIC, %eax
	wrmsr
	mov $MSR_X2APIC_ID, %ecx
	rdmsr
	jmp 2f
1:	mov ap_apic(%rip), %rdx
	mov APIC_ID_OFFSET(%rdx), %eax
	shr $24, %eax

2:	mov ap_ids(%rip), %rdi
	mov ap_count(%rip), %edx
	mov %edx, %ecx
	repne scasl
	jne 3f
	sub %ecx, %edx
	dec %edx /* index */
	mov ap_stages(%rip), %r8
	xor %eax, %eax
	mov $AP_CLAIMED, %ecx
	lock cmpxchg %cl, (%r8, %rdx)
	jne 3f

	mov ap_stacks(%rip), %r9
	mov (%r9, %rdx, 8), %rsp
	mov %edx, %edi
	xor %ebp, %ebp /* end of the frame chain */
	push %rbp      /* and zero return addresses */
	push %rbp
	call ap_start
	ud2

3:	cli
	hlt
	jmp 3b

	.section .note.GNU-stack, "", @progbits
