/*
 * A linked program is prepared before its code runs: it gets its thread-local variables, and its
 * constructors run. Symbols of linker.ld tell where both are. A kernel without a program has none.
 *
 * Thread-local variables follow the System V ABI, AMD64 supplement, 3.4.6 and "ELF Handling For
 * Thread-Local Storage" (Drepper, 2013), variant II. Each CPU has a block of its own:
 *
 *	block                                         FS base
 *	| initial values, then zeros, up to the size | own address | 0 ... |
 *
 * The linker gives each variable a negative offset from the FS base, aligned as the variables are.
 * The words behind the base are the ABI's; compilers read the stack guard of user programs there.
 * FS is otherwise used in ring 3 only (<arch/user.h>), by a program that runs instead.
 */
#include <arch/boot.h>

#include "arch/x86_64/cpu/msr.h"
#include "kernel/core/cpus.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/core/verdict.h"
#include "kernel/lib/string.h"
#include "mm/mm.h"

/* The name is the one that C++ compilers know. */
void __cxa_pure_virtual(void);

struct constructor {
	void (*run)(void);
};

/* linker.ld */
extern const char __tls_start[], __tls_initial_end[];
extern const struct tls_layout {
	u64 size, align; /* bytes; of all variables */
} __tls_layout;
TABLE_DECLARE(const struct constructor, constructor_table);

enum { CONTROL_BYTES = 64 }; /* from the FS base on */

/* Bytes from the start of a block to the FS base. */
static u64 tls_bytes(void)
{
	return ALIGN_UP(__tls_layout.size, __tls_layout.align);
}

/* Returns the FS base of a new block, or NULL. */
static u64 *make_block(cpu_t cpu)
{
	struct page *page = page_alloc(page_order_for(tls_bytes() + CONTROL_BYTES), USE_UNMOVABLE,
				       PAGE_ZERO, arch_cpu_node(cpu));
	char *block;
	u64 *base;

	if (!page)
		return NULL;
	block = page_address(page);
	base = (u64 *)(block + tls_bytes());
	memcpy(block, __tls_start, (size_t)(__tls_initial_end - __tls_start));
	base[0] = (u64)base;
	return base;
}

static void load_base(void *arg)
{
	wrmsr(MSR_FS_BASE, (u64)this_cpu()->arch.tls);
}

void arch_program_prepare(void)
{
	cpu_t cpu;

	if (__tls_layout.size == 0)
		return;
	cpumask_foreach(cpu, &cpus_online) {
		void *base = make_block(cpu);

		if (!base) {
			pr_err("no memory for the program's thread-local variables, %llu bytes for "
			       "each of %u CPUs",
			       tls_bytes(), cpus_started());
			verdict_end_with(VERDICT_FAIL);
		}
		cpu_data(cpu)->arch.tls = base;
	}
	load_base(NULL);
	call_others(load_base, NULL);
}

void __cxa_pure_virtual(void)
{
	panic("a pure virtual function was called");
}

void arch_program_construct(void)
{
	const struct constructor *constructor;

	TABLE_FOREACH(constructor, constructor_table)
	constructor->run();
}
