/*
 * Entry from the loader: 32-bit protected mode, paging off, flat segments, interrupts off
 * ("Multiboot2 Specification version 2.0", 3.3 "I386 machine state"; Xen, "x86/HVM direct boot ABI"
 * for PVH). From here to 64-bit C code.
 *
 *	multiboot2_entry  EAX = magic, EBX = physical address of the information block
 *	pvh_entry         EBX = physical address of the start info block
 *	   -> entry32     checks the CPU, loads our page tables, writes CR4, EFER and CR0 whole
 *	   -> entry64     high half: GS base, stack, boot_start(protocol, magic, block)
 *
 * Nothing is inherited. A loader may leave LA57, PCIDE, SMEP or a paging mode of its own behind, so
 * CR4 is written whole while paging is off, the only time LA57 may change (Intel SDM vol. 3A,
 * 4.1.1). On a CPU without CPUID, long mode or NX, refuse.S says so and halts.
 *
 * The boot page tables are never freed or changed, because CPUs that start later, or too late, run
 * on them (kernel/core/shootdown.h, "joins"). They map 0-4 GiB twice and its first GiB a third
 * time, with 2 MiB pages:
 *
 *	0                    identity, executable: entry code and AP trampoline run here
 *	DIRECT_MAP_BASE      the same memory, not executable
 *	IMAGE_BASE           physical 0-1 GiB
 */
#include "boot/entry.h"

#define MB2_HEADER_MAGIC 0xe85250d6
#define PROTOCOL_PVH 1

#define CPUID_NX 0x00100000       /* 80000001h, EDX */
#define MSR_GS_BASE 0xc0000101

#define PTE_TABLE 0x63 /* dirty accessed write present */
#define PTE_2M 0xe3    /* large dirty accessed write present */
#define PTE_NX 0x8000000000000000

	.section .boot.header, "a", @progbits
	.balign 8
header:
	.long MB2_HEADER_MAGIC
	.long 0 /* i386, protected mode */
	.long header_end - header
	.long 0x100000000 - (MB2_HEADER_MAGIC + (header_end - header))

	.balign 8 /* entry address: that of the ELF, repeated for loaders that look only here */
	.short 3, 0
	.long 12
	.long multiboot2_entry

	.balign 8 /* framebuffer, optional: any size, 32 bits per pixel */
	.short 5, 1
	.long 20
	.long 0, 0, 32

	.balign 8 /* modules on page borders */
	.short 6, 0
	.long 8

	.balign 8
	.short 0, 0
	.long 8
header_end:

	.section .note.pvh, "a", @note
	.balign 4
	.long 4, 8, 18 /* name size, value size, XEN_ELFNOTE_PHYS32_ENTRY */
	.asciz "Xen"
	.quad pvh_entry

	.section .boot.text, "ax", @progbits
	.code32
	.globl multiboot2_entry, pvh_entry, enter_long_mode, boot_gdt
multiboot2_entry:
	mov $PROTOCOL_MULTIBOOT2, %edi
	mov %eax, %esi
	jmp entry32

pvh_entry:
	mov $PROTOCOL_PVH, %edi
	xor %esi, %esi

/* EDI protocol, ESI magic, EBX information block (EBP from here on): kept until entry64. */
entry32:
	cli
	cld
	mov $PHYS(boot_stack_top), %esp
	mov %ebx, %ebp

	pushfl /* CPUID exists if EFLAGS.ID can be changed */
	pop %eax
	mov %eax, %ecx
	xor $0x200000, %eax
	push %eax
	popfl
	pushfl
	pop %eax
	xor %ecx, %eax
	test $0x200000, %eax
	mov $message_no_cpuid, %edx
	jz refuse

	mov $0x80000000, %eax
	cpuid
	cmp $0x80000001, %eax
	mov $message_no_long_mode, %edx
	jb refuse
	mov $0x80000001, %eax
	cpuid
	mov %edx, %eax
	mov $message_no_long_mode, %edx
	test $0x20000000, %eax
	jz refuse
	test $CPUID_NX, %eax
	jnz 1f
	call show_nx
	mov $message_no_nx, %edx
	test $CPUID_NX, %eax
	jz refuse
1:
	mov $PHYS(boot_pgd), %ecx
	mov $PHYS(entry64), %ebx

/*
 * The way of every CPU (trampoline.S) to the kernel. ECX: page tables; EBX: physical address of the
 * 64-bit code. Keeps EDI, ESI and EBP.
 */
