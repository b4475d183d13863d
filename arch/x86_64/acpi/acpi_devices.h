/* ACPI tables that describe single devices: HPET, FADT, SPCR, DMAR. Pure. */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"

/* The address of the timer block; 0: none. */
phys_t acpi_hpet_base(const struct acpi_table *table);

/* Does firmware ask the system not to enter x2APIC mode? */
bool acpi_dmar_opts_out(const struct acpi_table *table);
