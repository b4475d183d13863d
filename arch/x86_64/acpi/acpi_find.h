/* Finding the ACPI tables of this machine and mapping them. */
#pragma once

#include "arch/x86_64/acpi/acpi.h"

/*
 * Find, map and check the tables.
 *
 * A table whose checksum is wrong is logged. The MADT is used all the same, because the worst it
 * can do is to name CPUs that do not answer. All others are left out, because their errors would go
 * unnoticed.
 */
void acpi_find_tables(const struct boot_info *info);

/* The table, or NULL if there is none that can be used. */
const struct acpi_table *acpi_get(enum acpi_kind kind);

/*
 * Start of the extended BIOS data area, or 0 if the BIOS names none at a possible address. Call
 * after acpi_find_tables().
 */
phys_t acpi_ebda(void);
