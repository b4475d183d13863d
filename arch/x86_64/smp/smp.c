/*
 * Starting all CPUs, in parallel.
 *
 *   boot CPU                                        each AP
 *   memory for all: stack, descriptors
 *   INIT to each; 10 ms; start-up to each           trampoline.S: finds its index by its APIC ID,
 *                                                   own stack
 *   second start-up to those still silent           descriptors, features, APIC
 *   waits for all, a deadline for each              AP_APIC -> AP_JOINING by compare-and-swap
 *     late ones: stage -> AP_GIVEN_UP, same way     online bit, fence, load G, kernel tables,
 *                                                   publish
 *   logs which are missing and how far they came    idle loop
 *
 * Invariants:
 * - An AP allocates nothing.
 * - A CPU is either given up or joins, never both.
 * - arch_cpus_start() does not return while an AP is between AP_JOINING and AP_ONLINE, so an online
 *   CPU can always be interrupted.
 *
 * Source: Intel SDM vol. 3A, 9.4.4 "MP Initialization Example" (INIT, 10 ms, start-up, start-up);
 * Intel, "MultiProcessor Specification" 1.4, 1997-05, appendix B.4. The second message is sent only
 * to CPUs that need it.
 */
#include "arch/x86_64/smp/smp.h"

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/boot.h>
#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/pgtable.h>
#include <arch/tlb.h>

#include "arch/x86_64/acpi/acpi_find.h"
#include "arch/x86_64/acpi/acpi_machine.h"
#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/cpu/mtrr_cpu.h"
#include "arch/x86_64/interrupts/ipi.h"
#include "arch/x86_64/interrupts/nmi_tick.h"
#include "arch/x86_64/smp/smp_page.h"
#include "arch/x86_64/time/clock.h"
#include "arch/x86_64/traps/apic.h"
#include "arch/x86_64/traps/descriptors.h"
#include "arch/x86_64/traps/mce.h"
#include "arch/x86_64/user/user.h"
#include "kernel/core/call.h"
#include "kernel/core/fail.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/core/shootdown.h"
#include "kernel/core/wait.h"
#include "mm/map/memblock.h"
#include "mm/map/vmap.h"

#define AP_STACK_SIZE     KIB(16)
#define INIT_DELAY_NS     (10 * NS_PER_MS)
#define SECOND_STARTUP_NS NS_PER_MS

u8 *ap_stages;
u32 *ap_ids;
void **ap_stacks;
volatile void __iomem *ap_apic;

static const char *const stage_text[] = {
	[AP_SILENT] = "it was never heard from",
	[AP_CLAIMED] = "it reached 64-bit code but not its descriptor tables",
	[AP_DESCRIPTORS] = "it stopped while setting its control registers",
	[AP_FEATURES] = "it stopped while setting up its APIC",
	[AP_APIC] = "it stopped before joining",
};

static enum ap_stage stage_of(cpu_t cpu)
{
	return (enum ap_stage)atomic_load_acquire(&ap_stages[cpu]);
}

/* ---- on the AP ---- */

/* Move on to stage `to`, or park if the boot CPU has given this CPU up. */
static void reach(cpu_t cpu, enum ap_stage from, enum ap_stage to)
{
	if (!atomic_cas(&ap_stages[cpu], (u8)from, (u8)to))
		cpu_halt_forever();
}

static void hang_if_asked(cpu_t cpu)
{
	while (fail_ap(cpu) && stage_of(cpu) != AP_GIVEN_UP)
		cpu_relax();
}

static void load_kernel_tables(void)
{
	write_cr3(pgtable_root() << PAGE_SHIFT);
	tlb_flush_local_all();
}

void ap_start(cpu_t cpu)
{
	descriptors_init_cpu(cpu_data(cpu));
	reach(cpu, AP_CLAIMED, AP_DESCRIPTORS);
	hang_if_asked(cpu);
	cpu_features_init();
	user_init_cpu();
	mce_init_cpu();
	mtrrs_settle();
	clock_note_tsc();
	reach(cpu, AP_DESCRIPTORS, AP_FEATURES);
	apic_init_cpu();
	reach(cpu, AP_FEATURES, AP_APIC);

	reach(cpu, AP_APIC, AP_JOINING);
	shootdown_join(load_kernel_tables);
	atomic_store_release(&ap_stages[cpu], (u8)AP_ONLINE);
	cpu_idle_loop();
}

/* ---- on the boot CPU ---- */

static void exclude(cpu_t cpu, const char *why)
{
	ap_stages[cpu] = AP_EXCLUDED;
	pr_warn("CPU %u (APIC ID %u) is left out: %s", cpu, cpu_descs[cpu].apic_id, why);
}

