/*
 * The console fonts, unchanged from their package (arch/x86_64/consoles/font/NOTICE). See
 * kernel/console/console_fb.h.
 */
	.section .rodata.font, "a", @progbits
	.globl font_small_start, font_large_start
font_small_start:
	.incbin "arch/x86_64/consoles/font/spleen-8x16.psfu"
font_large_start:
	.incbin "arch/x86_64/consoles/font/spleen-16x32.psfu"

	.section .note.GNU-stack, "", @progbits
