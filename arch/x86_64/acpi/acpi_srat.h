/* SRAT and SLIT: the nodes of CPUs and memory, and the distances between nodes. Pure. */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"

/*
 * Fill lists that have room for acpi_entries_max() entries each. Domains are numbered densely as
 * nodes, by rising domain. Returns 0 with nodes >= 1. Returns -EINVAL if the table contradicts
 * itself (ranges of different domains overlap, or a CPU is in two domains; both are logged) or
 * names no domain. The machine then is one node.
 */
int acpi_srat_parse(const struct acpi_table *table, struct acpi_srat *srat);

/* Node of a proximity domain that the table names. */
node_t acpi_srat_node(const struct acpi_srat *srat, u32 domain);

/* Node of a CPU; node 0 if the table does not list it. */
node_t acpi_srat_cpu_node(const struct acpi_srat *srat, u32 apic_id);

/*
 * Returns 0, or -EINVAL if the matrix does not fit the table, a domain's distance to itself is not
 * 10, or its distance to another is below 10. Errors are logged.
 */
int acpi_slit_parse(const struct acpi_table *table, struct acpi_slit *slit);
unsigned acpi_slit_distance(const struct acpi_slit *slit, u32 from_domain, u32 to_domain);
