/* Constants that entry.S, refuse.S and arch/x86_64/smp/trampoline.S share. */
#pragma once

#define IMAGE_BASE   0xffffffff80000000
#define PHYS(symbol) ((symbol)-IMAGE_BASE)

#define PROTOCOL_MULTIBOOT2 0 /* enum boot_protocol */

/* selectors of boot_gdt; those of descriptors.h have the same numbers */
#define BOOT_CODE64   0x08
#define BOOT_DATA     0x10
#define BOOT_CODE32   0x18
#define BOOT_GDT_SIZE 32

#define CR0_PROTECTED 0x00000011 /* paging off */

/* cpu_features_init() sets the rest of CR4 */
#define CR0_VALUE               0x80010033 /* PG WP NE ET MP PE */
#define CR4_VALUE               0x6a0      /* OSXMMEXCPT OSFXSR PGE PAE */
#define EFER_VALUE              0x900      /* NXE LME */
#define MSR_EFER                0xc0000080
#define MSR_MISC_ENABLE         0x1a0
#define MISC_ENABLE_HIGH_NX_OFF 4 /* bit 34 */
