/*
 * CPUs and nodes of the machine; see acpi_machine.h.
 */
#include "arch/x86_64/acpi/acpi_machine.h"

#include <arch/boot.h>

#include "arch/x86_64/acpi/acpi_cpu_order.h"
#include "arch/x86_64/acpi/acpi_madt.h"
#include "arch/x86_64/acpi/acpi_root.h"
#include "arch/x86_64/acpi/acpi_srat.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "mm/map/memblock.h"

/* Until the tables are read, only the boot CPU is known. */
static struct cpu_desc boot_cpu_desc = {.enabled = true};
struct cpu_desc *cpu_descs = &boot_cpu_desc;

enum { CPUID_7_EDX_HYBRID = 1 << 15 }; /* the cores are of more than one kind */

static struct acpi_srat srat;
static struct acpi_slit slit;

struct cpu_desc *acpi_machine_cpus(const struct acpi_table *madt, size_t *count,
				   struct acpi_madt *info, io_apic_fn *add_io_apic)
{
	const size_t max = acpi_entries_max(madt);
	struct cpu_desc *list =
		memblock_alloc_or_die((max + 1) * sizeof(*list), NODE_NONE, "the list of CPUs");

	*count = acpi_madt_parse(madt, list, max, info, add_io_apic);
	pr_info("ACPI: MADT lists %zu CPUs to start (%zu entries disabled, %zu ignored)", *count,
		info->disabled, info->ignored);
	return list;
}

static int read_srat(const struct acpi_table *table)
{
	const size_t max = acpi_entries_max(table);

	srat.mem = memblock_alloc_or_die((max + 1) * sizeof(*srat.mem), NODE_NONE,
					 "affinities of memory");
	srat.cpu = memblock_alloc_or_die((max + 1) * sizeof(*srat.cpu), NODE_NONE,
					 "affinities of CPUs");
	srat.domain = memblock_alloc_or_die((max + 1) * sizeof(*srat.domain), NODE_NONE,
					    "proximity domains");
	return acpi_srat_parse(table, &srat);
}

/*
 * Set the node of each CPU and each range of RAM. A page that two nodes share goes to the upper
 * one.
 */
static void assign_nodes(void)
{
	for (cpu_t cpu = 0; cpu < cpu_count; cpu++)
		cpu_descs[cpu].node = acpi_srat_cpu_node(&srat, cpu_descs[cpu].apic_id);
	for (size_t i = 0; i < srat.mem_count; i++)
		memblock_list_set_node(&memblock_memory, ALIGN_DOWN(srat.mem[i].start, PAGE_SIZE),
				       ALIGN_DOWN(srat.mem[i].end, PAGE_SIZE),
				       acpi_srat_node(&srat, srat.mem[i].domain));
}

void acpi_machine_nodes(const struct acpi_table *srat_table, const struct acpi_table *slit_table)
{
	node_count = 1;
	if (!srat_table)
		return;
	if (read_srat(srat_table) < 0) {
		srat.nodes = 0;
		pr_warn("ACPI: SRAT is not used, the machine is treated as one node");
		return;
	}
	node_count = srat.nodes;
	assign_nodes();
	if (slit_table)
		acpi_slit_parse(slit_table, &slit);
	pr_info("ACPI: SRAT describes %u nodes", node_count);
}

void acpi_machine_order_cpus(cpuid_fn *leaf, const void *ctx, u64 max)
{
	acpi_order_cpus(cpu_descs, cpu_count, topology_read(leaf, ctx).core_shift,
			leaf(7, 0, ctx).edx & CPUID_7_EDX_HYBRID);
	cpu_count = (cpu_t)MIN(cpu_count, max);
}

unsigned arch_node_distance(node_t from, node_t to)
{
	return srat.nodes == 0 ? ACPI_DISTANCE_LOCAL
			       : acpi_slit_distance(&slit, srat.domain[from], srat.domain[to]);
}
