/* Ways to end a run, arch-internal part; see exit.c and <arch/console.h>. */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"

/*
 * Remember how ACPI says this machine is reset and switched off. `dsdt` may be NULL. Boot CPU, once
 * mappings can be made.
 */
void exit_use_acpi(const struct acpi_fadt *fadt, const struct acpi_table *dsdt);
