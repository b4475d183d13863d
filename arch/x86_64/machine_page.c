/* The architecture's lines of the machine page (kernel/run/machine_page.h). */
#include <arch/boot.h>
#include <arch/cpu.h>

#include "arch/x86_64/acpi/acpi_machine.h"
#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/time/clock.h"
#include "arch/x86_64/traps/mce.h"
#include "kernel/core/call.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "mm/contig/bad_frames.h"

/* Number of different APIC IDs after a shift: a CPU counts if no CPU before it has the same. */
static u32 count_groups(unsigned shift)
{
	u32 groups = 0;

	for (cpu_t cpu = 0; cpu < cpu_count; cpu++) {
		cpu_t other = 0;

		while (cpu_descs[other].apic_id >> shift != cpu_descs[cpu].apic_id >> shift)
			other++;
		groups += other == cpu;
	}
	return groups;
}

static void print_cpu(sheet_line_fn *line)
{
	const struct cpu_features *f = &cpu_features;
	const char *brand = f->brand;
	char text[160];

	while (*brand == ' ')
		brand++;
	line("cpu", "%s, %u address bits", *brand ? brand : f->vendor, f->phys_bits);
	cpu_features_text(text, sizeof(text));
	line("features", "%s", text);
}

/* The CPU notes the tick, so that it does not read its banks once more before it goes idle. */
static void look_at_banks(void *unused)
{
	this_cpu()->arch.tick_seen = atomic_load_relaxed(&nmi_ticks);
	mce_poll_all(NULL);
}

void arch_machine_measure(void)
{
	look_at_banks(NULL);
	call_cpus(&cpus_online, look_at_banks, NULL);
	bad_frames_take_reported(&mm_kernel);
}

void arch_machine_page(sheet_line_fn *line)
{
	const struct topology t = topology_read(cpuid_own, NULL);

	arch_machine_name(line);
	line("cpus", "%u in %u cores in %u packages (%s)", cpu_count, count_groups(t.core_shift),
	     count_groups(t.package_shift), t.source);
	line("errors", "%llu corrected, %llu uncorrected, %llu pages named by them",
	     mce_totals.corrected, mce_totals.uncorrected, mce_totals.pages);
}

void arch_machine_name(sheet_line_fn *line)
{
	print_cpu(line);
	line("clock", "TSC at %llu kHz%s", clock_tsc_hz() / 1000,
	     cpu_features.invariant_tsc ? "" : ", not invariant");
}