enter_long_mode:
	mov $CR0_PROTECTED, %eax /* so that CR4 may be written */
	mov %eax, %cr0
	mov $CR4_VALUE, %eax
	mov %eax, %cr4
	mov %ecx, %cr3
	mov $MSR_EFER, %ecx
	mov $EFER_VALUE, %eax
	xor %edx, %edx
	wrmsr
	mov $CR0_VALUE, %eax
	mov %eax, %cr0

	lgdt boot_gdt_pointer
	ljmp $BOOT_CODE64, $long_mode

/*
 * The set-up of firmware can hide NX on Intel's CPUs ("Execute Disable Bit": Intel SDM vol. 4,
 * IA32_MISC_ENABLE[34]). Show it again. Returns EDX of CPUID 80000001h in EAX.
 */
show_nx:
	xor %eax, %eax
	cpuid
	cmp $0x756e6547, %ebx /* "Genu" */
	jne 1f
	mov $MSR_MISC_ENABLE, %ecx
	rdmsr
	test $MISC_ENABLE_HIGH_NX_OFF, %edx
	jz 1f
	and $~MISC_ENABLE_HIGH_NX_OFF, %edx
	wrmsr
	movl $1, PHYS(boot_nx_was_off)
1:	mov $0x80000001, %eax
	cpuid
	mov %edx, %eax
	ret

	.balign 8
boot_gdt: /* accessed bits preset, because the table is read-only later */
	.quad 0
	.quad 0x00af9b000000ffff /* code, 64-bit */
	.quad 0x00cf93000000ffff /* data */
	.quad 0x00cf9b000000ffff /* code, 32-bit */
boot_gdt_pointer:
	.short BOOT_GDT_SIZE - 1
	.quad boot_gdt

	.code64
long_mode:
	mov %ebx, %ebx /* upper halves are undefined after the mode switch */
	lea IMAGE_BASE(%rbx), %rax
	jmp *%rax

	.text
	.code64
entry64:
	mov $BOOT_DATA, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	mov %eax, %fs
	mov %eax, %gs
	mov $boot_stack_top, %rsp
	push $2 /* flags are not inherited either */
	popfq

	rdtsc
	shl $32, %rdx
	or %rdx, %rax
	mov %rax, boot_entry_tsc(%rip)

	mov $boot_percpu, %rax
	mov %rax, %rdx
	shr $32, %rdx
	mov $MSR_GS_BASE, %ecx
	wrmsr

	mov %edi, %edi
	mov %esi, %esi
	mov %ebp, %edx
	xor %ebp, %ebp /* end of the frame chain */
	push %rbp      /* and of the return addresses */
	push %rbp
	call boot_start
	ud2

	.data
	.balign 8
	.globl boot_entry_tsc, boot_nx_was_off
boot_entry_tsc:
	.quad 0
boot_nx_was_off: /* each CPU that starts has the same to mend (trampoline.S) */
	.long 0

	.balign 4096
	.globl boot_pgd
boot_pgd:
	.quad PHYS(boot_pud_low) + PTE_TABLE
	.fill 272, 8, 0
	.quad PHYS(boot_pud_low) + PTE_TABLE + PTE_NX /* 273: DIRECT_MAP_BASE */
	.fill 237, 8, 0
	.quad PHYS(boot_pud_image) + PTE_TABLE /* 511: IMAGE_BASE */
boot_pud_low:
	.quad PHYS(boot_pmd) + PTE_TABLE
	.quad PHYS(boot_pmd) + 0x1000 + PTE_TABLE
	.quad PHYS(boot_pmd) + 0x2000 + PTE_TABLE
	.quad PHYS(boot_pmd) + 0x3000 + PTE_TABLE
	.fill 508, 8, 0
boot_pud_image:
	.fill 510, 8, 0
	.quad PHYS(boot_pmd) + PTE_TABLE /* 510: the last 2 GiB begin here */
	.quad 0
boot_pmd: /* 0-4 GiB */
	.set page, 0
	.rept 2048
	.quad (page << 21) + PTE_2M
	.set page, page + 1
	.endr

/*
 * The boot CPU's stacks, each above a guard page that arch_page_tables_init() leaves unmapped:
 *
 *	guard | normal 16K | guard | double fault 8K | guard | NMI 8K | guard | machine check 8K
 */
	.section .stacks, "aw", @nobits
	.balign 4096
	.globl boot_stacks, boot_stack_top
boot_stacks:
	.skip 4096
	.skip 16384
boot_stack_top:
	.skip 3 * (4096 + 8192)

	.section .note.GNU-stack, "", @progbits
