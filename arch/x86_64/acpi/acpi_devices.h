/* ACPI tables that describe single devices: HPET, FADT, SPCR, DMAR. Pure. */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"

/* Returns 0 and the address of the timer block, or -EINVAL. */
int acpi_hpet_parse(const struct acpi_table *table, phys_t *base);

/* Does firmware ask the system not to enter x2APIC mode? */
bool acpi_dmar_opts_out(const struct acpi_table *table);
