/*
 * SRAT and SLIT: the node of each CPU and of each range of RAM, and the distances between nodes.
 * See acpi_tables.h.
 *
 *   proximity domains of the firmware (any 32-bit numbers)   7      19        300
 *   nodes of the kernel (dense, by rising domain)            0      1         2
 *
 * A domain with CPUs and no RAM, or with RAM and no CPUs, is a node like any other. A table that
 * contradicts itself is rejected as a whole, because wrong node numbers are worse than none. The
 * machine then becomes one node, and the contradiction is logged.
 *
 * Source: ACPI 6.5, 5.2.16 "System Resource Affinity Table", 5.2.17 "System Locality Information
 * Table".
 */
#include "arch/x86_64/acpi/acpi_srat.h"

#include "arch/x86_64/acpi/acpi_root.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"

enum { SRAT_CPU = 0, SRAT_MEMORY = 1, SRAT_X2APIC = 2 };
enum { SRAT_ENTRIES = 48, SRAT_ENABLED = 1, SLIT_MATRIX = 44 };

struct srat_cpu {
	u8 type, length, domain_low, apic_id;
	u32 flags;
	u8 eid, domain_high[3];
	u32 clock_domain;
} __packed;

struct srat_memory {
	u8 type, length;
	u32 domain;
	u16 reserved;
	u64 base, size;
	u32 reserved2, flags;
	u64 reserved3;
} __packed;

struct srat_x2apic {
	u8 type, length;
	u16 reserved;
	u32 domain, apic_id, flags, clock_domain, reserved2;
} __packed;

static const u8 srat_sizes[] = {[SRAT_CPU] = sizeof(struct srat_cpu),
				[SRAT_MEMORY] = sizeof(struct srat_memory),
				[SRAT_X2APIC] = sizeof(struct srat_x2apic)};

/* Before revision 2 domains had 8 bits, and the other bits were reserved. */
static u32 domain_of(const struct acpi_table *table, u32 domain)
{
	return ((const struct acpi_header *)table->data)->revision < 2 ? domain & 0xff : domain;
}

static void add_memory(const struct acpi_table *table, const u8 *entry, struct acpi_srat *srat)
{
	const struct srat_memory *m = (const void *)entry;

	if (!(m->flags & SRAT_ENABLED) || m->size == 0)
		return;
	if (m->base + m->size < m->base) {
		pr_warn("ACPI: SRAT memory at %llx wraps around, ignored", m->base);
		return;
	}
	srat->mem[srat->mem_count++] = (struct acpi_mem_affinity){
		.start = m->base, .end = m->base + m->size, .domain = domain_of(table, m->domain)};
}

static void add_cpu(const struct acpi_table *table, const u8 *entry, struct acpi_srat *srat)
{
	const struct srat_cpu *local = (const void *)entry;
	const struct srat_x2apic *x2apic = (const void *)entry;
	struct acpi_cpu_affinity cpu;
	u32 flags;

	if (entry[0] == SRAT_CPU) {
		cpu.apic_id = local->apic_id;
		cpu.domain = local->domain_low | (u32)local->domain_high[0] << 8 |
			     (u32)local->domain_high[1] << 16 | (u32)local->domain_high[2] << 24;
		flags = local->flags;
	} else {
		cpu.apic_id = x2apic->apic_id;
		cpu.domain = x2apic->domain;
		flags = x2apic->flags;
	}
	cpu.domain = domain_of(table, cpu.domain);
	if (flags & SRAT_ENABLED)
		srat->cpu[srat->cpu_count++] = cpu;
}

static u64 mem_key(const void *record)
{
	return ((const struct acpi_mem_affinity *)record)->start;
}

static u64 cpu_key(const void *record)
{
	return ((const struct acpi_cpu_affinity *)record)->apic_id;
}

static u64 domain_key(const void *record)
{
	return *(const u32 *)record;
}

static bool memory_contradicts(const struct acpi_srat *srat)
{
	const struct acpi_mem_affinity *far = NULL; /* the range that reaches furthest so far */

	for (size_t i = 0; i < srat->mem_count; i++) {
		const struct acpi_mem_affinity *m = &srat->mem[i];

		if (far && m->start < far->end && m->domain != far->domain) {
			pr_warn("ACPI: SRAT puts %llx-%llx in domain %u and %llx-%llx in domain %u",
				far->start, far->end, far->domain, m->start, m->end, m->domain);
			return true;
		}
		if (!far || m->end > far->end)
			far = m;
	}
	return false;
}

