/*
 * The end on a CPU that cannot run the kernel: a line on COM1 and on the screen, the verdict, a
 * halt. 32-bit code without paging, because nothing else is sure to work.
 *
 * The screen is the framebuffer that the loader set up (multiboot2, tag 8), or the VGA's text
 * memory. The line is drawn from its upper left corner and fits 80 columns.
 */
#include "boot/entry.h"

#define COM1 0x3f8
#define DEBUG_EXIT_PORT 0xf4 /* QEMU isa-debug-exit */
#define VERDICT_FAIL 0x11

/* Information block: total size, then tags of type, size, ... at multiples of 8. */
#define BLOCK_TAGS 8
#define TAG_SIZE 4
#define TAG_END 0
#define TAG_FRAMEBUFFER 8
#define FB_ADDRESS 8
#define FB_ADDRESS_HIGH 12
#define FB_PITCH 16
#define FB_BITS 28
#define FB_TYPE 29
#define FB_TYPE_RGB 1

#define VGA_TEXT 0xb8000
#define VGA_CELLS (80 * 25)
#define VGA_WHITE 0x0f
#define GLYPHS (PHYS(font_small_start) + 4) /* of 16 rows, in the order of ASCII */

	.section .boot.text, "ax", @progbits
	.code32
	.globl refuse, message_no_cpuid, message_no_long_mode, message_no_nx

/* EDX message, EDI protocol, EBP information block. */
refuse:
	push %edx
	call serial_init
	mov $message_begin, %esi
	call serial_puts
	mov (%esp), %esi
	call serial_puts
	mov $message_verdict, %esi
	call serial_puts
	pop %esi
	call screen_puts
	mov $DEBUG_EXIT_PORT, %dx
	mov $VERDICT_FAIL, %al
	out %al, %dx
1:	cli
	hlt
	jmp 1b

/* 115200 8N1, no interrupts. */
serial_init:
	mov $serial_setup, %ebx
	mov $(serial_setup_end - serial_setup) / 2, %ecx
1:	movzbl (%ebx), %edx
	add $COM1, %edx
	mov 1(%ebx), %al
	out %al, %dx
	add $2, %ebx
	loop 1b
	ret

serial_puts: /* waits a bounded time for each byte */
1:	lodsb
	test %al, %al
	jz 4f
	mov %al, %ah
	mov $100000, %ecx /* polls: about 0.1 s on hardware, where a byte takes 87 us */
	mov $(COM1 + 5), %dx
2:	in %dx, %al
	test $0x20, %al
	jnz 3f
	loop 2b
3:	mov $COM1, %dx
	mov %ah, %al
	out %al, %dx
	jmp 1b
4:	ret

/* ESI message, EDI protocol, EBP information block. */
screen_puts:
	cmp $PROTOCOL_MULTIBOOT2, %edi
	jne vga_puts
	mov (%ebp), %ecx
	add %ebp, %ecx /* the end */
	lea BLOCK_TAGS(%ebp), %ebx
1:	cmp %ecx, %ebx
	jae vga_puts
	cmpl $TAG_END, (%ebx)
	je vga_puts
	cmpl $TAG_FRAMEBUFFER, (%ebx)
	je 2f
	mov TAG_SIZE(%ebx), %eax
	cmp $8, %eax
	jb vga_puts
	add $7, %eax
	and $~7, %eax
	add %eax, %ebx
	jmp 1b
2:	cmpb $FB_TYPE_RGB, FB_TYPE(%ebx)
	jne vga_puts
	cmpl $0, FB_ADDRESS_HIGH(%ebx)
	je framebuffer_puts
	ret

vga_puts:
	mov $VGA_TEXT, %edi
	mov $(VGA_WHITE << 8 | ' '), %eax
	mov $VGA_CELLS, %ecx
	rep stosw
	mov $VGA_TEXT, %edi
1:	lodsb
	test %al, %al
	jz 2f
	cmp $' ', %al
	jb 1b
	mov $VGA_WHITE, %ah
	stosw
	jmp 1b
2:	ret

/* ESI message, EBX tag. EDX: where the next glyph begins; EBP: its row; EDI: the pixel. */
framebuffer_puts:
	mov FB_ADDRESS(%ebx), %edx
1:	xor %eax, %eax
	lodsb
	test %al, %al
	jz 5f
	cmp $' ', %al
	jb 1b
	shl $4, %eax
	lea GLYPHS(%eax), %ebp
	push %edx
	mov $16, %ecx
2:	push %ecx
	push %edx
	mov %edx, %edi
	mov (%ebp), %ah
	mov $8, %edx
3:	shl $1, %ah
	sbb %al, %al /* ff or 00, for each byte of the pixel */
	movzbl FB_BITS(%ebx), %ecx
	shr $3, %ecx
	rep stosb
	dec %edx
	jnz 3b
	pop %edx
	pop %ecx
	add FB_PITCH(%ebx), %edx
	inc %ebp
	loop 2b
	pop %edx
	movzbl FB_BITS(%ebx), %eax
	and $~7, %eax /* bytes of 8 pixels */
	add %eax, %edx
	jmp 1b
5:	ret

serial_setup: /* register, value */
	.byte 1, 0, 3, 0x80, 0, 1, 1, 0, 3, 3, 2, 7, 4, 3
serial_setup_end:

message_begin:
	.asciz "\r\nASHLAR-BEGIN\r\n"
message_no_cpuid:
	.asciz "Ashlar: no CPUID instruction; a 64-bit CPU with NX is needed. Halted.\r\n"
message_no_long_mode:
	.asciz "Ashlar: no 64-bit long mode; a 64-bit CPU with NX is needed. Halted.\r\n"
message_no_nx:
	.asciz "Ashlar: this CPU lacks NX, or firmware set-up switches NX off. Halted.\r\n"
message_verdict:
	.asciz "# totals pass:0 fail:0 skip:0\r\nASHLAR-END verdict=fail code=0x11\r\n"

	.section .note.GNU-stack, "", @progbits
