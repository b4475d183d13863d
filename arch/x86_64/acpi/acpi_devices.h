/* ACPI tables that describe single devices: HPET, FADT, SPCR, MCFG. Pure. */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"

/* Returns 0 and the address of the timer block, or -EINVAL. */
int acpi_hpet_parse(const struct acpi_table *table, phys_t *base);
