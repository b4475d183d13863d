/* MADT: the CPUs and I/O APICs of the machine. Pure. */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"

/*
 * Fill `cpus` with the enabled CPUs, one entry per APIC ID, sorted by APIC ID, at most `max`, and
 * call add_io_apic(), if it is not NULL, for each I/O APIC. Returns the number of CPUs.
 */
size_t acpi_madt_parse(const struct acpi_table *madt, struct cpu_desc *cpus, size_t max,
		       struct acpi_madt *out, io_apic_fn *add_io_apic);

/*
 * Make the CPU with this APIC ID number 0; the others keep their order. If the table did not list
 * it, it is added, and the list has room for it. Returns the number of CPUs.
 */
size_t cpu_list_boot_first(struct cpu_desc *cpus, size_t count, u32 boot_apic_id);
