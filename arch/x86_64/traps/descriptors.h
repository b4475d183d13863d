/*
 * Descriptor tables of one CPU: GDT, TSS, and the stacks for NMI, double fault and machine check.
 *
 *	GDT  0x00 null  0x08 code  0x10 data  0x18 TSS (two slots)  0x28 user data  0x30 user code
 *
 * Each stack has a guard page below it. The boot CPU's stacks are in the image (boot/entry.S);
 * those of other CPUs come from vmap_stack().
 */
#pragma once

#include "arch/x86_64/traps/selectors.h"
#include "kernel/lib/types.h"

struct percpu;

/* What LGDT and LIDT load. */
struct __packed descriptor_pointer {
	u16 limit;
	u64 base;
};

enum ist { IST_NONE, IST_DOUBLE_FAULT, IST_NMI, IST_MACHINE_CHECK, IST_COUNT };
enum { IST_STACK_SIZE = 8192, BOOT_STACK_SIZE = 16384 };

struct __packed tss {
	u32 reserved0;
	u64 rsp[3]; /* [0]: where traps from ring 3 begin */
	u64 reserved1;
	u64 ist[7]; /* a gate's IST number is the index + 1 */
	u64 reserved2;
	u16 reserved3, io_map;
};

struct cpu_tables {
	u64 gdt[SELECTOR_USER_CODE / 8 + 1];
	struct tss tss;
	void *stack_top[IST_COUNT]; /* by enum ist; [0] unused */
};

/*
 * Allocate the tables and stacks that descriptors_init_cpu() needs on a CPU that is to be started
 * (cpu->arch.tables). Returns 0, or -ENOMEM. Boot CPU.
 */
int descriptors_alloc(struct percpu *cpu, node_t node);

/*
 * On the CPU itself: build and load its GDT, TSS and IDT, and point its GS base at `cpu`. Allocates
 * nothing, so any number of CPUs may run it at once. The boot CPU may call it again when its struct
 * percpu has moved.
 */
void descriptors_init_cpu(struct percpu *cpu);

/*
 * True if `addr` lies in a guard page of one of the boot CPU's stacks; *what is then the stack's
 * name.
 */
bool boot_guard_hit(virt_t addr, const char **what);

/*
 * Guard page of the boot CPU's stack `index` (enum ist; 0 is the normal stack).
 * arch_page_tables_init() leaves it unmapped.
 */
virt_t boot_guard(unsigned index);
