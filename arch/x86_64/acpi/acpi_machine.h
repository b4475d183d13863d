/*
 * From firmware's tables to the machine's CPUs and nodes. firmware.c does it with the tables of the
 * machine that runs, and the hosted machine with those of a machine that a text describes
 * (tests/host/replay.c).
 *
 * The boot CPU calls these during start-up, while memblock gives memory. Afterwards the data is
 * read-only.
 */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"
#include "arch/x86_64/cpu/topology.h"
#include "kernel/lib/types.h"

/* CPUs by dense index; there are cpu_count of them, and 0 is the boot CPU. */
extern struct cpu_desc *cpu_descs;

/*
 * The enabled CPUs, sorted by APIC ID, with room for one more. *count gets their number. I/O APICs:
 * acpi_madt.h.
 */
struct cpu_desc *acpi_machine_cpus(const struct acpi_table *madt, size_t *count,
				   struct acpi_madt *info, io_apic_fn *add_io_apic);

/*
 * Set node_count, the node of each of the first cpu_count CPUs of cpu_descs, and the nodes of RAM.
 * A NULL table is absent. Without an SRAT that is sound there is one node.
 */
void acpi_machine_nodes(const struct acpi_table *srat, const struct acpi_table *slit);

/*
 * Put the cpu_count CPUs of cpu_descs into the order of acpi_cpu_order.h, and keep at most `max`.
 * Their nodes are known. `leaf` answers for the boot CPU.
 */
void acpi_machine_order_cpus(cpuid_fn *leaf, const void *ctx, u64 max);
