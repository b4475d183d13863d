/* MADT: the CPUs and I/O APICs of the machine. Pure. */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"

/* Upper limits for the CPUs and I/O APICs that the table can yield. */
size_t acpi_madt_cpus_max(const struct acpi_table *madt);
size_t acpi_madt_io_apics_max(const struct acpi_table *madt);

/*
 * Fill `cpus` with the enabled CPUs, one entry per APIC ID, sorted by APIC ID, at most `max`.
 * Returns their number.
 */
size_t acpi_madt_parse(const struct acpi_table *madt, struct cpu_desc *cpus, size_t max,
		       struct acpi_madt *out);

/* Fill in at most `max` I/O APICs. Returns their number. */
size_t acpi_madt_io_apics(const struct acpi_table *madt, struct acpi_io_apic *out, size_t max);

/*
 * Make the boot CPU number 0; the others keep their order. False if its ID is not in the list,
 * which is then unchanged.
 */
bool cpu_list_boot_first(struct cpu_desc *cpus, size_t count, u32 boot_apic_id);