static bool cpus_contradict(const struct acpi_srat *srat)
{
	for (size_t i = 1; i < srat->cpu_count; i++) {
		const struct acpi_cpu_affinity *a = &srat->cpu[i - 1], *b = &srat->cpu[i];

		if (a->apic_id == b->apic_id && a->domain != b->domain) {
			pr_warn("ACPI: SRAT puts the CPU with APIC ID %u in domains %u and %u",
				a->apic_id, a->domain, b->domain);
			return true;
		}
	}
	return false;
}

node_t acpi_srat_node(const struct acpi_srat *srat, u32 domain)
{
	return (node_t)acpi_search(&(struct acpi_order){srat->domain, sizeof(u32), domain_key},
				   srat->nodes, domain);
}

static void number_domains(struct acpi_srat *srat)
{
	size_t n = 0;

	for (size_t i = 0; i < srat->mem_count; i++)
		srat->domain[n++] = srat->mem[i].domain;
	for (size_t i = 0; i < srat->cpu_count; i++)
		srat->domain[n++] = srat->cpu[i].domain;
	acpi_sort(&(struct acpi_order){srat->domain, sizeof(u32), domain_key}, n);
	srat->nodes = 0;
	for (size_t i = 0; i < n; i++)
		if (i == 0 || srat->domain[i] != srat->domain[srat->nodes - 1])
			srat->domain[srat->nodes++] = srat->domain[i];
}

int acpi_srat_parse(const struct acpi_table *table, struct acpi_srat *srat)
{
	struct acpi_walk walk = {table, SRAT_ENTRIES, srat_sizes, ARRAY_LEN(srat_sizes)};
	const u8 *entry;

	srat->mem_count = srat->cpu_count = 0;
	for (entry = acpi_walk_next(&walk); entry; entry = acpi_walk_next(&walk)) {
		if (entry[0] == SRAT_MEMORY)
			add_memory(table, entry, srat);
		else
			add_cpu(table, entry, srat);
	}
	acpi_sort(&(struct acpi_order){srat->mem, sizeof(*srat->mem), mem_key}, srat->mem_count);
	acpi_sort(&(struct acpi_order){srat->cpu, sizeof(*srat->cpu), cpu_key}, srat->cpu_count);
	if (memory_contradicts(srat) || cpus_contradict(srat))
		return -EINVAL;
	number_domains(srat);
	return srat->nodes ? 0 : -EINVAL;
}

node_t acpi_srat_cpu_node(const struct acpi_srat *srat, u32 apic_id)
{
	const size_t i = acpi_search(&(struct acpi_order){srat->cpu, sizeof(*srat->cpu), cpu_key},
				     srat->cpu_count, apic_id);

	return i < srat->cpu_count && srat->cpu[i].apic_id == apic_id
		       ? acpi_srat_node(srat, srat->cpu[i].domain)
		       : 0;
}

int acpi_slit_parse(const struct acpi_table *table, struct acpi_slit *slit)
{
	const u8 *matrix = table->data + SLIT_MATRIX;
	u64 size;

	*slit = (struct acpi_slit){0};
	if (table->len < SLIT_MATRIX)
		return -EINVAL;
	memcpy(&size, table->data + ACPI_HEADER_SIZE, sizeof(size));
	if (size == 0 || size > table->len || size * size > table->len - SLIT_MATRIX) {
		pr_warn("ACPI: SLIT of %llu domains does not fit its %zu bytes, not used", size,
			table->len);
		return -EINVAL;
	}
	for (u64 i = 0; i < size * size; i++) {
		const u64 row = i / size, column = i % size;

		if (row == column ? matrix[i] == ACPI_DISTANCE_LOCAL
				  : matrix[i] >= ACPI_DISTANCE_LOCAL)
			continue;
		pr_warn("ACPI: SLIT has distance %u from domain %llu to %llu, not used", matrix[i],
			row, column);
		return -EINVAL;
	}
	*slit = (struct acpi_slit){.matrix = matrix, .size = size};
	return 0;
}

unsigned acpi_slit_distance(const struct acpi_slit *slit, u32 from_domain, u32 to_domain)
{
	if (from_domain < slit->size && to_domain < slit->size)
		return slit->matrix[from_domain * slit->size + to_domain];
	return from_domain == to_domain ? ACPI_DISTANCE_LOCAL : ACPI_DISTANCE_REMOTE;
}
