/*
 * GDT, TSS and interrupt stacks; see descriptors.h. Formats: Intel SDM vol. 3A, 3.4.5 and 8.7
 * "64-bit mode task management".
 *
 * Each CPU has its own GDT because LTR marks the TSS busy in it.
 */
#include "arch/x86_64/traps/descriptors.h"

#include <arch/memory.h>
#include <arch/percpu.h>

#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/traps/traps.h"
#include "kernel/core/percpu.h"
#include "kernel/lib/string.h"
#include "mm/map/memblock.h"
#include "mm/map/vmap.h"

enum { TSS_AVAILABLE = 0x89 };

/*
 * Boot CPU: the stacks of boot/entry.S, laid out as guard | normal | guard | double fault | guard |
 * NMI | guard | machine check.
 */
extern u8 boot_stacks[];

static struct cpu_tables boot_tables;

static const char *const boot_stack_names[IST_COUNT] = {"normal", "double fault", "NMI",
							"machine check"};

virt_t boot_guard(unsigned index)
{
	virt_t guard = (virt_t)boot_stacks;

	if (index > 0)
		guard += PAGE_SIZE + BOOT_STACK_SIZE + (index - 1) * (PAGE_SIZE + IST_STACK_SIZE);
	return guard;
}

bool boot_guard_hit(virt_t addr, const char **what)
{
	for (unsigned i = 0; i < IST_COUNT; i++) {
		if (addr - boot_guard(i) < PAGE_SIZE) {
			*what = boot_stack_names[i];
			return true;
		}
	}
	return false;
}

static struct cpu_tables *boot_tables_init(struct percpu *cpu)
{
	cpu->arch.stack_top = (void *)(boot_guard(0) + PAGE_SIZE + BOOT_STACK_SIZE);
	for (unsigned i = 1; i < IST_COUNT; i++)
		boot_tables.stack_top[i] = (void *)(boot_guard(i) + PAGE_SIZE + IST_STACK_SIZE);
	return &boot_tables;
}

int descriptors_alloc(struct percpu *cpu, node_t node)
{
	struct cpu_tables *tables;
	phys_t phys;

	phys = memblock_alloc(sizeof(*tables), PAGE_SIZE, 0, node);
	if (!phys)
		return -ENOMEM;
	tables = phys_to_virt(phys);
	for (unsigned i = 1; i < IST_COUNT; i++) {
		tables->stack_top[i] = vmap_stack(IST_STACK_SIZE, node);
		if (!tables->stack_top[i])
			return -ENOMEM;
	}
	cpu->arch.tables = tables;
	return 0;
}

static void tables_fill(struct cpu_tables *tables)
{
	const u64 base = (u64)&tables->tss, limit = sizeof(tables->tss) - 1;

	memset(tables->gdt, 0, sizeof(tables->gdt));
	tables->gdt[SELECTOR_CODE / 8] = 0x00af9b000000ffff; /* 64-bit code, accessed */
	tables->gdt[SELECTOR_DATA / 8] = 0x00cf93000000ffff; /* data, accessed */
	tables->gdt[SELECTOR_TSS / 8] = limit | (base & 0xffffff) << 16 | (u64)TSS_AVAILABLE << 40 |
					(base >> 24 & 0xff) << 56;
	tables->gdt[SELECTOR_TSS / 8 + 1] = base >> 32;
	tables->gdt[SELECTOR_USER_DATA / 8] = 0x00cff3000000ffff; /* data for ring 3, accessed */
	tables->gdt[SELECTOR_USER_CODE / 8] = 0x00affb000000ffff;
	tables->tss = (struct tss){.io_map = sizeof(struct tss)};
	for (unsigned i = 1; i < IST_COUNT; i++)
		tables->tss.ist[i - 1] = (u64)tables->stack_top[i];
}

static void tables_load(const struct cpu_tables *tables)
{
	const struct descriptor_pointer pointer = {sizeof(tables->gdt) - 1, (u64)tables->gdt};

	__asm__ volatile("lgdt %0\n"
			 "push %q1\n" /* reload CS by a far return */
			 "lea 1f(%%rip), %%rax\n"
			 "push %%rax\n"
			 "lretq\n"
			 "1:\n"
			 "mov %k2, %%ds\n"
			 "mov %k2, %%es\n"
			 "mov %k2, %%ss\n"
			 "ltr %w3\n"
			 :
			 : "m"(pointer), "r"((u64)SELECTOR_CODE), "r"(SELECTOR_DATA),
			   "r"((u16)SELECTOR_TSS)
			 : "rax", "memory");
}

void descriptors_init_cpu(struct percpu *cpu)
{
	if (!cpu->arch.tables)
		cpu->arch.tables = boot_tables_init(cpu);
	tables_fill(cpu->arch.tables);
	tables_load(cpu->arch.tables);
	traps_load();
	wrmsr(MSR_GS_BASE, (u64)cpu);
}
