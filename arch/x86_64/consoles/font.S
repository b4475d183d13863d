/*
 * The console fonts, unchanged from their package (arch/x86_64/consoles/font/NOTICE).
 * kernel/console/console_font.c reads them.
 */
	.section .rodata.font, "a", @progbits
	.globl font_small_start, font_small_end, font_large_start, font_large_end
font_small_start:
	.incbin "arch/x86_64/consoles/font/spleen-8x16.psfu"
font_small_end:
font_large_start:
	.incbin "arch/x86_64/consoles/font/spleen-16x32.psfu"
font_large_end:

	.section .note.GNU-stack, "", @progbits
