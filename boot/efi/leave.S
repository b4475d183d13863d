/*
 * From UEFI's 64-bit mode to the kernel's entry, and what BOOTX64.EFI holds beside its code.
 *
 * leave() runs from a page of its own below 4 GiB, which ends in its stack. With paging off nothing
 * depends on memory that firmware used, so the kernel may be copied over it.
 */
#include "boot/entry.h"

#define MULTIBOOT2_BOOT_MAGIC 0x36d76289
#define CR4_KEPT 0x1020 /* LA57 PAE: long mode cannot change them */

	.text
	.globl leave, leave_end
	.code64
leave: /* RDI to, RSI from, RDX bytes, RCX entry, R8 information block */
	cli
	cld
	lea leave+4096(%rip), %rsp
	mov %ecx, %ebp
	mov %r8d, %ebx
	mov %edx, %ecx
	lea gdt(%rip), %rax
	mov %rax, gdt_pointer+2(%rip)
	lgdt gdt_pointer(%rip)
	mov %cr4, %rax /* PCIDE would keep paging on */
	and $CR4_KEPT, %eax
	mov %rax, %cr4
	lea 1f(%rip), %rax
	pushq $BOOT_CODE32
	push %rax
	lretq
	.code32
1:	mov $BOOT_DATA, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %fs
	mov %eax, %gs
	mov %eax, %ss
	mov $CR0_PROTECTED, %eax
	mov %eax, %cr0
	rep movsb
	mov $MULTIBOOT2_BOOT_MAGIC, %eax
	jmp *%ebp

	.balign 8
gdt: /* selectors as in entry.h */
	.quad 0
	.quad 0
	.quad 0x00cf93000000ffff
	.quad 0x00cf9b000000ffff
gdt_pointer:
	.short BOOT_GDT_SIZE - 1
	.quad 0
leave_end:

	.section .rodata
	.balign 4096
	.globl kernel_elf, built_text, built_text_end
kernel_elf:
	.incbin "kernel.elf"
built_text:
	.incbin "ashlar.txt"
built_text_end:

	/* Firmware moves a program only if it has relocations. The code needs none. */
	.section .reloc, "a"
	.long 0, 12, 0

	/* For Secure Boot's revocations by generation (shim's SBAT.md) */
	.section .sbat, "a"
	.ascii "sbat,1,SBAT Version,sbat,1,https://github.com/rhboot/shim/blob/main/SBAT.md\n"
	.ascii "ashlar,1,Ashlar,ashlar,1,https://github.com/rhboot/shim/blob/main/SBAT.md\n"

	.section .note.GNU-stack, "", @progbits
