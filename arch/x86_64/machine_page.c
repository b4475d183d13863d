/* The architecture's lines of the machine page (kernel/machine_page.h). */
#include <arch/boot.h>
#include <arch/console.h>

#include "arch/x86_64/acpi.h"
#include "arch/x86_64/caches.h"
#include "arch/x86_64/clock_sources.h"
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/cpu_check.h"
#include "arch/x86_64/mce.h"
#include "arch/x86_64/topology.h"
#include "kernel/call.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "mm/bad_frames.h"

static struct cpuid own_leaf(u32 leaf, u32 subleaf, const void *ctx)
{
	(void)ctx;
	return cpuid(leaf, subleaf);
}

/* CPUs are numbered by rising APIC ID (but for number 0), so equal upper parts are neighbours; number 0's is looked up. */
static u32 count_groups(unsigned shift)
{
	u32 groups = 1, last = cpu_descs[0].apic_id >> shift;

	for (cpu_t cpu = 1; cpu < cpu_count; cpu++) {
		const u32 group = cpu_descs[cpu].apic_id >> shift;

		if (group != last && group != cpu_descs[0].apic_id >> shift)
			groups++;
		last = group;
	}
	return groups;
}

static void print_topology(void)
{
	const struct topology t = topology_read(own_leaf, NULL);
	cpu_t cpu, big = 0, small = 0;

	cpumask_foreach(cpu, &cpus_online)
	{
		big += cpu_data(cpu)->arch.picture.kind == CORE_PERFORMANCE;
		small += cpu_data(cpu)->arch.picture.kind == CORE_EFFICIENT;
	}
	print("  cpus     %u in %u cores in %u packages (%s), microcode %x\n", cpu_count, count_groups(t.core_shift),
	      count_groups(t.package_shift), t.source, cpu_data(0)->arch.picture.microcode);
	if (small)
		print("           hybrid: %u performance, %u efficient\n", big, small);
}

static void print_caches(void)
{
	const struct tlb_sizes tlb = tlb_read(own_leaf, NULL);
	struct cache_level cache[CACHES_MAX];
	const unsigned n = caches_read(own_leaf, NULL, cache);

	for (unsigned i = 0; i < n; i++)
		print("  cache    L%u%s %u KiB, %u ways, lines of %u, shared by up to %u CPUs (0: not told)\n", cache[i].level,
		      cache[i].kind == 'd' ? " data" : cache[i].kind == 'i' ? " code" : "", cache[i].kib, cache[i].ways,
		      cache[i].line, cache[i].sharing);
	print("  tlb      4K %u, 2M %u, 1G %u entries (0: not told)\n", tlb.small, tlb.large, tlb.huge);
}

static void print_clocks(void)
{
	struct clock_skew worst;
	const cpu_t measured = clock_skew_measure(&worst);

	print("  clocks   TSC at %llu kHz%s; of %u other CPUs the farthest, %u, is off by %lld ns, give or take %llu\n",
	      (unsigned long long)(clock_tsc_hz() / 1000), cpu_features.invariant_tsc ? "" : ", not invariant", measured,
	      worst.cpu, (long long)worst.offset_ns, (unsigned long long)worst.within_ns);
	print("BENCH clocks tsc_hz=%llu measured=%u ns_skew=%lld ns_within=%llu\n", (unsigned long long)clock_tsc_hz(),
	      measured, (long long)worst.offset_ns, (unsigned long long)worst.within_ns);
}

static void print_machine_checks(void)
{
	struct mce_totals totals;

	mce_poll(NULL);
	call_cpus(&cpus_online, mce_poll, NULL);
	bad_frames_take_reported(&mm_kernel);
	totals = mce_totals();
	print("  errors   %llu corrected, %llu uncorrected, %zu pages named by them\n", (unsigned long long)totals.corrected,
	      (unsigned long long)totals.uncorrected, totals.pages);
	for (size_t i = 0; mce_page(i) != PFN_NONE; i++)
		print("           page at %llx: %s\n", (unsigned long long)(mce_page(i) << PAGE_SHIFT),
		      bad_frame_is_out(&mm_kernel, mce_page(i))		? "out of use"
		      : bad_frames_pending(&mm_kernel, mce_page(i), 1) ? "in use, out of use when it is freed"
									: "not memory that is given out");
}

void arch_machine_page(void)
{
	arch_machine_print();
	print_topology();
	print_caches();
	print_clocks();
	print_machine_checks();
}