/* Allocate all that a CPU needs to start, so that it need not allocate. */
static void prepare_cpu(cpu_t cpu)
{
	struct percpu *data = cpu_data(cpu);

	ap_ids[cpu] = data->arch.apic_id = cpu_descs[cpu].apic_id;
	if (!cpu_descs[cpu].enabled) {
		exclude(cpu, "its APIC ID cannot be addressed in xAPIC mode");
		return;
	}
	ap_stacks[cpu] = data->arch.stack_top = vmap_stack(AP_STACK_SIZE, data->node);
	if (!ap_stacks[cpu] || descriptors_alloc(data, data->node) < 0)
		exclude(cpu, "no memory for its stacks");
}

static void prepare_tables(void)
{
	ap_stages = memblock_alloc_or_die(cpu_count, NODE_NONE, "the stages of starting CPUs");
	ap_ids = memblock_alloc_or_die((u64)cpu_count * sizeof(*ap_ids), NODE_NONE,
				       "the IDs of starting CPUs");
	ap_stacks = memblock_alloc_or_die((u64)cpu_count * sizeof(*ap_stacks), NODE_NONE,
					  "the stacks of starting CPUs");
	ap_apic = apic_registers();
	ap_stages[0] = AP_ONLINE;
	ap_ids[0] = cpu_descs[0].apic_id;
	for (cpu_t cpu = 1; cpu < cpu_count; cpu++)
		prepare_cpu(cpu);
}

static void send_to_silent(u32 command)
{
	for (cpu_t cpu = 1; cpu < cpu_count; cpu++)
		if (stage_of(cpu) == AP_SILENT)
			apic_send(cpu_descs[cpu].apic_id, command);
}

/* First CPU at or after `cpu` that is still starting, or cpu_count. */
static cpu_t next_underway(cpu_t cpu)
{
	while (cpu < cpu_count && stage_of(cpu) >= AP_ONLINE)
		cpu++;
	return cpu;
}

/*
 * Wait until all CPUs are online, or until the next one in order has taken longer than `limit_ns`.
 * There is no limit for all of them together, because on a host that runs many virtual CPUs on few
 * real ones it would say little. Returns the CPU that is missing, or cpu_count.
 */
static cpu_t wait_underway(cpu_t from, u64 limit_ns)
{
	u64 since = clock_ns(), spins = 0;
	cpu_t cpu;

	for (cpu = next_underway(from); cpu < cpu_count; cpu = next_underway(from)) {
		if (cpu != from) {
			from = cpu;
			since = clock_ns();
		}
		if (clock_ns() - since > limit_ns)
			break;
		ASSERT(clock_ns() != 0 || ++spins < 1u << 28,
		       "the clock stands still while CPUs start");
		cpu_relax();
	}
	return cpu;
}

/* Give a late CPU up. If it is joining at this moment, wait until it is online instead. */
static void give_up(cpu_t cpu)
{
	struct wait wait;
	int stage;

	for (stage = stage_of(cpu); stage < AP_JOINING; stage = stage_of(cpu)) {
		if (!atomic_cas(&ap_stages[cpu], (u8)stage, (u8)AP_GIVEN_UP))
			continue;
		pr_err("CPU %u (APIC ID %u) did not start: %s", cpu, cpu_descs[cpu].apic_id,
		       stage_text[stage]);
		return;
	}
	wait = wait_begin(WAIT_ANSWER, "the last start-up step");
	while (stage_of(cpu) != AP_ONLINE)
		wait_spin(&wait, cpu);
}

static void start_all(void)
{
	const u64 begin = clock_ns();
	cpu_t cpu;

	send_to_silent(ICR_INIT | ICR_ASSERT);
	clock_delay_ns(INIT_DELAY_NS); /* the clocks are measured meanwhile */
	clock_refine_end();
	send_to_silent(ICR_STARTUP | ICR_ASSERT | smp_page_vector());
	cpu = wait_underway(1, SECOND_STARTUP_NS * cpu_deadline_scale());
	send_to_silent(ICR_STARTUP | ICR_ASSERT | smp_page_vector());
	cpu = wait_underway(cpu, wait_deadline_cpus());
	for (cpu = next_underway(cpu); cpu < cpu_count; cpu = next_underway(cpu))
		give_up(cpu);
	pr_info("started %u of %u CPUs in %llu ms (%s)", cpumask_weight(&cpus_online), cpu_count,
		(clock_ns() - begin) / NS_PER_MS, apic_mode() == APIC_X2APIC ? "x2APIC" : "xAPIC");
}

void arch_cpus_start(void)
{
	ipi_init();
	clock_note_tsc();
	cpu_data(0)->arch.apic_id = cpu_descs[0].apic_id;
	if (cpu_count > 1)
		prepare_tables();
	if (cpu_count > 1 && smp_page_make(acpi_ebda()) == 0) {
		start_all();
	} else {
		clock_refine_end();
		pr_info("started 1 of %u CPUs in 0 ms", cpu_count);
		if (cpu_count > 1)
			pr_err("no page below 1 MiB is free to start CPUs from: only 1 of %u CPUs "
			       "runs",
			       cpu_count);
	}
	mtrrs_report();
	clock_report_tscs();
	nmi_tick_confirm();
	clock_stop_pit();
	irq_enable();
	nmi_tick_replace();
}
