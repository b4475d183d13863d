/* Ways to end a run, arch-internal part; see exit.c and <arch/console.h>. */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"

/* Remember how ACPI says this machine is reset. Boot CPU, once mappings can be made. */
void exit_set_reset(const struct acpi_fadt *fadt);
