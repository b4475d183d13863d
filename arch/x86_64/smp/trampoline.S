/*
 * The first code of the other CPUs. They begin in real mode, at the start of a page below 1 MiB to
 * which smp_page.c has copied this code.
 *
 *	16-bit   in the page: the boot GDT, protected mode
 *	32-bit   in the image, and then boot/entry.S: CR4, CR3, EFER, CR0 are written whole;
 *	         nothing is inherited from firmware, and after INIT the caches are off (CR0.CD)
 *	64-bit   ap_entry64
 *
 * Several CPUs run ap_entry64 at once, and a CPU has no stack until it knows its index. It looks
 * for the ID of its own APIC in ap_ids[] and never relies on the order of arrival. It claims its
 * index by compare-and-swap. A second CPU with the same ID parks, and so does a CPU whose ID is not
 * in the list.
 *
 * Source: Intel SDM vol. 3A, 9.4 "Multiple-Processor (MP) Initialization", 10.8.5 "Initializing
 * IA-32e Mode".
 */
#include "boot/entry.h"

#define MSR_APIC_BASE    0x1b
#define MSR_X2APIC_ID    0x802
#define APIC_BASE_X2APIC 0xc00 /* EN EXTD */
#define APIC_ID_OFFSET   0x20
#define AP_CLAIMED       1 /* enum ap_stage */

	.section .rodata.trampoline, "a", @progbits
	.balign 16
	.globl trampoline_start, trampoline_end
	.code16
trampoline_start: /* segment = page / 16, offset 0 (Intel SDM vol. 3A, 9.4.3) */
	cli
	cld
	mov %cs, %ax
	mov %ax, %ds
	/* all 32 bits of the base: LGDT with a 16-bit operand loads only 24 */
	lgdtl gdt_pointer - trampoline_start
	mov $CR0_PROTECTED, %eax
	mov %eax, %cr0
	ljmpl $BOOT_CODE32, $ap_entry32
gdt_pointer:
	.short BOOT_GDT_SIZE - 1
	.long boot_gdt
trampoline_end:

	.section .boot.text, "ax", @progbits
	.code32
ap_entry32:
	mov $BOOT_DATA, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	cmpl $0, PHYS(boot_nx_was_off)
	je 1f
	mov $MSR_MISC_ENABLE, %ecx /* as the boot CPU did (boot/entry.S) */
	rdmsr
	and $~MISC_ENABLE_HIGH_NX_OFF, %edx
	wrmsr
1:	mov PHYS(ap_root), %ecx
	mov $PHYS(ap_entry64), %ebx
	jmp enter_long_mode

	.text
	.code64
ap_entry64:
	mov ap_apic(%rip), %rdx
	test %rdx, %rdx
	jnz 1f
	mov $MSR_APIC_BASE, %ecx
	rdmsr
	or $APIC_BASE_X2APIC, %eax
	wrmsr
	mov $MSR_X2APIC_ID, %ecx
	rdmsr
	jmp 2f
1:	mov APIC_ID_OFFSET(%rdx), %eax
	shr $24, %eax

2:	mov ap_ids(%rip), %rdi
	mov cpu_count(%rip), %edx
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
