/*
 * Layout of the trampoline's page, shared by trampoline.S and smp_page.c.
 *
 *	0       code: 16-bit, 32-bit, jump to the kernel; the rest is INT3
 *	2048    struct trampoline_data, which no AP writes
 */
#pragma once

/*
 * A CPU starts at segment = page / 16, offset 0 (Intel SDM vol. 3A, 9.4.3 "MP Initialization
 * Protocol Algorithm").
 */
/* selectors of the trampoline's GDT; the others are those of descriptors.h */
#define TRAMPOLINE_CODE32 0x18
#define TRAMPOLINE_CODE64 0x08
#define TRAMPOLINE_DATA   0x10

/* Offsets in struct trampoline_data. */
#define TRAMPOLINE_JUMP32      0
#define TRAMPOLINE_JUMP64      8
#define TRAMPOLINE_ROOT        16
#define TRAMPOLINE_GDT_POINTER 22
#define TRAMPOLINE_ENTRY       32
#define TRAMPOLINE_DATA_AT     2048

#ifndef __ASSEMBLER__
#include "kernel/lib/types.h"

struct trampoline_data {
	u32 jump32_offset; /* far pointers: linear address, selector */
	u16 jump32_selector;
	u16 pad0;
	u32 jump64_offset;
	u16 jump64_selector;
	u16 pad1;
	u32 root; /* of the start-up page tables; below 4 GiB */
	u16 pad2;
	u16 gdt_limit;
	u32 gdt_base;
	u32 pad3;
	u64 entry; /* ap_entry64 */
	u64 gdt[4];
};

_Static_assert(offsetof(struct trampoline_data, jump32_offset) == TRAMPOLINE_JUMP32 &&
		       offsetof(struct trampoline_data, jump64_offset) == TRAMPOLINE_JUMP64 &&
		       offsetof(struct trampoline_data, root) == TRAMPOLINE_ROOT &&
		       offsetof(struct trampoline_data, gdt_limit) == TRAMPOLINE_GDT_POINTER &&
		       offsetof(struct trampoline_data, entry) == TRAMPOLINE_ENTRY,
	       "trampoline.S uses these offsets");

extern const char trampoline_start[], trampoline_end[], trampoline_code32[], trampoline_code64[];
void ap_entry64(void);
#endif
