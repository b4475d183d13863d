/* The architecture's lines of the machine page (kernel/run/machine_page.h). */
#include <arch/boot.h>
#include <arch/console.h>

#include "arch/x86_64/acpi/acpi.h"
#include "arch/x86_64/cpu/caches.h"
#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/cpu_check.h"
#include "arch/x86_64/cpu/topology.h"
#include "arch/x86_64/time/clock.h"
#include "arch/x86_64/time/clock_skew.h"
#include "arch/x86_64/time/clock_sources.h"
#include "arch/x86_64/traps/mce.h"
#include "kernel/core/call.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "mm/contig/bad_frames.h"
#include "mm/contig/bad_report.h"

enum { PAGES_SHOWN = 3 };

/* True if no CPU below `cpu` has the same APIC ID after the shift. */
static bool is_first_of_group(cpu_t cpu, unsigned shift)
{
	cpu_t other = 0;

	while (cpu_descs[other].apic_id >> shift != cpu_descs[cpu].apic_id >> shift)
		other++;
	return other == cpu;
}

/* Number of different APIC IDs after a shift. */
static u32 count_groups(unsigned shift)
{
	u32 groups = 0;

	for (cpu_t cpu = 0; cpu < cpu_count; cpu++)
		groups += is_first_of_group(cpu, shift);
	return groups;
}

static void print_topology(sheet_line_fn *line)
{
	const struct topology t = topology_read(cpuid_own, NULL);
	char hybrid[64] = "";
	cpu_t cpu, big = 0, small = 0;

	cpumask_foreach(cpu, &cpus_online) {
		big += cpu_data(cpu)->arch.picture.kind == CORE_PERFORMANCE;
		small += cpu_data(cpu)->arch.picture.kind == CORE_EFFICIENT;
	}
	if (small)
		format(hybrid, sizeof(hybrid), "; hybrid: %u performance, %u efficient", big,
		       small);
	line("cpus", "%u in %u cores in %u packages (%s), microcode %x%s", cpu_count,
	     count_groups(t.core_shift), count_groups(t.package_shift), t.source,
	     cpu_data(0)->arch.picture.microcode, hybrid);
}

/* CPUs of this machine that have the boot CPU's cache, itself included. */
static cpu_t count_sharers(const struct cache_level *cache)
{
	cpu_t sharers = 0;

	for (cpu_t cpu = 0; cpu < cpu_count; cpu++)
		sharers += cache_is_shared(cache->sharing, cpu_descs[0].apic_id,
					   cpu_descs[cpu].apic_id);
	return sharers;
}

static void print_caches(sheet_line_fn *line)
{
	const struct tlb_sizes tlb = tlb_read(cpuid_own, NULL);
	struct cache_level cache[CACHES_MAX];
	const unsigned n = caches_read(cpuid_own, NULL, cache);
	char text[256] = "unknown";
	size_t len = 0;

	for (unsigned i = 0; i < n; i++) {
		len += (size_t)format(text + len, sizeof(text) - len, "%sL%u%s %u KiB",
				      len ? ", " : "", cache[i].level,
				      cache[i].kind == 'd'   ? " data"
				      : cache[i].kind == 'i' ? " code"
							     : "",
				      cache[i].kib);
		len = MIN(len, sizeof(text) - 1);
		if (cache[i].sharing > 2)
			len += (size_t)format(text + len, sizeof(text) - len, " for %u CPUs",
					      count_sharers(&cache[i]));
		len = MIN(len, sizeof(text) - 1);
	}
	line("cache", "%s", text);
	line("tlb", "4K %u, 2M %u, 1G %u entries (0: unknown)", tlb.small, tlb.large, tlb.huge);
}

static struct clock_skew worst;
static cpu_t clocks_measured;

static void print_clocks(sheet_line_fn *line)
{
	line("clocks", "TSC %llu kHz%s; worst of %u others: CPU %u, %lld ns +- %llu",
	     clock_tsc_hz() / 1000, cpu_features.invariant_tsc ? "" : ", not invariant",
	     clocks_measured, worst.cpu, worst.offset_ns, worst.within_ns);
}

static const char *page_fate(pfn_t pfn)
{
	if (bad_frame_is_out(&mm_kernel, pfn))
		return "out of use";
	return bad_frames_pending(&mm_kernel, pfn, 1) ? "to be withdrawn when it is free"
						      : "not memory that the allocator gives out";
}

static void print_machine_checks(sheet_line_fn *line)
{
	const struct mce_totals totals = mce_totals();

	line("errors", "%llu corrected, %llu uncorrected, %zu pages named by them",
	     totals.corrected, totals.uncorrected, totals.pages);
	for (size_t i = 0; i < PAGES_SHOWN && mce_page(i) != PFN_NONE; i++)
		line("", "page at %llx: %s", mce_page(i) << PAGE_SHIFT, page_fate(mce_page(i)));
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

void arch_machine_measure(void)
{
	clocks_measured = clock_skew_measure(&worst);
	print("BENCH clocks tsc_hz=%llu measured=%u ns_skew=%lld ns_within=%llu\n", clock_tsc_hz(),
	      clocks_measured, worst.offset_ns, worst.within_ns);
	mce_poll(NULL);
	call_cpus(&cpus_online, mce_poll, NULL);
	bad_frames_take_reported(&mm_kernel);
}

void arch_machine_page(sheet_line_fn *line)
{
	print_cpu(line);
	print_topology(line);
	print_caches(line);
	print_clocks(line);
	print_machine_checks(line);
}

void arch_machine_print(void)
{
	const struct cpu_features *f = &cpu_features;
	const char *brand = f->brand;
	char text[160];

	while (*brand == ' ')
		brand++;
	print("  cpu      %s%s%s%s, %u physical address bits\n", *brand ? brand : f->vendor,
	      *brand ? " (" : "", *brand ? f->vendor : "", *brand ? ")" : "", f->phys_bits);
	cpu_features_text(text, sizeof(text));
	print("  features %s\n", text);
	print("  clock    TSC at %llu kHz\n", clock_tsc_hz() / 1000);
}
