/*
 * Accesses that the page tables and the processor forbid: each must fault, and each kind of access
 * must succeed where it is allowed. The cases exist in the kernel only, where a fault can be caught
 * and the page tables are the kernel's own.
 */
#ifndef ASHLAR_HOSTED

#include <arch/memory.h>

#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/traps/descriptors.h"
#include "mm/map/vmap.h"
#include "mm/mm.h"
#include "tests/kernel/attempt.h"
#include "tests/kernel/test.h"

enum { STACK_PAGES_MOST = 16, SMEP = 1 << 7, SMAP = 1 << 20 /* CPUID 7, EBX */ };

static const u8 constant = 0xc3;
static u8 variable = 0xc3; /* it would return if it could be called */

static u8 byte_at(virt_t at)
{
	return *(const volatile u8 *)at;
}

/* The address of the same memory in the direct map. */
static virt_t alias_of(const void *addr)
{
	enum pt_level level;
	phys_t phys = 0;
	pte_t entry;

	return pgtable_translate(pgtable_root(), (virt_t)addr, &phys, &entry, &level)
		       ? (virt_t)phys_to_virt(phys)
		       : 0;
}

TEST(arch_rights, code_and_constants_cannot_be_written)
{
	const virt_t code = (virt_t)tests_run, data = (virt_t)&constant;

	EXPECT(attempt_write((virt_t)&variable, variable));
	EXPECT(!attempt_write(code, byte_at(code)));
	EXPECT(!attempt_write(data, byte_at(data)));
	EXPECT(!attempt_write(alias_of(tests_run), byte_at(code)));
	EXPECT(!attempt_write(alias_of(&constant), byte_at(data)));
}

TEST(arch_rights, data_cannot_be_executed)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);
	volatile u8 local = 0xc3;

	REQUIRE(page);
	EXPECT(!attempt_call((virt_t)&variable));
	EXPECT(!attempt_call((virt_t)&constant));
	EXPECT(!attempt_call((virt_t)&local));
	EXPECT(!attempt_call((virt_t)page_address(page)));
	EXPECT(!attempt_call((virt_t)page));
	EXPECT(!attempt_call(alias_of(tests_run)));
	page_free(page);
}

TEST(arch_rights, there_is_nothing_at_null)
{
	EXPECT(attempt_read((virt_t)&constant));
	EXPECT(!attempt_read(0));
	EXPECT(!attempt_read(PAGE_SIZE - 1));
	EXPECT(!attempt_write(0, 0));
	EXPECT(!attempt_call(0));
}

/* The first unmapped address below the stack that ends at `top`, or 0 if none is found. */
static virt_t below_stack(const void *top)
{
	virt_t at = (virt_t)top - 1;

	for (unsigned i = 0; i < STACK_PAGES_MOST; i++, at -= PAGE_SIZE)
		if (!attempt_read(at))
			return at;
	return 0;
}

static void expect_guard_below(const void *top)
{
	const virt_t guard = below_stack(top);
	unsigned index;

	EXPECT(guard && vmap_guard_hit(guard, &index) &&
	       !vmap_guard_hit(guard + PAGE_SIZE, &index));
	EXPECT(!attempt_write(guard, 0));
}

TEST(arch_rights, below_each_stack_is_a_guard)
{
	for (unsigned i = 0; i < IST_COUNT; i++) {
		const virt_t guard = boot_guard(i);

		EXPECT(!attempt_read(guard) && !attempt_write(guard + PAGE_SIZE - 1, 0) &&
		       attempt_read(guard + PAGE_SIZE));
	}
	for (cpu_t cpu = 1; cpu < cpu_count && !test_failed(); cpu++) {
		if (!cpumask_test(&cpus_online, cpu))
			continue;
		expect_guard_below(cpu_data(cpu)->arch.stack_top);
		for (enum ist which = IST_DOUBLE_FAULT; which < IST_COUNT; which++)
			expect_guard_below(cpu_data(cpu)->arch.tables->stack_top[which]);
	}
}

/*
 * An executable page of the kernel can be called. The same page can neither be called nor read when
 * it belongs to user mode.
 */
TEST(arch_rights, pages_of_user_mode_are_not_executed_or_read)
{
	void *page = huge_map(PAGE_SIZE, PAGE_SIZE, HUGE_POPULATE);
	const virt_t at = (virt_t)page;

	REQUIRE(page);
	attempt_fill(page);
	attempt_give_to(page, ATTEMPT_KERNEL);
	EXPECT(attempt_read(at) && attempt_call(at));
	EXPECT(!attempt_write(at, 0));
	attempt_give_to(page, ATTEMPT_USER);
	EXPECT_EQ(attempt_call(at), !(cpuid(7, 0).ebx & SMEP));
	EXPECT_EQ(attempt_read(at), !(cpuid(7, 0).ebx & SMAP));
	attempt_give_to(page, ATTEMPT_KERNEL);
	huge_unmap(page);
}

/* ---- settings that each CPU makes for itself: write protection, NX, SMEP, SMAP ---- */

static struct {
	virt_t user;
	u32 wrong;
	cpu_t on; /* one of the CPUs that failed */
} tries;

static void try_all(void *unused)
{
	const virt_t code = (virt_t)tests_run;

	if (!attempt_write(code, byte_at(code)) && !attempt_call((virt_t)&variable) &&
	    attempt_call(tries.user) == !cpu_features.smep &&
	    attempt_read(tries.user) == !cpu_features.smap)
		return;
	atomic_store_relaxed(&tries.on, cpu_id());
	atomic_fetch_add(&tries.wrong, 1);
}

TEST(arch_rights, every_cpu_keeps_to_them)
{
	void *page = huge_map(PAGE_SIZE, PAGE_SIZE, HUGE_POPULATE);

	REQUIRE(page);
	attempt_fill(page);
	attempt_give_to(page, ATTEMPT_USER);
	tries.user = (virt_t)page;
	tries.wrong = 0;
	try_all(NULL);
	for (cpu_t cpu = 1; cpu < cpu_count; cpu++)
		if (work_start(cpu, try_all, NULL) == 0)
			work_wait(cpu, 0);
		else
			EXPECT(!cpumask_test(&cpus_online, cpu));
	if (tries.wrong > 0)
		test_fail(__FILE__, __LINE__,
			  "%u CPUs, CPU %u among them, do what the page tables forbid", tries.wrong,
			  tries.on);
	attempt_give_to(page, ATTEMPT_KERNEL);
	huge_unmap(page);
}

#endif
