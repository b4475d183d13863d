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
#include "kernel/machine_page.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "mm/bad_frames.h"

enum { PAGES_SHOWN = 3 };

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
	char hybrid[64] = "";
	cpu_t cpu, big = 0, small = 0;

	cpumask_foreach(cpu, &cpus_online)
	{
		big += cpu_data(cpu)->arch.picture.kind == CORE_PERFORMANCE;
		small += cpu_data(cpu)->arch.picture.kind == CORE_EFFICIENT;
	}
	if (small)
		format(hybrid, sizeof(hybrid), "; hybrid: %u performance, %u efficient", big, small);
	page_line("cpus", "%u in %u cores in %u packages (%s), microcode %x%s", cpu_count, count_groups(t.core_shift),
		  count_groups(t.package_shift), t.source, cpu_data(0)->arch.picture.microcode, hybrid);
}

static void print_caches(void)
{
	const struct tlb_sizes tlb = tlb_read(own_leaf, NULL);
	struct cache_level cache[CACHES_MAX];
	const unsigned n = caches_read(own_leaf, NULL, cache);
	char text[256] = "not told";
	size_t len = 0;

	for (unsigned i = 0; i < n; i++) {
		len += (size_t)format(text + len, sizeof(text) - len, "%sL%u%s %u KiB", len ? ", " : "", cache[i].level,
				      cache[i].kind == 'd' ? " data" : cache[i].kind == 'i' ? " code" : "", cache[i].kib);
		len = MIN(len, sizeof(text) - 1);
		if (cache[i].sharing > 2)
			len += (size_t)format(text + len, sizeof(text) - len, " for %u CPUs", cache[i].sharing);
		len = MIN(len, sizeof(text) - 1);
	}
	page_line("cache", "%s", text);
	page_line("tlb", "4K %u, 2M %u, 1G %u entries (0: not told)", tlb.small, tlb.large, tlb.huge);
}

static struct clock_skew worst;
static cpu_t clocks_measured;

static void print_clocks(void)
{
	page_line("clocks", "TSC %llu kHz%s; worst of %u others: CPU %u, %lld ns +- %llu",
		  (unsigned long long)(clock_tsc_hz() / 1000), cpu_features.invariant_tsc ? "" : ", not invariant", clocks_measured,
		  worst.cpu, (long long)worst.offset_ns, (unsigned long long)worst.within_ns);
}

static const char *page_fate(pfn_t pfn)
{
	if (bad_frame_is_out(&mm_kernel, pfn))
		return "out of use";
	return bad_frames_pending(&mm_kernel, pfn, 1) ? "in use, out of use when it is freed" : "not memory that is given out";
}

static void print_machine_checks(void)
{
	const struct mce_totals totals = mce_totals();

	page_line("errors", "%llu corrected, %llu uncorrected, %zu pages named by them", (unsigned long long)totals.corrected,
		  (unsigned long long)totals.uncorrected, totals.pages);
	for (size_t i = 0; i < PAGES_SHOWN && mce_page(i) != PFN_NONE; i++)
		page_line("", "page at %llx: %s", (unsigned long long)(mce_page(i) << PAGE_SHIFT), page_fate(mce_page(i)));
}

static void print_cpu(void)
{
	const struct cpu_features *f = &cpu_features;
	const char *brand = f->brand;
	char text[160];

	while (*brand == ' ')
		brand++;
	page_line("cpu", "%s, %u address bits", *brand ? brand : f->vendor, f->phys_bits);
	cpu_features_text(text, sizeof(text));
	page_line("features", "%s", text);
}

void arch_machine_measure(void)
{
	clocks_measured = clock_skew_measure(&worst);
	print("BENCH clocks tsc_hz=%llu measured=%u ns_skew=%lld ns_within=%llu\n", (unsigned long long)clock_tsc_hz(),
	      clocks_measured, (long long)worst.offset_ns, (unsigned long long)worst.within_ns);
	mce_poll(NULL);
	call_cpus(&cpus_online, mce_poll, NULL);
	bad_frames_take_reported(&mm_kernel);
}

void arch_machine_page(void)
{
	print_cpu();
	print_topology();
	print_caches();
	print_clocks();
	print_machine_checks();
}
